"""Wakes: what costs its receiver a model turn, one row each, written before it is done.

A row is the offer, the attempt, the envelope's token, a station's claim and the log, in
one life: sending → sent | failed | ambiguous, then seen or closed.
"""

from __future__ import annotations

from bus import ids, quickjson
from bus.records import Record, columns
from bus.store import mail

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any


class Wake(Record):
    """One row; `shown` is `{"mail": [[box, seq]], "cursors": {room: seq}}`."""

    id: int
    agent: str
    generation: int
    route: str
    state: str
    by: str | None
    upto: int
    shown: str
    token: str
    error: str | None
    at: int
    seen_at: int | None
    closed_at: int | None


class Attempt(Record):
    """A wake before it has a number."""

    agent: str
    generation: int
    route: str
    by: str | None
    upto: int
    at: int
    state: str = "sending"
    token: str = ""
    shown: dict[str, Any] = {}  # a record's default is never changed in place
    seen_at: int | None = None


_SELECT = f"SELECT {columns(Wake)} FROM wakes "

LINE = "line"  # the route of a notify line that no listener of ours was there to read
WAITED = "waited"  # the route of what a wait printed where its end starts no turn


def begin(con: sqlite3.Connection, attempt: Attempt) -> int:
    """Write the row; its number."""
    query = """INSERT INTO wakes (agent, generation, route, state, by, upto, shown, token, at, seen_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"""
    shown = quickjson.dumps(attempt.shown, separators=(",", ":"))
    values = (
        attempt.agent,
        attempt.generation,
        attempt.route,
        attempt.state,
        attempt.by,
        attempt.upto,
        shown,
        attempt.token or ids.new_id("", 12),
        attempt.at,
        attempt.seen_at,
    )
    return int(con.execute(query, values).fetchone()[0])


def finish(con: sqlite3.Connection, wake: int, state: str, error: str | None = None) -> None:
    """What became of an attempt."""
    con.execute("UPDATE wakes SET state = ?, error = ? WHERE id = ? AND state = 'sending'", (state, error, wake))


def get(con: sqlite3.Connection, wake: int) -> Wake | None:
    """One row, or None."""
    row = con.execute(_SELECT + "WHERE id = ?", (wake,)).fetchone()
    return Wake(*row) if row else None


def open_of(con: sqlite3.Connection, agent: str, generation: int) -> Wake | None:
    """The newest open wake of an agent's present generation that still covers unread mail, or None."""
    query = (
        _SELECT
        + """INDEXED BY wakes_open WHERE agent = ? AND seen_at IS NULL AND closed_at IS NULL AND generation = ?
             AND state <> 'failed' AND EXISTS (SELECT 1 FROM mail WHERE wake_id = wakes.id AND received_at IS NULL)
             ORDER BY id DESC LIMIT 1"""
    )
    row = con.execute(query, (agent, generation)).fetchone()
    return Wake(*row) if row else None


def unfinished(con: sqlite3.Connection, limit: int) -> list[Wake]:
    """Open wakes that may be void: still sending, or claims of shared boxes."""
    query = (
        _SELECT
        + """WHERE seen_at IS NULL AND closed_at IS NULL
             AND (state = 'sending' OR EXISTS (SELECT 1 FROM mail WHERE wake_id = wakes.id AND received_at IS NULL
                  AND box GLOB 'station:*')) ORDER BY id LIMIT ?"""
    )
    return [Wake(*row) for row in con.execute(query, (limit,))]


def close(con: sqlite3.Connection, wake: int, now: int) -> None:
    """Give up a wake: what it offered and nobody read is due again."""
    con.execute("UPDATE wakes SET closed_at = ? WHERE id = ? AND closed_at IS NULL AND seen_at IS NULL", (now, wake))
    mail.uncover(con, wake)


def drop(con: sqlite3.Connection, wake: int) -> None:
    """A row that came to nothing before anything was done."""
    mail.uncover(con, wake)
    con.execute("DELETE FROM wakes WHERE id = ?", (wake,))


def close_of(con: sqlite3.Connection, agent: str, now: int) -> None:
    """Close all open wakes of an agent (a new generation, standby)."""
    query = "SELECT id FROM wakes INDEXED BY wakes_open WHERE agent = ? AND seen_at IS NULL AND closed_at IS NULL"
    for (wake,) in con.execute(query, (agent,)).fetchall():
        close(con, wake, now)


def by_token(con: sqlite3.Connection, token: str) -> Wake | None:
    """The wake whose envelope carries this token."""
    row = con.execute(_SELECT + "WHERE token = ?", (token,)).fetchone()
    return Wake(*row) if row else None


def shown_of(wake: Wake) -> dict[str, Any]:
    """What a wake showed: `mail` as (box, seq) pairs, `cursors` as room → seq."""
    stored = quickjson.loads(wake.shown)
    pairs = [(str(box), int(seq)) for box, seq in stored.get("mail", [])]
    return {"mail": pairs, "cursors": {int(room): int(seq) for room, seq in stored.get("cursors", {}).items()}}


def see(con: sqlite3.Connection, wake: int, now: int) -> None:
    """The receiver showed that it has read this one, also when it was closed meanwhile."""
    con.execute(
        """UPDATE wakes SET seen_at = ?, state = CASE state WHEN 'sending' THEN 'sent' ELSE state END
            WHERE id = ? AND seen_at IS NULL""",
        (now, wake),
    )


def unreceived(con: sqlite3.Connection, agent: str, route: str, since: int) -> int:
    """How many wakes by this route were done since then, and since the last receipt, without one."""
    query = """SELECT COUNT(*) FROM wakes WHERE agent = ? AND route = ? AND state = 'sent' AND seen_at IS NULL
                AND at > ? AND at > COALESCE((SELECT MAX(at) FROM wakes
                                               WHERE agent = ? AND route = ? AND seen_at IS NOT NULL), 0)"""
    return int(con.execute(query, (agent, route, since, agent, route)).fetchone()[0])


def unconfirmed(con: sqlite3.Connection, agent: str) -> list[Wake]:
    """What waits of an agent printed while nobody was there to read it."""
    query = _SELECT + "WHERE agent = ? AND route = ? AND seen_at IS NULL AND closed_at IS NULL ORDER BY id"
    return [Wake(*row) for row in con.execute(query, (agent, WAITED))]


def seen(con: sqlite3.Connection, wake_ids: set[int], now: int) -> None:
    """Those of which nothing is left unread were seen."""
    for wake in wake_ids:
        con.execute(
            """UPDATE wakes SET seen_at = ?, state = CASE state WHEN 'sending' THEN 'sent' ELSE state END
                WHERE id = ? AND seen_at IS NULL
                  AND NOT EXISTS (SELECT 1 FROM mail WHERE wake_id = ? AND received_at IS NULL)""",
            (now, wake, wake),
        )


def prune(con: sqlite3.Connection, before: int) -> None:
    """Drop old rows that cover nothing any more."""
    con.execute(
        """DELETE FROM wakes WHERE at < ?
              AND NOT EXISTS (SELECT 1 FROM mail WHERE wake_id = wakes.id AND received_at IS NULL)""",
        (before,),
    )


def oldest(con: sqlite3.Connection) -> int:
    """When the oldest row was written; far in the future without any."""
    row = con.execute("SELECT at FROM wakes ORDER BY at LIMIT 1").fetchone()
    return int(row[0]) if row else 1 << 62


def log(con: sqlite3.Connection, since: int) -> list[Wake]:
    """Every wake since then, oldest first."""
    return [Wake(*row) for row in con.execute(_SELECT + "WHERE at >= ? ORDER BY id", (since,))]


def newest_of(con: sqlite3.Connection, agent: str) -> Wake | None:
    """The last wake of an agent, for the health card."""
    row = con.execute(_SELECT + "WHERE agent = ? ORDER BY id DESC LIMIT 1", (agent,)).fetchone()
    return Wake(*row) if row else None


def newest_offered(con: sqlite3.Connection, agent: str) -> int:
    """The highest event that an agent was shown or offered; 0 when it never was."""
    query = "SELECT COALESCE(MAX(upto), 0) FROM wakes WHERE agent = ? AND state <> 'failed'"
    return int(con.execute(query, (agent,)).fetchone()[0])


def covers(con: sqlite3.Connection, wake: int) -> bool:
    """Does this wake offer anything that is still unread?"""
    query = "SELECT 1 FROM mail WHERE wake_id = ? AND received_at IS NULL LIMIT 1"
    return con.execute(query, (wake,)).fetchone() is not None


def claims(con: sqlite3.Connection, wake: int) -> bool:
    """Does this wake keep something unread of a shared box from others?"""
    query = "SELECT 1 FROM mail WHERE wake_id = ? AND received_at IS NULL AND box GLOB 'station:*' LIMIT 1"
    return con.execute(query, (wake,)).fetchone() is not None


def covering(con: sqlite3.Connection, box: str, route: str | None = None) -> set[int]:
    """The wakes (by this route) that cover something unread in a box."""
    query = """SELECT DISTINCT wake_id FROM mail INDEXED BY mail_unread JOIN wakes ON wakes.id = wake_id
                WHERE box = ? AND received_at IS NULL AND route = COALESCE(?, route)"""
    return {row[0] for row in con.execute(query, (box, route))}


def claimed_by(con: sqlite3.Connection, seqs: list[int], box: str) -> dict[int, Wake]:
    """The open wakes that cover these rows of a shared box."""
    query = f"""SELECT m.seq, {columns(Wake, "w.")} FROM mail m JOIN wakes w ON w.id = m.wake_id
                 WHERE m.box = ? AND m.seq IN (SELECT value FROM json_each(?)) AND m.received_at IS NULL"""
    return {row[0]: Wake(*row[1:]) for row in con.execute(query, (box, quickjson.dumps(seqs)))}
