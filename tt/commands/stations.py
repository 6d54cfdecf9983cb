"""`stations list`, `add`, `remove`, `attach`."""

from __future__ import annotations

from tt import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def list_all(args: dict[str, Any]) -> int:
    """Every station."""
    from bus.operations import stations

    return run.read(args, stations.listing, need_room=False)


def add(args: dict[str, Any]) -> int:
    """Make worktrees; makes the bus where there is none."""
    from bus.operations import stations

    if args["print"]:
        return run.read(args, lambda ctx: stations.plan(ctx, args["count"]), need_room=False)
    return run.write(args, lambda ctx: stations.add(ctx, args["count"]), make=True, need_room=False)


def remove(args: dict[str, Any]) -> int:
    """Remove a managed worktree."""
    from bus.operations import stations

    return run.write(args, lambda ctx: stations.remove(ctx, args["station"], force=args["force"]), need_room=False)


def attach(args: dict[str, Any]) -> int:
    """How to start a session there."""
    from bus.operations import stations

    return run.read(args, lambda ctx: stations.attach(ctx, args["station"]), need_room=False)
