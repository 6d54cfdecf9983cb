"""`config get`, `config set`, `config list`, `focus`."""

from __future__ import annotations

from bus.errors import BusError
from tt import body, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def get(args: dict[str, Any]) -> int:
    """One setting."""
    from bus.operations import settings

    return run.read(args, lambda ctx: settings.get(ctx, args["key"]), need_room=False)


def put(args: dict[str, Any]) -> int:
    """Change one setting; makes the bus where there is none."""
    from bus.operations import settings

    return run.write(args, lambda ctx: settings.put(ctx, args["key"], args["value"]), make=True, need_room=False)


def list_all(args: dict[str, Any]) -> int:
    """Every setting."""
    from bus.operations import settings

    return run.read(args, settings.all_keys, need_room=False)


def focus(args: dict[str, Any]) -> int:
    """Say, clear or show the one line of what somebody works on."""
    from bus.operations import settings

    text = body.line(" ".join(args["words"]), "focus") if args["words"] else None
    if text is not None and args["clear"]:
        raise BusError("usage", "give a text or --clear, not both", "tt focus --help")
    return run.write(
        args,
        lambda ctx: settings.focus(ctx, text, clear=args["clear"], station=args["station"]),
        need_room=False,
    )
