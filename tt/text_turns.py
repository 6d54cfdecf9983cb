"""Text of what is received and handed over: wait, try, take, inbox, standby, release, pass, assign."""

from __future__ import annotations

from tt import text_parts as parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Values = Mapping[str, Any]

# Why a look gave no turn, for people.
_WHY = {
    "solo_room": "nobody else is here; alone, use tt wait --claim",
    "auto_claim_disabled": "parked: a handoff waits, and is not claimed by itself",
    "lost_turn": "the turn was lost while waiting",
    "already_owner": "you have it already",
    "owner_gone": "its owner's process is gone",
    "owner_timeout": "its owner's lease is over",
    "owner_idle": "its owner has been idle for long",
    "direct_pass": "it was passed to you",
    "sequence": "you were next",
    "open_claim": "the room was free",
    "harness_gone": "its owner's process is gone",
}


def received(value: Values, paint: parts.Paint) -> list[str]:
    """Turn or no turn first, then the handoff, then what came."""
    status = value.get("status")
    head = {"your_turn": _turn, "takeover_available": _takeover, "closed": _closed}.get(str(status), _not_yet)
    lines = head(value, paint)
    lines += _handoffs(value, paint)
    lines += _mail(value, paint)
    return lines


def _turn(value: Values, paint: parts.Paint) -> list[str]:
    """It is my turn, and why."""
    again = " (said before)" if value.get("repeated") else ""
    turn = parts.word(value.get("turn_id"))
    lines = [paint(f"Your turn: turn {turn}{again}", "green") + _because(value)]
    if value.get("lease_expires_at"):
        lines.append(f"  lease ends {parts.ago(value['lease_expires_at'])}, and is renewed while you work")
    if value.get("revoked_agent_id"):
        lines.append(f"  taken from {parts.word(value['revoked_agent_id'])}")
    if value.get("interrupted"):
        lines += parts.labelled("interrupts", value["interrupted"])
    return lines


def _because(value: Values) -> str:
    """The reason in words."""
    reason = value.get("reason")
    return f" – {_WHY.get(str(reason), parts.word(reason))}" if reason else ""


def _not_yet(value: Values, paint: parts.Paint) -> list[str]:
    """Not my turn: whose it is, or for whom it is kept."""
    what = "Timed out, not your turn" if value.get("wake_reason") == "timeout" else "Not your turn"
    if value.get("wake_reason") == "event" and value.get("events"):
        what = "Mail, not your turn"
    lines = [paint(what, "yellow") + _because(value)]
    if value.get("current_owner"):
        lease = parts.pick(value, "lease_expires_at")
        until = f", lease ends {parts.ago(lease)}" if lease else ""
        lines.append(f"  owner: {parts.word(value['current_owner'])}{until}")
    if value.get("reserved_for"):
        lines.append(f"  reserved for: {parts.word(value['reserved_for'])}")
    if value.get("room_state") and not value.get("current_owner"):
        state = parts.word(value["room_state"])
        lines.append(f"  the room is {'free' if state == 'idle' else state}")
    return lines


def _takeover(value: Values, paint: parts.Paint) -> list[str]:
    """The turn may be taken."""
    head = paint("The turn can be taken over", "yellow") + _because(value)
    return [head, f"  owner: {parts.word(value.get('current_owner'))}", "  use: tt take"]


def _closed(_value: Values, paint: parts.Paint) -> list[str]:
    """The room is no more."""
    return [paint("The room was closed", "red")]


def _handoffs(value: Values, paint: parts.Paint) -> list[str]:
    """The handoff that comes with the turn, those before it, and the notes that are open."""
    found = [value["handoff"]] if value.get("handoff") else []
    found += value.get("handoffs") or value.get("earlier_handoffs") or []
    lines: list[str] = []
    for one in found:
        sender = one.get("from_agent_id") or value.get("from_agent_id")
        given = f"  {parts.ago(one['created_at'])}" if one.get("created_at") else ""
        lines.append(f"{paint('Handoff', 'bold')} from {parts.word(sender)}{paint(given, 'dim')}")
        lines += parts.handoff(one)
    notes = value.get("open_notes") or []
    if notes:
        ids = [parts.word(note.get("note_id") if isinstance(note, dict) else note) for note in notes]
        lines.append(f"open notes: {', '.join(ids)} (tt notes list)")
    return lines


def _mail(value: Values, paint: parts.Paint) -> list[str]:
    """The events of a result."""
    events = value.get("events") or []
    lines = parts.events(events, paint)
    if value.get("more"):
        lines.append("there is more: run it again")
    return lines


def inbox(value: Values, paint: parts.Paint) -> list[str]:
    """Unread mail, or that there is none."""
    events = value.get("events") or []
    lines = [paint(parts.several(len(events), "unread event"), "bold") if events else "Nothing unread"]
    return lines + _mail(value, paint)


def standby(value: Values, paint: parts.Paint) -> list[str]:
    """Parked, and what can wake me."""
    transport = parts.word(value.get("transport"))
    if value.get("can_self_wake"):
        return [paint("Standing by", "green") + f", woken by {transport}"]
    why = value.get("fallback_reason")
    reason = f" ({parts.word(why)})" if why else ""
    return [paint("Standing by", "yellow") + f", but nothing can wake me{reason}: look with tt inbox"]


def handed_over(value: Values, paint: parts.Paint) -> list[str]:
    """To whom the turn went."""
    whom = value.get("reserved_for")
    if whom:
        verb = "Passed to" if value.get("status") == "passed" else "Handed over, next is"
        lines = [paint(f"{verb} {parts.word(whom)}", "green")]
    else:
        lines = [paint("Released", "green") + ", nobody was next: the handoff waits in the room"]
    if value.get("routed_to_parked"):
        lines.append("  it is parked and was woken")
    elif value.get("no_active_waiters") and whom:
        lines.append("  nobody is waiting right now")
    parked = value.get("parked_hinted") or []
    if parked:
        lines.append(f"  parked, told about it: {', '.join(parts.word(one) for one in parked)}")
    return lines + delivery(value)


_REACHED = {
    "receiver": "its wait has it",
    "rewake": "it is woken with it",
    "monitor": "its monitor tells it",
    "endpoint": "sent to its client",
    "pending": "it was woken before and will find it",
    "waiting": "nobody is at that station; it waits there",
    "not_woken": "nobody was woken; it is read at the next tt wait, try or inbox",
    "unreachable": "nothing can wake it; it is read at its next tt wait, try or inbox",
}

# Reasons that only repeat the status.
_SAID = ("nothing is listening for it", "nobody is at this station")


def delivery(value: Values) -> list[str]:
    """What became of the wake."""
    status = value.get("delivery_status")
    lines = []
    if status:
        reason = value.get("reason") or value.get("delivery_reason")
        reason = None if reason in _SAID else reason
        why = f" ({parts.word(reason)})" if reason else ""
        lines.append(f"  {_REACHED.get(str(status), parts.word(status))}{why}")
    for one in value.get("deliveries") or []:
        whom = parts.word(parts.pick(one, "agent_id", "recipient", "to"))
        state = one.get("delivery_status")
        lines.append(f"  {whom}: {_REACHED.get(str(state), parts.word(state))}")
    if value.get("interrupt_status"):
        lines.append(f"  interrupt: {parts.word(value['interrupt_status'])}")
    return lines
