"""`events --follow` and `msg recv --follow`: print events as they come. Marks nothing, registers nothing."""

from __future__ import annotations

from bus import bell
from bus.operations import views
from bus.store import agents, events, members, rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    from bus.operations.enter import Context

    Emit = Callable[[dict[str, Any]], bool]
else:
    import _signal as signal  # the C part: `signal` itself loads enum, 2 ms

BATCH = 500


class _StopError(Exception):
    """A signal asked the follower to end."""


def follow(ctx: Context, *, once: bool, emit: Emit, after: int | None = None, **filters: Any) -> int:
    """Print what comes (with `after`: what came since); the number of the last event that was looked at.

    `once`: end after the first that is shown. Ends at INT, TERM, HUP, or when nobody reads any more.
    """
    cursor: int = events.newest(ctx.bus.con) if after is None else after
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        bells = _bells(ctx, filters)
        with bell.Ears(bells) as ears:
            ears.arm()
            while True:
                batch = views.event_view(ctx, **filters | {"after": cursor, "limit": BATCH}).result
                for event in batch["events"]:
                    if not emit(event):
                        return cursor
                    cursor = event["event_seq"]
                    if once:
                        return cursor
                cursor = max(cursor, batch["cursor_event_seq"])
                if batch.get("more"):
                    continue
                there = _bells(ctx, filters)
                if there == bells:
                    ears.wait()
                else:  # somebody new: listen there too, then look once more
                    bells = there
                    ears.rearm(bells)
    except _StopError:
        return cursor
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(_number: int, _frame: object) -> None:
    """End the loop."""
    raise _StopError


def _bells(ctx: Context, filters: dict[str, Any]) -> list[str]:
    """The bells of the caller, the bus and the rooms that are shown; whose mail is shown too, of that one as well.

    What is sent to one agent rings for nobody else.
    """
    con = ctx.bus.con
    shown = [room.id for room in rooms.every(con)] if filters.get("bus") or ctx.found is None else [ctx.room.id]
    every = dict.fromkeys([rooms.BUS, *shown, *members.rooms_of(con, ctx.me)])
    target = filters.get("target", "self")
    others = [agent.id for agent in agents.every(con)] if target == "any" else [] if target == "self" else [target]
    whose = dict.fromkeys([ctx.me, *others])
    return [*(ctx.bus.agent_bell(agent) for agent in whose), *(ctx.bus.room_bell(room) for room in every)]
