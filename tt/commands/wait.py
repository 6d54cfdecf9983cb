"""`wait`, `try`, `standby`, `inbox`: the ways to receive."""

from __future__ import annotations

from tt import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def wait(args: dict[str, Any]) -> int:
    """Block until something is there. The wait itself prints, marks and handles its signals."""
    from monitor import waiting

    ctx = run.context(args)
    try:
        code = waiting.wait(
            ctx,
            timeout_ms=args["timeout"],
            park=args["park"],
            claim=args["claim"],
            after=args["after"],
            emit=run.emitter(args, ctx),
        )
    finally:
        ctx.close()
    return code if isinstance(code, int) else 0


def try_once(args: dict[str, Any]) -> int:
    """One look, with a grant if there is one."""
    from monitor import granting

    return run.write(args, lambda ctx: granting.try_once(ctx, park=args["park"], after=args["after"]))


def standby(args: dict[str, Any]) -> int:
    """Park and return at once."""
    from bus.operations import standby as parking

    return run.write(args, lambda ctx: parking.standby(ctx, transport=args["wake"]))


def inbox(args: dict[str, Any]) -> int:
    """Drain unread mail, or look at it."""
    from bus.operations import receive

    return run.write(args, lambda ctx: receive.inbox(ctx, peek=args["peek"], limit=args["limit"]), need_room=False)
