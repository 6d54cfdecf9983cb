"""Notes of a room, listed by every handoff until somebody resolves them."""

from __future__ import annotations

from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


class Note(Record):
    """One row; `turn` is None for a note about the room as a whole."""

    id: int
    room: int
    turn: int | None
    author: str
    body: str
    at: int
    resolved_at: int | None
    resolved_by: str | None


_SELECT = f"SELECT {columns(Note)} FROM notes "


def add(con: sqlite3.Connection, room: int, turn: int | None, author: str, body: str, now: int) -> int:
    """Write a note; its number."""
    query = "INSERT INTO notes (room, turn, author, body, at) VALUES (?, ?, ?, ?, ?) RETURNING id"
    return int(con.execute(query, (room, turn, author, body, now)).fetchone()[0])


def get(con: sqlite3.Connection, room: int, note: int) -> Note | None:
    """One note of a room."""
    row = con.execute(_SELECT + "WHERE room = ? AND id = ?", (room, note)).fetchone()
    return Note(*row) if row else None


def listing(con: sqlite3.Connection, room: int, *, resolved: bool, after: int, limit: int) -> list[Note]:
    """Notes of a room, oldest first; resolved ones only when asked for."""
    query = _SELECT + "WHERE room = ? AND id > ? AND (? OR resolved_at IS NULL) ORDER BY id LIMIT ?"
    return [Note(*row) for row in con.execute(query, (room, after, int(resolved), limit))]


def open_in(con: sqlite3.Connection, room: int) -> list[Note]:
    """All open notes of a room, for its archive."""
    return [Note(*row) for row in con.execute(_SELECT + "WHERE room = ? AND resolved_at IS NULL ORDER BY id", (room,))]


def unresolved(con: sqlite3.Connection, room: int) -> list[int]:
    """Numbers of what is still open."""
    query = "SELECT id FROM notes WHERE room = ? AND resolved_at IS NULL ORDER BY id"
    return [row[0] for row in con.execute(query, (room,))]


def resolve(con: sqlite3.Connection, room: int, note: int, by: str, now: int) -> bool:
    """Resolve an open note; false when it was resolved already."""
    query = "UPDATE notes SET resolved_at = ?, resolved_by = ? WHERE room = ? AND id = ? AND resolved_at IS NULL"
    return con.execute(query, (now, by, room, note)).rowcount == 1
