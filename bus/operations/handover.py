"""What every way of ending a turn shares: the handoff stays, the next one is found and told.

Called inside the verb's transaction, with seats that were probed before it. Kept true: a
handoff is lost by none of leave, kick, session end, takeover, expiry or an unprinted grant.
"""

from __future__ import annotations

from bus import limits
from bus.operations.outcome import SYSTEM, Wakes
from bus.records import Record
from bus.rules import fairness
from bus.store import events, mail, members, rooms, wakes
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from bus.rules.fairness import Seat
    from bus.store.rooms import Room


class Next(Record):
    """Who was found, and whom to wake."""

    reserved_for: str | None
    hinted: list[str]
    wakes: Wakes


def free(con: sqlite3.Connection, room: Room, now: int, *, idle_since: int | None = None) -> None:
    """Take the turn from its owner, or the reservation from its reservee: the room is idle.

    A claim or a reservation that was not shown yet must never be shown later; the handoff that
    an unshown grant had offered is pending again.
    """
    if room.owner is not None and room.claim_seq is not None:
        claim = mail.letter(con, room.owner, room.claim_seq)
        mail.void(con, room.owner, room.claim_seq, now)
        if claim is not None and claim.wake_id is not None:
            wakes.close(con, claim.wake_id, now)
    if room.reserved_for is not None and room.reserved_seq is not None:
        mail.void(con, room.reserved_for, room.reserved_seq, now)
    rooms.set_idle(con, room.id, now if idle_since is None else idle_since)


def recover(con: sqlite3.Connection, room: Room, now: int, why: str, seen: dict[str, Any]) -> int | None:
    """Make sure that something is handed over for a turn whose holder is gone.

    What it never received is pending again and enough. Else a recovery handoff names the
    vanished holder, its last known state and what it had been handed. `seen`: branch, changed_files.
    """
    box = mail.turn_box(room.id)
    if room.owner is None or mail.pending(con, box):
        return None
    last = last_handoff(con, room)
    handoff: dict[str, Any] = {
        "status": f"{room.owner} held turn {room.turn_id} and is gone ({why}). Its work is unfinished and unreviewed.",
        "next_action": "Look at the working tree (git status, git diff) before you go on with what it was doing.",
        "recovery": {"agent_id": room.owner, "turn_id": room.turn_id, "reason": why, **seen},
    }
    if last is not None:
        handoff["recovery"]["last_handoff"] = last
    draft = Draft(room.id, "handoff", SYSTEM, now, {"handoff": handoff}, turn=room.turn_id)
    seq, _ = events.append(con, draft)
    mail.post(con, seq, [box], mail.NO_WAKE)
    return seq


def last_handoff(con: sqlite3.Connection, room: Room) -> dict[str, Any] | None:
    """The handoff that the present owner was given with its turn."""
    claim = events.get(con, room.claim_seq) if room.claim_seq is not None else None
    if claim is None:
        return None
    for event in reversed(events.several(con, claim.content().get("handoffs", []))):
        found: dict[str, Any] = event.content().get("handoff", {})
        return found
    return None


def appoint(con: sqlite3.Connection, room_id: int, seats: list[Seat], prior: str | None, now: int) -> Next:
    """Reserve an idle turn for the fairest candidate that can be reached, or leave it idle with hints.

    Nothing to do without a pending handoff: there is nothing to hand over. The seats were probed
    before the transaction: whoever left or was kicked since then must not be given the turn.
    """
    here = {member.agent for member in members.of_room(con, room_id)}
    seats = [seat for seat in seats if seat.agent in here]
    pending = mail.pending(con, mail.turn_box(room_id))
    if not pending:
        return Next(None, [], Wakes(rooms=[room_id]))
    chosen = fairness.appointed(seats, prior)
    if chosen is not None:
        return reserve(con, room_id, chosen.agent, seq=pending[-1], why="sequence", now=now)
    hinted = _hint(con, room_id, seats, now)
    return Next(None, hinted, Wakes(rooms=[room_id], boxes=hinted))


def reserve(con: sqlite3.Connection, room_id: int, agent: str, *, seq: int, why: str, now: int) -> Next:
    """Reserve the turn for one agent and tell it, by the event that carries the handoff."""
    rooms.reserve(con, room_id, agent, until=now + limits.RESERVATION, why=why, seq=seq)
    mail.post(con, seq, [agent], mail.MAY_JOIN)
    return Next(agent, [], Wakes(rooms=[room_id], boxes=[agent]))


class Leaver(Record):
    """Who holds nothing any more, and why. `seen`: branch and changed_files as they were seen last."""

    agent: str
    why: str
    seen: dict[str, Any]


def give_up(con: sqlite3.Connection, room: Room, gone: Leaver, seats: list[Seat], now: int) -> Wakes:
    """A turn or reservation of somebody who leaves, ends or is cleared goes on to who comes next."""
    if gone.agent not in (room.owner, room.reserved_for):
        return Wakes()
    if room.owner == gone.agent:
        recover(con, room, now, gone.why, gone.seen)
    free(con, room, now)
    prior = gone.agent if room.owner == gone.agent else room.prior_owner  # whose handoff it is: no candidate for it
    others = [seat for seat in seats if seat.agent != gone.agent]
    return appoint(con, room.id, others, prior, now).wakes


def _hint(con: sqlite3.Connection, room_id: int, seats: list[Seat], now: int) -> list[str]:
    """Tell each parked member once about this handoff."""
    room = rooms.by_id(con, room_id)
    if room is None:
        return []
    told = [
        seat.agent
        for seat in seats
        if seat.parked
        and not (seat.observer or seat.gone)
        and seat.agent != room.prior_owner
        and not events.noticed(con, room_id, "handoff_hint", seat.agent, room.turn_id)
    ]
    if told:
        seq, _ = events.append(con, hint(room, now))
        mail.post(con, seq, told, mail.MAY_JOIN)
    return told


def hint(room: Room, now: int) -> Draft:
    """The event that tells a parked member of a pending handoff."""
    return Draft(room.id, "handoff_hint", SYSTEM, now, {"hint": "claim it with `tt wait`"}, turn=room.turn_id)


def expire(con: sqlite3.Connection, room: Room, seats: list[Seat], now: int) -> Next:
    """A reservation is over: one event, the handoff stays, the next one is found. Never a takeover."""
    passed_over = room.reserved_for
    free(con, room, now)
    body = {"agent_id": passed_over}
    events.append(con, Draft(room.id, "reservation_expired", SYSTEM, now, body, turn=room.turn_id))
    others = [seat for seat in seats if seat.agent != passed_over]
    return appoint(con, room.id, others, room.prior_owner, now)
