"""Samples of what sub-agents cost."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


def add(con: sqlite3.Connection, agent: str, kind: str, tokens: int, now: int) -> None:
    """One sub-agent that ended."""
    con.execute("INSERT INTO usage (agent, type, tokens, at) VALUES (?, ?, ?, ?)", (agent, kind, tokens, now))


def prune(con: sqlite3.Connection, before: int) -> None:
    """Drop old samples."""
    con.execute("DELETE FROM usage WHERE at < ?", (before,))


def totals(con: sqlite3.Connection, since: int) -> list[tuple[str, str, int, int]]:
    """(agent, type, samples, tokens) since then, the most expensive first."""
    query = """SELECT agent, type, COUNT(*), SUM(tokens) FROM usage WHERE at >= ?
                GROUP BY agent, type ORDER BY SUM(tokens) DESC, agent, type"""
    return [tuple(row) for row in con.execute(query, (since,))]
