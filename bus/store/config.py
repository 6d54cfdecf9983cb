"""Settings of one bus, as text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


def get(con: sqlite3.Connection, key: str) -> str | None:
    """The value that was set, or None."""
    row = con.execute("SELECT value FROM config WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def put(con: sqlite3.Connection, key: str, value: str) -> None:
    """Set a value."""
    con.execute(
        "INSERT INTO config (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def drop(con: sqlite3.Connection, key: str) -> None:
    """Forget a value, so that the default applies."""
    con.execute("DELETE FROM config WHERE key = ?", (key,))


def everything(con: sqlite3.Connection) -> dict[str, str]:
    """All that was set."""
    return dict(con.execute("SELECT key, value FROM config ORDER BY key").fetchall())
