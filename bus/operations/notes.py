"""Notes of a room: added by members, listed by every handoff until they are resolved."""

from __future__ import annotations

from bus import clock, limits
from bus.errors import BusError
from bus.operations import present
from bus.operations.enter import seated
from bus.operations.outcome import Outcome, Wakes
from bus.store import db, notes, rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.enter import Context
    from bus.store.notes import Note


def add(ctx: Context, body: str, turn: int | None = None) -> Outcome:
    """Leave a note about the room, or about one of its turns. Raises invalid_turn_id, message_too_large."""
    seated(ctx)
    if len(body.encode()) > limits.NOTE_BYTES:
        raise BusError("message_too_large", f"a note has at most {limits.NOTE_BYTES} bytes", limit=limits.NOTE_BYTES)
    if turn is not None and not 0 < turn <= ctx.room.turn_id:
        raise BusError("invalid_turn_id", f"there was no turn {turn}", f"turns 1 to {ctx.room.turn_id} were given")
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        number = notes.add(con, ctx.room.id, turn, ctx.me, body, ctx.now)
        rooms.touch(con, ctx.room.id, ctx.now)
    result = {
        "status": "noted",
        "note_id": number,
        "turn_id": turn,
        "author_agent_id": ctx.me,
        "created_at": clock.iso(ctx.now),
        "resolved_at": None,
    }
    return Outcome(result, Wakes())


def list_notes(ctx: Context, *, every: bool = False, after: int | None = None, limit: int | None = None) -> Outcome:
    """Open notes of the room, or with `every` resolved ones too, oldest first."""
    most = limits.VIEW_MOST if every and limit is None else limit or limits.VIEW_NOTES
    found = notes.listing(ctx.bus.con, ctx.room.id, resolved=every, after=after or 0, limit=most + 1)
    result: dict[str, Any] = {
        "status": "notes",
        "room_id": ctx.room.id,
        "notes": [shown(n) for n in found[:most]],
    }
    if len(found) > most:
        result["more"] = True
    return Outcome(result)


def shown(note: Note) -> dict[str, Any]:
    """A note as JSON."""
    return {
        "note_id": note.id,
        "turn_id": note.turn,
        "author_agent_id": note.author,
        "created_at": clock.iso(note.at),
        "resolved_at": clock.iso_or_none(note.resolved_at),
        "body": note.body,
    }


def resolve(ctx: Context, note_id: int) -> Outcome:
    """Resolve a note; handoffs no longer list it. Raises note_not_found."""
    seated(ctx)
    with db.Write(ctx.bus.con) as con:
        found = notes.get(con, ctx.room.id, note_id)
        if found is None:
            raise BusError("note_not_found", f"this room has no note {note_id}", "see `tt notes list --all`")
        present.register(con, ctx)
        changed = notes.resolve(con, ctx.room.id, note_id, ctx.me, ctx.now)
    status = "resolved" if changed else "already_resolved"
    at = ctx.now if changed else found.resolved_at
    return Outcome({"status": status, "note_id": note_id, "resolved_at": clock.iso_or_none(at)})
