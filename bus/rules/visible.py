"""How an event looks to a reader; pure."""

from __future__ import annotations

from bus import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.store.events import Event

SUBJECT_CHARS = 200
NOT_SHOWN = "reserved_until"  # kept in a claim, in milliseconds, for a grant that must be given back


def shown(event: Event, me: str, boxes: list[str], rooms: dict[int, str]) -> dict[str, Any]:
    """One event as JSON: who to whom, what, when. `boxes` are its addressees, `rooms` names rooms."""
    body = event.content()
    found: dict[str, Any] = {
        "event_seq": event.seq,
        "event_id": event.id,
        "type": event.type,
        "from": event.sender,
        "to": addressees(event, me, boxes),
        "created_at": clock.iso(event.at),
    }
    if event.sender_station:
        found["from_station"] = event.sender_station
    if event.room:
        found["room"] = rooms.get(event.room, "")
    if event.turn is not None:
        found["turn_id"] = event.turn
    if event.thread:
        found["thread"] = event.thread
    body.pop(NOT_SHOWN, None)
    return found | body | found  # whatever a body says, the head is the store's


def addressees(event: Event, me: str, boxes: list[str]) -> str | list[str]:
    """`you`, `room`, `bus`, or the boxes by name; a turn's box is nobody's name."""
    if me in boxes:
        return "you"
    if event.public:
        return "room" if event.room else "bus"
    names = [box.removeprefix("station:") for box in boxes if not box.startswith("turn:")]
    if names:
        return names if len(names) > 1 else names[0]
    return "next_holder" if boxes else "log"


def subject(event: Event) -> str:
    """One line that says what waits, for the notify file."""
    body = event.content()
    sayings = {
        "claim": f"the turn is yours (turn {event.turn})",
        "takeover": f"the turn is yours (turn {event.turn})",
        "turn_lost": f"you lost turn {event.turn}: {body.get('reason', '')}",
        "handoff_hint": "a handoff waits for somebody to claim it",
    }
    if isinstance(body.get("text"), str):
        return str(body["text"])[:SUBJECT_CHARS]
    return sayings.get(event.type, f"the turn is reserved for you: {_next_action(body)}")[:SUBJECT_CHARS]


def _next_action(body: dict[str, Any]) -> str:
    """What a handoff asks for."""
    handoff = body.get("handoff")
    return str(handoff.get("next_action", "")) if isinstance(handoff, dict) else ""
