"""Owner operations: release, pass, assign. Each is fenced by the turn that was announced to its caller."""

from __future__ import annotations

from bus.errors import BusError
from bus.operations import handover, present, recipients
from bus.operations.enter import seated
from bus.operations.outcome import Outcome
from bus.store import db, events, mail, members, notes, rooms
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from bus.operations.enter import Context
    from bus.rules.fairness import Seat
    from bus.store.rooms import Room


def fence(con: sqlite3.Connection, ctx: Context, turn: int | None) -> Room:
    """The room as it is now, if the caller owns it by a turn that it knows of.

    Known: the claim was received, or the caller names the turn. Raises stale_lease when the
    caller holds no turn, turn_mismatch when it holds another than it thinks.
    """
    room = rooms.by_id(con, ctx.room.id)
    if room is None:
        raise BusError("room_closed", f"the room at {ctx.room.path} was closed", "join it anew with `tt join`")
    told = {"agent_id": ctx.me, "turn_id": room.turn_id, "current_owner": room.owner}
    if room.owner != ctx.me:
        holder = f"{room.owner} holds it" if room.owner else "nobody holds it"
        hint = "look with `tt state`; get it with `tt wait`"
        raise BusError("stale_lease", f"{ctx.me} does not hold the turn: {holder}", hint, **told)
    if turn is not None:
        if turn != room.turn_id:
            raise BusError("turn_mismatch", f"this is turn {room.turn_id}, not {turn}", "look with `tt state`", **told)
        return room
    claim = mail.letter(con, ctx.me, room.claim_seq or 0)
    if claim is None or claim.received_at is None:
        message = f"turn {room.turn_id} is yours, but you were not told of it yet"
        raise BusError("turn_mismatch", message, f"run `tt try` first, or name it: --turn {room.turn_id}", **told)
    return room


def release(ctx: Context, handoff: dict[str, Any], turn: int | None = None) -> Outcome:
    """Give the turn to whoever is fairest; the handoff waits for whoever holds it next."""
    seated(ctx)
    seats = present.seats(ctx.bus, ctx.room.id, ctx.now)
    with db.Write(ctx.bus.con) as con:
        room = fence(con, ctx, turn)
        seq = _end(con, ctx, room, "release", handoff, {})
        found = handover.appoint(con, room.id, seats, ctx.me, ctx.now)
    result = {
        "status": "released",
        "room_id": room.id,
        "turn_id": room.turn_id,
        "event_seq": seq,
        "reserved_for": found.reserved_for,
        "no_active_waiters": found.reserved_for is None,
        "parked_hinted": found.hinted,
    }
    return Outcome(result, found.wakes)


def pass_on(ctx: Context, handoff: dict[str, Any], to: str | None = None, turn: int | None = None) -> Outcome:
    """Release under another name; with a target, assign to it."""
    if to is None or to == "next":
        outcome = release(ctx, handoff, turn)
        outcome.result["status"] = "passed"
        return outcome
    return assign(ctx, to, handoff, turn, kind="pass")


def assign(  # a verb's options
    ctx: Context,
    target: str,
    handoff: dict[str, Any],
    turn: int | None = None,
    *,
    operator_requested: bool = False,
    kind: str = "assign",
) -> Outcome:
    """Give the turn to a named member, parked or not. `next` is the fairest one.

    Raises unknown_recipient, ambiguous_recipient, unknown_member, and recipient_unreachable
    unless a person asked for it.
    """
    seated(ctx)
    if target == "next":
        outcome = release(ctx, handoff, turn)
        outcome.result["status"] = "passed"
        return outcome
    chosen = recipients.member(ctx, target)
    seats = present.seats(ctx.bus, ctx.room.id, ctx.now)
    seat = next((seat for seat in seats if seat.agent == chosen), None)
    _refuse_target(ctx, chosen, seat, operator_requested=operator_requested)
    with db.Write(ctx.bus.con) as con:
        room = fence(con, ctx, turn)
        member = members.get(con, chosen, room.id)
        if member is None or member.left_at is not None:  # it left since its seat was probed
            raise _no_member(chosen)
        seq = _end(con, ctx, room, kind, handoff, {"to_agent_id": chosen})
        found = handover.reserve(con, room.id, chosen, seq=seq, why="direct_pass", now=ctx.now)
    result = {
        "status": "passed",
        "room_id": room.id,
        "turn_id": room.turn_id,
        "event_seq": seq,
        "reserved_for": chosen,
        "no_active_waiters": False,
        "parked_hinted": [],
    }
    if seat is not None and seat.parked:
        result["routed_to_parked"] = True
    return Outcome(result, found.wakes)


def _no_member(chosen: str) -> BusError:
    """Only a member of the room can be given its turn."""
    return BusError("unknown_member", f"{chosen} is no member of this room", "look with `tt state`", target=chosen)


def _refuse_target(ctx: Context, chosen: str, seat: Seat | None, *, operator_requested: bool) -> None:
    """Say why this member cannot be given the turn."""
    if chosen == ctx.me:
        raise BusError("unknown_target", "you hold the turn already", "name another member", target=chosen)
    if seat is None:
        raise _no_member(chosen)
    if seat.observer:
        raise BusError("observer_cannot_hold_turn", f"{chosen} is a console, which only watches", target=chosen)
    if seat.gone or (not seat.reachable and not operator_requested):
        why = "its process is gone" if seat.gone else "nothing would wake it"
        raise BusError(
            "recipient_unreachable",
            f"{chosen} cannot be reached: {why}",
            "release instead, or name another member" if seat.gone else "release instead, or --operator-requested",
            target=chosen,
        )


def _end(
    con: sqlite3.Connection,
    ctx: Context,
    room: Room,
    kind: str,
    handoff: dict[str, Any],
    more: dict[str, Any],
) -> int:
    """Write the handoff and free the room; the number of the event."""
    present.register(con, ctx)
    open_notes = notes.unresolved(con, room.id)
    told = handoff | {"notes": open_notes} if open_notes else handoff
    body = {"handoff": told, **more}
    draft = Draft(room.id, kind, ctx.me, ctx.now, body, sender_station=ctx.station(), turn=room.turn_id)
    seq, _ = events.append(con, draft)
    handover.free(con, room, ctx.now)
    members.set_intent(con, ctx.me, room.id, "active")
    mail.post(con, seq, [mail.turn_box(room.id)], mail.NO_WAKE)
    return seq
