"""One look at a room by one agent: what is unread, and what the stick says. Writes nothing.

Seats are probed only when the rules need them: a hundred waits that are woken by one message
must not probe a hundred members each.
"""

from __future__ import annotations

from bus import locks
from bus.errors import BusError
from bus.operations import grant, present, receive
from bus.records import Record
from bus.rules import turn
from bus.rules.fairness import Seat
from bus.store import agents, events, mail, members, rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.receive import Batch
    from bus.rules.turn import Decision
    from bus.store.db import Bus
    from bus.store.rooms import Room


IDLE_REASONS = ("owner_idle",)  # reported by a try or an expired time-out, never the end of a wait


class Wish(Record):
    """What the caller wants of the turn: `park` never takes it, `claim` takes it also alone."""

    park: bool = False
    claim: bool = False


class Look(Record):
    """What was seen. `announced` is about a turn of one's own; `offer_at` when a takeover may be offered."""

    room: Room | None
    decision: Decision
    batch: Batch
    newest: int
    announced: bool = False
    guarded: bool = True
    offer_at: int | None = None

    @property
    def mine(self) -> bool:
        """Is the turn the caller's?"""
        return self.decision.kind == "own"


def look(bus: Bus, me: str, room_id: int, wish: Wish, now: int) -> Look:
    """Look once. Raises unknown_member when the caller is no member any more."""
    con = bus.con
    batch = receive.look(con, me)
    newest = events.newest(con)
    room = rooms.by_id(con, room_id)
    if room is None:
        return Look(None, turn.Decision("closed"), batch, newest)
    member = members.get(con, me, room_id)
    if member is None or member.left_at is not None:
        raise removed(bus, me, room)
    stick = _stick(bus, room, now)
    seats = present.seats(bus, room_id, now) if _needs_seats(room, me, wish) else []
    mine = next((seat for seat in seats if seat.agent == me), None) or Seat(me, member.rank, member.last_turn)
    decision = turn.evaluate(stick, seats, mine.replace(parked=wish.park), claim=wish.claim, now=now)
    found = Look(room, decision, batch, newest)
    if decision.kind == "own":
        found.announced = grant.announced(con, room)
    if room.lease_id is not None:
        found.guarded = (room.lease_until or 0) > now and locks.held(bus.lease_lock(room.lease_id))
    if decision.kind == "takeover":
        found.offer_at = turn.offer_time(present.seats(bus, room_id, now), mine, room.owner, turn.since(stick, now))
    return found


def _needs_seats(room: Room, me: str, wish: Wish) -> bool:
    """Only a room that is free or reserved for another is decided by who else is there."""
    if room.owner is not None or room.reserved_for == me:
        return False
    return room.reserved_for is not None or not wish.park


def _stick(bus: Bus, room: Room, now: int) -> turn.Stick:
    """The facts about the turn."""
    stick = turn.Stick(room, pending=bool(mail.pending(bus.con, mail.turn_box(room.id))))
    owner = agents.get(bus.con, room.owner) if room.owner is not None else None
    if owner is not None:
        sign = present.Sign(bus, owner, now)
        stick.owner_gone = sign.gone
        stick.owner_silent = sign.silent if sign.gone else max(0, now - owner.last_seen)
        stick.owner_grace = present.grace(owner)
    return stick


def removed(bus: Bus, me: str, room: Room) -> BusError:
    """The caller's membership ended while it was looking."""
    member = members.get(bus.con, me, room.id)
    code = "not_joined" if member is None or member.left_why == "left" else "unknown_member"
    return BusError(
        code,
        f"{me} is no member of the room at {room.path}",
        "join it with `tt join`",
        agent_id=me,
        path=room.path,
        reason=member.left_why if member else None,
    )


def told_before(bus: Bus, me: str, seen: Look, kind: str) -> bool:
    """Was the caller told this once already about this turn?"""
    return seen.room is not None and events.noticed(bus.con, seen.room.id, kind, me, seen.room.turn_id)
