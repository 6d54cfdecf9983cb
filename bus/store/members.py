"""Who belongs to which room, with cursor, rank and the last turn held.

A row is never deleted while its room lives, so leaving and joining again does not jump
the queue. Membership of room 0 is the agent's place on the bus itself.
"""

from __future__ import annotations

from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


class Member(Record):
    """One row; `cursor` is the highest broadcast received in that room."""

    agent: str
    room: int
    cursor: int
    rank: int
    last_turn: int
    intent: str
    joined_at: int
    left_at: int | None
    left_why: str | None


_SELECT = f"SELECT {columns(Member)} FROM members "


def get(con: sqlite3.Connection, agent: str, room: int) -> Member | None:
    """The row, also of one that left."""
    row = con.execute(_SELECT + "WHERE agent = ? AND room = ?", (agent, room)).fetchone()
    return Member(*row) if row else None


def of_room(con: sqlite3.Connection, room: int) -> list[Member]:
    """Present members in the order they first joined."""
    query = _SELECT + "WHERE room = ? AND left_at IS NULL ORDER BY rank"
    return [Member(*row) for row in con.execute(query, (room,))]


def rooms_of(con: sqlite3.Connection, agent: str) -> list[int]:
    """The rooms (never 0) that the agent is a member of."""
    query = "SELECT room FROM members WHERE agent = ? AND left_at IS NULL AND room > 0 ORDER BY room"
    return [row[0] for row in con.execute(query, (agent,))]


def join(con: sqlite3.Connection, agent: str, room: int, now: int, cursor: int) -> bool:
    """Make or renew a membership; true when it is genuinely new (it was not there, or had left)."""
    found = get(con, agent, room)
    if found is not None and found.left_at is None:
        return False
    if found is None:
        query = "SELECT COALESCE(MAX(rank), 0) + 1 FROM members WHERE room = ?"
        rank = con.execute(query, (room,)).fetchone()[0]
        con.execute(
            "INSERT INTO members (agent, room, cursor, rank, joined_at) VALUES (?, ?, ?, ?, ?)",
            (agent, room, cursor, rank, now),
        )
        return True
    con.execute(
        """UPDATE members SET left_at = NULL, left_why = NULL, intent = 'active', cursor = MAX(cursor, ?), joined_at = ?
            WHERE agent = ? AND room = ?""",
        (cursor, now, agent, room),
    )
    return True


def leave(con: sqlite3.Connection, agent: str, room: int, now: int, why: str) -> None:
    """End a membership; the row stays."""
    con.execute(
        "UPDATE members SET left_at = ?, left_why = ? WHERE agent = ? AND room = ? AND left_at IS NULL",
        (now, why, agent, room),
    )


def set_intent(con: sqlite3.Connection, agent: str, room: int, intent: str) -> None:
    """Active or parked, for the time without a live wait; writes only a change."""
    con.execute(
        "UPDATE members SET intent = ? WHERE agent = ? AND room = ? AND intent <> ?",
        (intent, agent, room, intent),
    )


def held(con: sqlite3.Connection, agent: str, room: int, turn: int) -> None:
    """The agent was given this turn."""
    con.execute("UPDATE members SET last_turn = ? WHERE agent = ? AND room = ?", (turn, agent, room))


def move_cursor(con: sqlite3.Connection, agent: str, room: int, seq: int) -> None:
    """What was shown up to `seq` counts as received; never moves back."""
    con.execute("UPDATE members SET cursor = ? WHERE agent = ? AND room = ? AND cursor < ?", (seq, agent, room, seq))
