"""Giving the turn: the compare-and-set, its announcement, and taking it back unprinted.

A grant is committed only with a guardian that already runs and holds the lock of the lease
(`bus.deliver.guardian` starts it). Announced means: the claim row was received, in the same
step as the handoff, after the flush.
"""

from __future__ import annotations

import os

from bus import clock, crash, ids, limits, process
from bus.operations import handover
from bus.operations.outcome import SYSTEM, Receipt, Wakes
from bus.records import Record
from bus.store import agents, db, events, mail, members, notes, rooms, wakes
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from bus.operations.enter import Context
    from bus.store.db import Bus
    from bus.store.events import Event
    from bus.store.rooms import Room


class Granted(Record):
    """A turn that was given. `result` is what to print, `receipt` what to mark afterwards."""

    lease_id: str
    turn_id: int
    result: dict[str, Any]
    receipt: Receipt
    wakes: Wakes


class Claim(Record):
    """A wish to hold the turn: the room as it was seen, why, and the guardian that stands ready."""

    seen: Room
    reason: str
    lease_id: str
    guardian_pid: int
    takes: bool = False
    why: str | None = None


class _LostRaceError(Exception):
    """Somebody else was faster; the transaction is undone."""


def new_lease() -> str:
    """The id of a lease, chosen before its guardian is started."""
    return ids.new_id("l", 12)


def commit(ctx: Context, claim: Claim) -> Granted | None:
    """Give the turn to the caller, or None when the room is no longer as it was seen.

    One transaction: turn, lease, guardian, claim event, and the wake that offers claim and handoff.
    """
    crash.point("before_grant_commit")
    now = clock.now()
    try:
        with db.Write(ctx.bus.con) as con:
            room, revoked = _write(con, ctx, claim, now)
    except _LostRaceError:
        return None
    crash.point("after_grant_commit")
    told = announce(ctx.bus.con, room, ctx.me)
    result = told.result | {"reason": claim.reason}
    if revoked:
        result["revoked_agent_id"] = revoked
    waking = Wakes(rooms=[room.id], boxes=[revoked] if revoked else [])
    return Granted(claim.lease_id, room.turn_id, result, told.receipt, waking)


def _write(con: sqlite3.Connection, ctx: Context, claim: Claim, now: int) -> tuple[Room, str | None]:
    """Everything of a grant; raises `_LostRaceError` when the fence does not hold."""
    seen = claim.seen
    member = members.get(con, ctx.me, seen.id)
    room = rooms.by_id(con, seen.id)
    if member is None or member.left_at is not None or room is None:
        raise _LostRaceError
    if (room.turn_id, room.owner, room.reserved_for) != (seen.turn_id, seen.owner, seen.reserved_for):
        raise _LostRaceError
    revoked = _revoke(con, ctx, room, claim, now) if claim.takes else None
    if not claim.takes and (room.owner is not None or room.reserved_for not in (None, ctx.me)):
        raise _LostRaceError
    _own(con, ctx, claim, now)
    given = rooms.by_id(con, seen.id)
    if given is None:
        raise _LostRaceError
    return given, revoked


def _own(con: sqlite3.Connection, ctx: Context, claim: Claim, now: int) -> None:
    """Claim event, compare-and-set, offer."""
    room = rooms.by_id(con, claim.seen.id)
    if room is None:
        raise _LostRaceError
    box = mail.turn_box(room.id)
    pending = mail.pending(con, box)
    body: dict[str, Any] = {"reason": claim.reason, "handoffs": pending, "from_agent_id": _giver(con, pending)}
    if room.reserved_for is not None:
        body["reserved_until"] = room.reserved_until
    if claim.why:
        body["why"] = claim.why
    kind = "takeover" if claim.takes else "claim"
    seq, _ = events.append(
        con, Draft(room.id, kind, ctx.me, now, body, sender_station=ctx.station(), turn=room.turn_id + 1)
    )
    lease = rooms.Lease(claim.lease_id, now + limits.LEASE, claim.guardian_pid, seq)
    if not rooms.own(con, room, ctx.me, lease, now):
        raise _LostRaceError
    mail.post(con, seq, [ctx.me], mail.MAY_JOIN)
    if pending:
        mail.void_hints(con, room.id, pending[0], now)
    members.held(con, ctx.me, room.id, room.turn_id + 1)
    members.set_intent(con, ctx.me, room.id, "active")
    agents.touch(con, ctx.me, now)
    _offer(con, ctx.me, seq, box, pending, now)


def _offer(con: sqlite3.Connection, me: str, seq: int, box: str, pending: list[int], now: int) -> None:
    """The wake row by which claim and handoff count as offered until they were printed."""
    known = agents.get(con, me)
    attempt = wakes.Attempt(
        agent=me,
        generation=known.generation if known else 1,
        route="grant",
        by=process.anchor(os.getpid()),
        upto=seq,
        at=now,
    )
    wake = wakes.begin(con, attempt)
    mail.cover(con, me, [seq, *pending], wake)
    mail.cover(con, box, pending, wake)


def _giver(con: sqlite3.Connection, pending: list[int]) -> str | None:
    """Who gave the newest pending handoff."""
    last = events.get(con, pending[-1]) if pending else None
    return last.sender if last is not None else None


def _revoke(con: sqlite3.Connection, ctx: Context, room: Room, claim: Claim, now: int) -> str | None:
    """A takeover ends the owner's turn, or somebody's reservation, and tells whom it took it from."""
    loser = room.owner or room.reserved_for
    if room.owner is not None:
        _pass_down(con, room)
    handover.free(con, room, now)
    if loser is None or loser == ctx.me:
        return None
    body = {"reason": claim.reason, "by": ctx.me, "why": claim.why, "path": room.path}
    draft = Draft(room.id, "turn_lost", ctx.me, now, body, sender_station=ctx.station(), turn=room.turn_id)
    seq, _ = events.append(con, draft)
    mail.post(con, seq, [loser], mail.MAY_JOIN)
    return loser


def _pass_down(con: sqlite3.Connection, room: Room) -> None:
    """The revoked owner's own handoff is handed to who takes over: it is still the newest there is."""
    claim = events.get(con, room.claim_seq or 0)
    given = claim.content().get("handoffs", []) if claim is not None else []
    for seq in given:
        mail.renew(con, mail.turn_box(room.id), seq)


def announce(con: sqlite3.Connection, room: Room, me: str, *, repeated: bool = False) -> Granted:
    """What the owner of a room is told of its turn, and what that counts as received."""
    claim = events.get(con, room.claim_seq or 0)
    body = claim.content() if claim is not None else {}
    handed = events.several(con, body.get("handoffs", []))
    result: dict[str, Any] = {
        "status": "your_turn",
        "room_id": room.id,
        "path": room.path,
        "turn_id": room.turn_id,
        "lease_id": room.lease_id,
        "lease_expires_at": clock.iso_or_none(room.lease_until),
        "guardian_pid": room.guardian_pid,
        "reason": body.get("reason"),
        "from_agent_id": body.get("from_agent_id"),
        "handoff": handoff(handed[-1]) if handed else None,
    }
    if len(handed) > 1:
        result["earlier_handoffs"] = [handoff(event) for event in reversed(handed[:-1])]
    open_notes = notes.unresolved(con, room.id)
    if open_notes:
        result["open_notes"] = open_notes
    if repeated:
        result["repeated"] = True
    rows = [(me, room.claim_seq or 0)]
    for event in handed:
        rows += [(mail.turn_box(room.id), event.seq), (me, event.seq)]
    told = Receipt(agent=me, route="grant", mail=rows, claim=room.claim_seq)
    return Granted(room.lease_id or "", room.turn_id, result, told, Wakes())


def handoff(event: Event) -> dict[str, Any]:
    """A handoff as JSON, with who gave it and when."""
    body: dict[str, Any] = event.content().get("handoff", {})
    head = {"event_seq": event.seq, "from_agent_id": event.sender, "created_at": clock.iso(event.at)}
    return head | body | head  # a handoff cannot say that somebody else wrote it


def announced(con: sqlite3.Connection, room: Room) -> bool:
    """Does the owner know of its turn?"""
    if room.owner is None or room.claim_seq is None:
        return False
    claim = mail.letter(con, room.owner, room.claim_seq)
    return claim is not None and claim.received_at is not None


def give_back(bus: Bus, lease_id: str, room_id: int) -> Wakes:
    """A grant whose result could not be printed: reservation and handoff as before, fenced by the lease."""
    now = clock.now()
    with db.Write(bus.con) as con:
        room = rooms.by_id(con, room_id)
        if room is None or room.lease_id != lease_id or announced(con, room):
            return Wakes()
        owner, claim = room.owner or "", events.get(con, room.claim_seq or 0)
        given = claim.content() if claim is not None else {}
        prior = room.prior_owner
        handover.free(con, room, now)
        rooms.restore_prior(con, room.id, prior)
        pending = mail.pending(con, mail.turn_box(room.id))
        if "reserved_until" in given and pending:
            return handover.reserve(con, room.id, owner, seq=pending[-1], why=given["reason"], now=now).wakes
    return Wakes(rooms=[room_id])


class Vanished(Record):
    """What the guardian knows of a holder that is gone."""

    lease_id: str
    room_id: int
    owner: str
    seen: dict[str, Any]


def surrender(bus: Bus, gone: Vanished) -> Wakes | None:
    """Only guardians call this: the holder is proven gone and was silent for its grace.

    Fenced by the lease, and the proof is read again. None when the turn is not to be surrendered.
    """
    from bus.operations import present  # the guardian starts without it

    now = clock.now()
    owner = agents.get(bus.con, gone.owner)
    if owner is None:
        return None
    sign = present.Sign(bus, owner, now)
    if not sign.gone or sign.silent < present.grace(owner):
        return None
    seats = present.seats(bus, gone.room_id, now)
    with db.Write(bus.con) as con:
        room = rooms.by_id(con, gone.room_id)
        again = agents.get(con, gone.owner)
        if room is None or room.lease_id != gone.lease_id or again is None or again.last_seen != owner.last_seen:
            return None
        handover.recover(con, room, now, "harness_gone", gone.seen)
        handover.free(con, room, now, idle_since=owner.last_seen)
        body = {"reason": "harness_gone", "path": room.path}
        seq, _ = events.append(con, Draft(room.id, "turn_lost", SYSTEM, now, body, turn=room.turn_id))
        mail.post(con, seq, [gone.owner], mail.NO_WAKE)
        return handover.appoint(con, room.id, seats, gone.owner, now).wakes
