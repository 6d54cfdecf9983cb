"""`whoami`."""

from __future__ import annotations

import os

from tt import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def whoami(args: dict[str, Any]) -> int:
    """Who the bus takes the caller for. Needs no bus."""
    from bus.operations import views

    who, path, explain = args["agent"], args["path"], args["explain"]
    return run.show(args, lambda: views.whoami(os.environ, who, path=path, explain=explain))
