"""What `try` and `wait` answer: the result as JSON, and the receipt that goes with it."""

from __future__ import annotations

from bus import clock
from bus.operations import grant, handover, looking, receive
from bus.operations.outcome import SYSTEM, Outcome, Receipt
from bus.store import events
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.grant import Granted
    from bus.operations.looking import Look
    from bus.store.db import Bus
    from bus.store.rooms import Room

ONE_SUCCESSOR = "act on this, then start exactly one new `tt wait`"


def granted(bus: Bus, me: str, seen: Look, given: Granted, route: str, wake_reason: str = "turn") -> Outcome:
    """`your_turn`, with what is unread. The handoff stands in its own field, not among the events."""
    hidden = {seq for _, seq in given.receipt.mail}
    told = receive.receipt(seen.batch, me, route)
    result = given.result | _events(bus, me, seen, wake_reason, hidden)
    if given.result.get("repeated"):
        result["hint"] = "you were given this turn before, but were not told"
    else:
        result["hint"] = "work, then `tt release --status … --next-action …`"
    both = told.replace(mail=list(dict.fromkeys(told.mail + given.receipt.mail)), claim=given.receipt.claim)
    return Outcome(result, given.wakes, both)


def owned(bus: Bus, me: str, seen: Look, route: str, wake_reason: str) -> Outcome:
    """The turn is the caller's already: told again when it never knew, `already_owner` else."""
    given = grant.announce(bus.con, _room(seen), me, repeated=not seen.announced)
    if seen.announced:
        given.result["reason"] = "already_owner"
        given.receipt = Receipt(agent=me, route=route)
    return granted(bus, me, seen, given, route, wake_reason)


def not_yet(bus: Bus, me: str, seen: Look, route: str, wake_reason: str, *, park: bool = False) -> Outcome:
    """Not the caller's turn: how the room stands, and what is unread."""
    room = _room(seen)
    reason = _reason(seen)
    result: dict[str, Any] = {
        "status": "not_yet",
        "room_id": room.id,
        "path": room.path,
        "room_state": room.state,
        "turn_id": room.turn_id,
    }
    if room.owner:
        result["current_owner"] = room.owner
        result["lease_expires_at"] = clock.iso_or_none(room.lease_until)
    if room.reserved_for:
        result["reserved_for"] = room.reserved_for
        result["reserved_until"] = clock.iso_or_none(room.reserved_until)
    if reason:
        result["reason"] = reason
    told = receive.receipt(seen.batch, me, route)
    if reason == "auto_claim_disabled":
        if not events.noticed(bus.con, room.id, "handoff_hint", me, room.turn_id):
            told.notices = [handover.hint(room, room.active_at)]
        result["hint"] = "a handoff waits: claim it with `tt wait`"
    elif not park and route == "receiver":
        result["hint"] = ONE_SUCCESSOR
    return Outcome(result | _events(bus, me, seen, wake_reason, set()), receipt=told)


def takeover(bus: Bus, me: str, seen: Look, route: str) -> Outcome:
    """The owner may be replaced."""
    room = _room(seen)
    reason = seen.decision.reason
    result: dict[str, Any] = {
        "status": "takeover_available",
        "room_id": room.id,
        "path": room.path,
        "turn_id": room.turn_id,
        "reason": reason,
        "current_owner": room.owner,
        "lease_expires_at": clock.iso_or_none(room.lease_until),
        "hint": "take it with `tt take --reason …`, or wait on",
    }
    told = receive.receipt(seen.batch, me, route)
    if reason not in looking.IDLE_REASONS:
        told.notices = [Draft(room.id, "takeover_offer", SYSTEM, room.active_at, {"reason": reason}, turn=room.turn_id)]
    return Outcome(result | _events(bus, me, seen, "turn", set()), receipt=told)


def closed(bus: Bus, me: str, seen: Look, path: str) -> Outcome:
    """The room was archived."""
    result = {"status": "closed", "path": path, "hint": "the room was closed: join it anew with `tt join`"}
    return Outcome(result | _events(bus, me, seen, "closed", set()), receipt=receive.receipt(seen.batch, me, "try"))


def _events(bus: Bus, me: str, seen: Look, wake_reason: str, hidden: set[int]) -> dict[str, Any]:
    """The part that all answers share."""
    found = [item.event for item in seen.batch.items if item.event.seq not in hidden]
    shared: dict[str, Any] = {"events": receive.shown(bus.con, me, found)}
    if seen.batch.more:
        shared["more"] = True
    return shared | {"cursor_event_seq": seen.newest, "wake_reason": wake_reason}


def _reason(seen: Look) -> str | None:
    """Why not: an event may say it better than the stick."""
    types = {item.event.type for item in seen.batch.items}
    if "turn_lost" in types:
        return "lost_turn"
    if "handoff_hint" in types:
        return "auto_claim_disabled"
    return seen.decision.reason


def _room(seen: Look) -> Room:
    """The room that was seen; closed ones have an answer of their own."""
    if seen.room is None:
        raise ValueError("a closed room has no turn")
    return seen.room
