"""`msg send`, `msg reply`, `msg recv`. The body is checked before the bus is opened."""

from __future__ import annotations

from tt import body, run
from tt.commands import views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def send(args: dict[str, Any]) -> int:
    """Send to an agent, a station, the room or the bus."""
    from bus.operations import messages

    text = body.message(args)
    return run.write(
        args,
        lambda ctx: messages.send(
            ctx,
            args["recipient"],
            text,
            interrupt=args["interrupt"],
            wake=not args["no_wake"],
            thread=args["thread"],
        ),
        make=True,
        need_room=False,
    )


def reply(args: dict[str, Any]) -> int:
    """Answer the sender of an event."""
    from bus.operations import messages

    text = body.message(args)
    return run.write(
        args,
        lambda ctx: messages.reply(ctx, args["event_id"], text, interrupt=args["interrupt"], wake=not args["no_wake"]),
        need_room=False,
    )


def recv(args: dict[str, Any]) -> int:
    """Look at messages; never a receiver, marks nothing."""
    return views.log(
        args,
        after=args["after"],
        limit=args["limit"],
        target=args["target"],
        types=("message",),
        sender=args["from"],
    )
