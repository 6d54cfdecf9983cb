"""Text of rooms, members, events, messages and notes."""

from __future__ import annotations

from tt import text_parts as parts
from tt.text_turns import delivery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Values = Mapping[str, Any]


def join(value: Values, paint: parts.Paint) -> list[str]:
    """Who I am here, and who else."""
    verb = "Joined" if value.get("joined_existing_room") else "Made and joined"
    station = f", station {parts.word(value['station'])}" if value.get("station") else ""
    lines = [
        paint(f"{verb} {parts.word(value.get('path'))}", "green"),
        f"  as {parts.word(value.get('agent_id'))}{station}",
    ]
    if value.get("room_state"):
        held = value["room_state"] == "owned" and not value.get("current_owner")
        lines.append("  somebody has the turn" if held else f"  the room is {_standing(value)}")
    lines += members(value.get("members") or [], value.get("agent_id"))
    lines += _warning(value, paint)
    return lines


def _warning(value: Values, paint: parts.Paint) -> list[str]:
    """One warning or several."""
    found = value.get("warning") or value.get("warnings") or []
    several = [found] if isinstance(found, str) else found
    return [f"{paint('warning', 'yellow')}: {parts.word(one)}" for one in several]


def members(values: Iterable[Values], me: object = None) -> list[str]:
    """A roster: who, where, how, seen when."""
    rows = []
    for one in values:
        agent = parts.pick(one, "agent_id", "id")
        role = "observer" if one.get("observer") else parts.word(one.get("status"))
        seen = parts.pick(one, "last_seen_at")
        seen_text = f"seen {parts.ago(seen)}" if seen else ""
        focus = parts.word(one["focus"]) if one.get("focus") else ""
        rows.append((agent, one.get("station"), role, "(you)" if agent == me else "", seen_text, focus))
    return parts.table(rows, 4)


def leave(value: Values, paint: parts.Paint) -> list[str]:
    """Left, and what remains."""
    if value.get("status") == "room_deleted":
        return [paint("Left", "green") + "; nobody is left, so the room was archived"]
    kept = [parts.word(one).replace("_", " ") for one in value.get("kept_for") or []]
    stays = f"; the room stays for: {', '.join(kept)}" if kept else ""
    return [paint("Left", "green") + _remaining(value) + stays]


def kick(value: Values, paint: parts.Paint) -> list[str]:
    """Removed, and what remains."""
    whom = parts.word(parts.pick(value, "kicked_agent_id", "target_agent_id", "agent_id"))
    if value.get("status") == "room_deleted":
        return [paint(f"Removed {whom}", "green") + "; nobody is left, so the room was archived"]
    return [paint(f"Removed {whom}", "green") + _remaining(value)]


def _remaining(value: Values) -> str:
    """How many stay."""
    left = value.get("remaining_members")
    if isinstance(left, list):
        left = len(left)
    if not isinstance(left, int):
        return ""
    if not left:
        return "; nobody is left"
    return f"; {parts.several(left, 'member')} {'stays' if left == 1 else 'stay'}"


def rooms(value: Values, paint: parts.Paint) -> list[str]:
    """Rooms, one a line."""
    found = value.get("rooms") or []
    if not found:
        return ["No rooms here (tt join makes one)", *hidden(value)]
    lines: list[str] = []
    for room in found:
        count = room.get("members")
        size = len(count) if isinstance(count, list) else count
        lines.append(paint(parts.word(room.get("path")), "bold"))
        people = parts.several(size, "member") if isinstance(size, int) else parts.word(size)
        lines.append(f"  {_standing(room)} · {people} · {parts.ago(room.get('updated_at'))}")
    lines += [
        f"{paint('unreadable', 'red')}: {parts.word(one.get('bus'))}, {parts.word(one.get('error'))}"
        for one in value.get("unreadable") or []
    ]
    return lines + hidden(value)


def _standing(room: Values) -> str:
    """Who has the turn of a room."""
    state = parts.word(parts.pick(room, "derived", "state", "room_state"))
    owner = parts.pick(room, "owner", "current_owner", "owner_agent_id")
    turn = f", turn {parts.word(room['turn_id'])}" if room.get("turn_id") else ""
    if owner:
        lease = room.get("lease_expires_at")
        until = f", lease ends {parts.ago(lease)}" if lease else ""
        mood = f" ({state})" if state not in ("owned", "-") else ""
        return f"owned by {parts.word(owner)}{mood}{turn}{until}"
    if room.get("reserved_for"):
        return f"reserved for {parts.word(room['reserved_for'])}{turn}"
    return f"{'free' if state == 'idle' else state}{turn}"


def state(value: Values, paint: parts.Paint) -> list[str]:
    """The room and its members."""
    room = value.get("room") or {}
    lines = [paint(parts.word(room.get("path")), "bold"), f"  {_standing(room)}"]
    if room.get("pending_handoffs"):
        lines.append(f"  {parts.several(room['pending_handoffs'], 'handoff')} waiting for whoever is next")
    if room.get("open_notes"):
        lines.append(f"  {parts.several(len(room['open_notes']), 'open note')} (tt notes list)")
    return lines + members(value.get("members") or [], value.get("agent_id")) + hidden(value)


def hidden(value: Values) -> list[str]:
    """What a default view left out."""
    found = value.get("hidden")
    if not isinstance(found, dict):
        return []
    count = found.get("older_count") or (found.get("total_count") or 0) - (found.get("shown_count") or 0)
    return [f"  {count} more with --all"] if count else []


def events(value: Values, paint: parts.Paint) -> list[str]:
    """The log."""
    found = value.get("events") or []
    lines = parts.events(found, paint) or ["No events"]
    return lines + hidden(value) + (["there is more: use --after or --limit"] if value.get("more") else [])


def sent(value: Values, paint: parts.Paint) -> list[str]:
    """Sent, and how it reaches its receiver."""
    return [paint("Sent", "green") + f" as #{parts.word(value.get('event_seq'))}", *delivery(value)]


def note(value: Values, paint: parts.Paint) -> list[str]:
    """One note."""
    verb = "Resolved" if value.get("resolved_at") else "Noted"
    verb = "Was resolved before" if value.get("status") == "already_resolved" else verb
    return [paint(verb, "green") + f": {parts.word(value.get('note_id'))}"]


def notes(value: Values, paint: parts.Paint) -> list[str]:
    """Notes with their text."""
    found = value.get("notes") or []
    if not found:
        return ["No notes"]
    lines: list[str] = []
    for one in found:
        turn = f", turn {parts.word(one['turn_id'])}" if one.get("turn_id") is not None else ""
        done = ", resolved" if one.get("resolved_at") else ""
        author = parts.word(parts.pick(one, "author_agent_id", "author"))
        when = parts.ago(one.get("created_at"))
        lines.append(paint(f"{parts.word(one.get('note_id'))}", "cyan") + f"  {author}, {when}{turn}{done}")
        lines += parts.block(parts.pick(one, "body", "text") or "")
    return lines + hidden(value)
