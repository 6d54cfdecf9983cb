"""What live listeners say about themselves. The lock lives, the row only describes.

A row whose lock is free means nothing; there is nothing to clean up.
"""

from __future__ import annotations

from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


class Listener(Record):
    """One row: kind is wait, rewake, plugin, monitor or console."""

    agent: str
    kind: str
    id: str
    room: int
    intent: str
    pid: int
    since: int


_SELECT = f"SELECT {columns(Listener)} FROM listeners "


def get(con: sqlite3.Connection, agent: str, kind: str) -> Listener | None:
    """The row of one kind of listener of an agent."""
    row = con.execute(_SELECT + "WHERE agent = ? AND kind = ?", (agent, kind)).fetchone()
    return Listener(*row) if row else None


def every(con: sqlite3.Connection) -> list[Listener]:
    """All rows, whether their locks are held or not."""
    return [Listener(*row) for row in con.execute(_SELECT + "ORDER BY agent, kind")]


def save(con: sqlite3.Connection, listener: Listener) -> None:
    """Write what the holder of the lock is doing now."""
    con.execute(
        """INSERT INTO listeners (agent, kind, id, room, intent, pid, since) VALUES (?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (agent, kind) DO UPDATE SET id = excluded.id, room = excluded.room, intent = excluded.intent,
               pid = excluded.pid, since = excluded.since""",
        (
            listener.agent,
            listener.kind,
            listener.id,
            listener.room,
            listener.intent,
            listener.pid,
            listener.since,
        ),
    )


def remove(con: sqlite3.Connection, agent: str, kind: str, listener_id: str) -> None:
    """Remove one's own row; a successor's row has another id and stays."""
    con.execute("DELETE FROM listeners WHERE agent = ? AND kind = ? AND id = ?", (agent, kind, listener_id))
