"""The stick as a state machine: what a look at the room means for the one who looks.

Pure. `evaluate` is the one evaluation behind `try` and every look of a `wait`; `due` says
whether the room itself must move on first.
"""

from __future__ import annotations

from bus import limits
from bus.records import Record
from bus.rules import fairness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.rules.fairness import Seat
    from bus.store.rooms import Room


class Stick(Record):
    """What is known about the turn of one room.

    `room` is the stored row; `pending`: a handoff waits for whoever holds the turn next;
    `owner_silent`: milliseconds since the owner's last command or hook; `owner_grace`: how
    long it must be silent once gone.
    """

    room: Room
    pending: bool = False
    owner_gone: bool = False
    owner_silent: int = 0
    owner_grace: int = limits.GONE_GRACE


class Decision(Record):
    """`kind` is grant, own, not_yet, takeover or step (the room itself is due).

    `deadline` is when the answer may change by itself, None when only an event can change it.
    """

    kind: str
    reason: str | None = None
    deadline: int | None = None


def evaluate(stick: Stick, seats: list[Seat], me: Seat, *, claim: bool, now: int) -> Decision:
    """What the room means for `me` now."""
    room = stick.room
    if room.owner == me.agent:
        return Decision("own")
    if room.owner is not None:
        return _owned_by_another(stick, now)
    if room.reserved_for == me.agent:
        return Decision("grant", room.reserved_why or "sequence")
    if room.reserved_for is not None:
        return _reserved_for_another(room, seats, now)
    if me.parked:
        return Decision("not_yet", "auto_claim_disabled" if stick.pending else None)
    if stick.pending:
        return _pending(room, seats, me, now)
    if not claim and alone(seats, me):
        return Decision("not_yet", "solo_room")
    return Decision("grant", "open_claim")


def alone(seats: list[Seat], me: Seat) -> bool:
    """No other member that could work here; consoles are observers and do not count."""
    return not any(seat.agent != me.agent and not seat.observer and seat.present and not seat.gone for seat in seats)


def _owned_by_another(stick: Stick, now: int) -> Decision:
    """Not yet, unless the owner may be replaced."""
    room = stick.room
    until = room.lease_until or 0
    if stick.owner_gone and stick.owner_silent >= stick.owner_grace:
        # A lease that is over is no deadline: one in the past makes every wait spin.
        return Decision("takeover", "owner_gone", until if until > now else None)
    if until <= now:
        return Decision("takeover", "owner_timeout")
    if stick.owner_gone:
        return Decision("not_yet", None, min(until, now + stick.owner_grace - stick.owner_silent))
    if stick.owner_silent >= limits.OWNER_IDLE:
        return Decision("takeover", "owner_idle", until)
    return Decision("not_yet", None, until)


def _reserved_for_another(room: Room, seats: list[Seat], now: int) -> Decision:
    """Not yet, until the reservation is over or the one it is for is proven gone."""
    if reservation_over(room, seats, now):
        return Decision("step")
    # One that is gone is waited for until its grace is over, not for the whole reservation.
    graces = [now + seat.grace_left for seat in seats if seat.agent == room.reserved_for and seat.gone]
    return Decision("not_yet", None, min([room.reserved_until or now, *graces]))


def reservation_over(room: Room, seats: list[Seat], now: int) -> bool:
    """Is the time up, or is there proof that the one it waits for will never come?"""
    if room.reserved_for is None:
        return False
    if room.reserved_until is not None and room.reserved_until <= now:
        return True
    return any(seat.agent == room.reserved_for and seat.vanished for seat in seats)


def _pending(room: Room, seats: list[Seat], me: Seat, now: int) -> Decision:
    """An idle room with a handoff: cooldown for who gave it, grace for who is fairer."""
    since = room.idle_since or 0
    if since > now:
        since = 0  # the clock went back: nobody waits for it to catch up
    if me.agent == room.prior_owner:
        until = since + limits.TAKE_BACK_COOLDOWN
        if now < until and not alone(seats, me):
            return Decision("not_yet", None, until)
        return Decision("grant", "sequence")
    until = since + limits.FAIRNESS_GRACE
    first = next(iter(fairness.candidates(seats, room.prior_owner)), None)
    if now < until and first is not None and first.agent != me.agent:
        return Decision("not_yet", None, until)
    return Decision("grant", "sequence")


def offer_time(seats: list[Seat], me: Seat, owner: str | None, since: int) -> int:
    """When a waiter may be offered a takeover: the fairest at once, each next one a while later."""
    waiting = [s for s in fairness.order(seats, owner) if s.waiting and not s.observer and s.agent != owner]
    place = next((n for n, seat in enumerate(waiting) if seat.agent == me.agent), len(waiting))
    return since + place * limits.TAKEOVER_OFFER


def since(stick: Stick, now: int) -> int:
    """When the owner became replaceable. A fixed time: counted from each look, the second waiter's turn never came."""
    if stick.owner_gone and stick.owner_silent >= stick.owner_grace:
        return now - stick.owner_silent + stick.owner_grace
    until = stick.room.lease_until or 0
    return until if until <= now else now - stick.owner_silent + limits.OWNER_IDLE
