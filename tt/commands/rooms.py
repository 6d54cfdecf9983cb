"""`list`, `join`, `leave`, `kick`."""

from __future__ import annotations

import os

from tt import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def list_rooms(args: dict[str, Any]) -> int:
    """Rooms under a path, over all buses."""
    from bus.operations import views

    return run.show(args, lambda: views.listing(os.environ, args["path"], every=args["all"]))


def join(args: dict[str, Any]) -> int:
    """Become a member; makes bus and room where there is none."""
    from bus.operations import join as rooms

    new = args["force_new"]
    return run.write(args, lambda ctx: rooms.join(ctx, force_new=new), make=True, need_room=False, exact=new)


def leave(args: dict[str, Any]) -> int:
    """End the caller's membership."""
    from bus.operations import join as rooms

    return run.write(args, rooms.leave)


def kick(args: dict[str, Any]) -> int:
    """Remove another member."""
    from bus.operations import join as rooms
    from tt import body

    reason = body.line(args["reason"], "reason")
    return run.write(args, lambda ctx: rooms.kick(ctx, args["target"], reason=reason, force=args["force"]))
