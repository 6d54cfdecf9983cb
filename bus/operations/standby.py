"""Standby: park and return at once; only later directed work wakes."""

from __future__ import annotations

from bus.errors import BusError
from bus.operations import present
from bus.operations.enter import seated
from bus.operations.outcome import Outcome
from bus.store import agents, db, mail, members, rooms, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.enter import Context

TRANSPORTS = ("cmux", "manual")


def standby(ctx: Context, transport: str | None = None) -> Outcome:
    """Park the caller. What it was shown or offered stays unread but wakes no more; only later events do.

    Raises park_requires_release for the owner, invalid_standby_transport, cmux_endpoint_required,
    not_joined, unknown_member.
    """
    if transport not in (None, *TRANSPORTS):
        raise BusError("invalid_standby_transport", f"no transport is called {transport!r}", "use cmux or manual")
    if transport == "cmux" and not ctx.env.get("CMUX_SURFACE_ID"):
        raise BusError("cmux_endpoint_required", "this session runs in no cmux surface", "leave --wake out")
    seated(ctx)
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        room = rooms.by_id(con, ctx.room.id)
        if room is not None and room.owner == ctx.me:
            raise BusError("park_requires_release", "you hold the turn", "release or pass it first")
        members.set_intent(con, ctx.me, ctx.room.id, "parked")
        mail.silence(con, ctx.me, wakes.newest_offered(con, ctx.me))
        wakes.close_of(con, ctx.me, ctx.now)
    return Outcome(_registered(ctx, transport))


def _registered(ctx: Context, transport: str | None) -> dict[str, Any]:
    """What would wake the caller, truly."""
    con = ctx.bus.con
    reach = present.reach(ctx.bus, ctx.me)
    known = agents.get(con, ctx.me)
    names = reach.transports()
    result: dict[str, Any] = {
        "status": "standby_registered",
        "agent_id": ctx.me,
        "room_id": ctx.room.id,
        "can_self_wake": bool(names),
        "wake_transports": names,
        "transport": names[0] if names and transport != "manual" else "manual",
        "generation": known.generation if known else 1,
        "unread": mail.unread_count(con, ctx.me, [ctx.me]),
    }
    if not names:
        result["fallback_reason"] = "nothing is listening for this session"
        result["hint"] = "nothing would wake you: keep one `tt wait --park` running in the background"
    return result
