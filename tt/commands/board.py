"""`board`, `journal`, `usage`."""

from __future__ import annotations

from tt import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def board(args: dict[str, Any]) -> int:
    """Everything at one look, or what is new."""
    from bus.operations import boardview

    if args["delta"]:
        return _delta(args)
    return run.read(
        args,
        lambda ctx: boardview.view(ctx, since_hash=args["since_hash"], verbose=args["verbose"]),
        need_room=False,
    )


def _delta(args: dict[str, Any]) -> int:
    """What is new; it counts as told once it was flushed. Where nothing is, nothing is written."""
    from bus.operations import board as boards
    from bus.operations import boardview

    ctx = run.context(args, need_room=False)
    try:
        with run.Hold():
            outcome, found = boardview.delta(ctx)
            if found is None:
                return run.shown(args, ctx, outcome)
            return run.finish(args, ctx, outcome, settle=lambda: boards.settle(ctx, found))
    finally:
        ctx.close()


def journal(args: dict[str, Any]) -> int:
    """What happened."""
    from bus.operations import journal as journals

    return run.read(args, lambda ctx: journals.view(ctx, args["since"], args["limit"]), need_room=False)


def usage(args: dict[str, Any]) -> int:
    """Tokens of sub-agents."""
    from bus.operations import usage as samples

    return run.read(args, lambda ctx: samples.totals(ctx, args["since"]), need_room=False)
