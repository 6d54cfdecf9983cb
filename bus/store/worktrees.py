"""Managed worktrees: which directory is which station. Address and rights hang on these rows."""

from __future__ import annotations

from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


class Worktree(Record):
    """One row; `path` is the real path of the worktree's top level."""

    path: str
    station: str
    branch: str | None
    at: int


_SELECT = f"SELECT {columns(Worktree)} FROM worktrees "


def every(con: sqlite3.Connection) -> list[Worktree]:
    """All of them, by number."""
    return [Worktree(*row) for row in con.execute(_SELECT + "ORDER BY LENGTH(station), station")]


def by_path(con: sqlite3.Connection, path: str) -> Worktree | None:
    """The station of this directory."""
    row = con.execute(_SELECT + "WHERE path = ?", (path,)).fetchone()
    return Worktree(*row) if row else None


def by_station(con: sqlite3.Connection, station: str) -> Worktree | None:
    """The directory of this station."""
    row = con.execute(_SELECT + "WHERE station = ?", (station,)).fetchone()
    return Worktree(*row) if row else None


def add(con: sqlite3.Connection, worktree: Worktree) -> None:
    """Record a worktree that we made."""
    values = (worktree.path, worktree.station, worktree.branch, worktree.at)
    con.execute("INSERT INTO worktrees (path, station, branch, at) VALUES (?, ?, ?, ?)", values)


def remove(con: sqlite3.Connection, station: str) -> None:
    """Forget one."""
    con.execute("DELETE FROM worktrees WHERE station = ?", (station,))
