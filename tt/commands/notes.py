"""`notes add`, `notes list`, `notes resolve`."""

from __future__ import annotations

from bus import limits
from tt import body, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add(args: dict[str, Any]) -> int:
    """Leave a note in the room, or with one turn of it."""
    from bus.operations import notes

    text = body.message(args, limits.NOTE_BYTES, "note")
    return run.write(args, lambda ctx: notes.add(ctx, text, turn=args["turn"]))


def list_notes(args: dict[str, Any]) -> int:
    """Notes of the room."""
    from bus.operations import notes

    return run.read(
        args,
        lambda ctx: notes.list_notes(ctx, every=args["all"], after=args["after"], limit=args["limit"]),
    )


def resolve(args: dict[str, Any]) -> int:
    """Mark a note as settled."""
    from bus.operations import notes

    return run.write(args, lambda ctx: notes.resolve(ctx, args["note_id"]))
