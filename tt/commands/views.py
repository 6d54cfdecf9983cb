"""`state`, `health`, `events`, `wakes`: commands that only look."""

from __future__ import annotations

from tt import output, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def state(args: dict[str, Any]) -> int:
    """The room with its members."""
    from bus.operations import views

    return run.read(args, lambda ctx: views.state(ctx, every=args["all"]))


def health(args: dict[str, Any]) -> int:
    """The action card."""
    from bus.operations import views

    verbose = args["verbose"] or args["all"]
    return run.read(args, lambda ctx: views.health(ctx, verbose=verbose))


def events(args: dict[str, Any]) -> int:
    """The log, once or as a stream."""
    return log(
        args,
        every=args["all"],
        after=args["after"],
        limit=args["limit"],
        types=args["event"],
        target=args["target"],
        bus=args["bus"],
    )


def log(args: dict[str, Any], **filters: Any) -> int:
    """Print events by these filters, or follow them. Marks nothing."""
    if args["wait"] or args["follow"]:
        return _follow(args, filters)
    from bus.operations import views

    return run.read(args, lambda ctx: views.event_view(ctx, **filters), need_room=not filters.get("bus"))


def _follow(args: dict[str, Any], filters: dict[str, Any]) -> int:
    """Print events as they come. Stopped by SIGTERM it says where it was, and that is no error."""
    from monitor import follow

    ctx = run.context(args, need_room=not filters.get("bus"))
    try:
        cursor = follow.follow(ctx, **filters, once=args["wait"], emit=run.item_emitter(args, ctx))
    finally:
        ctx.close()
    if isinstance(cursor, int) and not args["wait"]:
        output.note(args, {"cursor_event_seq": cursor}, f"stopped after event #{cursor}")
    return 0


def wakes(args: dict[str, Any]) -> int:
    """Who was woken."""
    from bus.operations import views

    return run.read(args, lambda ctx: views.wake_log(ctx, args["last"]), need_room=False)
