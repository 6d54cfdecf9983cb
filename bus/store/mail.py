"""Addressed mail: one row per event and box, and the two queries that carry the promise.

A box is an agent, a person, `station:<name>`, or `turn:<room>` (mail to whoever holds
the turn next). `unread` is the one definition of what an agent has not received yet;
`due` is the one definition of what still needs a wake.
"""

from __future__ import annotations

from bus import quickjson
from bus.records import Record, columns
from bus.store.events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

NO_WAKE = 0
AFTER_TURN = 1  # an agent's message: never joins an open turn
MAY_JOIN = 2  # a person's message, pass, assign
INTERRUPT = 3

VOID = "void"  # `received_by` of what was never shown because it was over before


class Item(Record):
    """An unread event; `box` is None for a broadcast."""

    box: str | None
    event: Event


class Letter(Record):
    """One row of addressed mail."""

    box: str
    seq: int
    wake: int
    wake_id: int | None
    received_at: int | None
    received_by: str | None


def turn_box(room: int) -> str:
    """The box of whoever holds the turn of this room next."""
    return f"turn:{room}"


def station_box(station: str) -> str:
    """The box of whoever is at this station."""
    return f"station:{station}"


def post(con: sqlite3.Connection, seq: int, boxes: Iterable[str], wake: int) -> None:
    """Address an event to boxes."""
    con.executemany("INSERT OR IGNORE INTO mail (box, seq, wake) VALUES (?, ?, ?)", [(box, seq, wake) for box in boxes])


# Without INDEXED BY the planner takes the primary key and reads the agent's whole history.
_UNREAD = f"""
SELECT found.box, {columns(Event, "events.")} FROM (
    SELECT m.box AS box, m.seq AS seq FROM mail m INDEXED BY mail_unread
     WHERE m.box IN (SELECT value FROM json_each(:boxes)) AND m.received_at IS NULL
       AND (m.box = :agent OR m.wake_id IS NULL OR EXISTS (
            SELECT 1 FROM wakes w WHERE w.id = m.wake_id AND (w.agent = :agent OR w.route = 'line')))
    UNION ALL
    SELECT NULL, e.seq FROM members b CROSS JOIN events e INDEXED BY events_public
        ON e.room = b.room AND e.seq > b.cursor AND e.public = 1
     WHERE b.agent = :agent AND b.left_at IS NULL AND e.sender <> :agent
       AND NOT EXISTS (SELECT 1 FROM mail x WHERE x.box = :agent AND x.seq = e.seq)
    ORDER BY seq LIMIT :limit
) found JOIN events ON events.seq = found.seq ORDER BY found.seq"""


def unread(con: sqlite3.Connection, agent: str, boxes: Iterable[str], limit: int) -> Iterable[Item]:
    """What the agent has not received, oldest first, each event once.

    `boxes` are the agent's own, its station's, and the turn's only inside a grant.
    """
    values = {"agent": agent, "boxes": quickjson.dumps(list(boxes)), "limit": limit}
    last = -1
    for row in con.execute(_UNREAD, values):
        if row[1] != last:
            last = row[1]
            yield Item(row[0], Event(*row[1:]))


def unread_count(con: sqlite3.Connection, agent: str, boxes: Iterable[str]) -> int:
    """How many events are unread."""
    query = f"SELECT COUNT(DISTINCT seq) FROM ({_UNREAD})"  # our own text
    values = {"agent": agent, "boxes": quickjson.dumps(list(boxes)), "limit": 1_000_000}
    return int(con.execute(query, values).fetchone()[0])


def due_boxes(con: sqlite3.Connection, limit: int) -> list[str]:
    """Boxes with mail that wakes, is unread, and is covered by no open wake."""
    query = """SELECT DISTINCT box FROM mail INDEXED BY mail_due
                WHERE received_at IS NULL AND wake_id IS NULL AND wake > 0 LIMIT ?"""
    return [row[0] for row in con.execute(query, (limit,))]


def due(con: sqlite3.Connection, box: str) -> list[tuple[int, int]]:
    """(seq, wake) of what is due in one box, oldest first."""
    query = """SELECT seq, wake FROM mail INDEXED BY mail_due
                WHERE box = ? AND received_at IS NULL AND wake_id IS NULL AND wake > 0 ORDER BY seq LIMIT 1000"""
    return [(row[0], row[1]) for row in con.execute(query, (box,))]


def letter(con: sqlite3.Connection, box: str, seq: int) -> Letter | None:
    """One row, or None."""
    query = f"SELECT {columns(Letter)} FROM mail WHERE box = ? AND seq = ?"
    row = con.execute(query, (box, seq)).fetchone()
    return Letter(*row) if row else None


def boxes_of(con: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, list[str]]:
    """To whom each of these events is addressed."""
    found: dict[int, list[str]] = {}
    query = "SELECT seq, box FROM mail WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq, box"
    for seq, box in con.execute(query, (quickjson.dumps(sorted(seqs)),)):
        found.setdefault(seq, []).append(box)
    return found


def pending(con: sqlite3.Connection, box: str) -> list[int]:
    """Numbers of what is unread in a box, oldest first."""
    query = "SELECT seq FROM mail INDEXED BY mail_unread WHERE box = ? AND received_at IS NULL ORDER BY seq"
    return [row[0] for row in con.execute(query, (box,))]


def about(con: sqlite3.Connection, box: str, key: str, value: str) -> list[int]:
    """Numbers of what is unread in a box and concerns this ticket or question (`key` names its id)."""
    query = """SELECT seq FROM mail INDEXED BY mail_unread JOIN events USING (seq)
                WHERE box = ? AND received_at IS NULL AND type IN ('ticket', 'ask', 'answer')
                  AND json_extract(body, '$.' || ?) = ?"""
    return [row[0] for row in con.execute(query, (box, key, value))]


def cover(con: sqlite3.Connection, box: str, seqs: Iterable[int], wake_id: int) -> list[int]:
    """Name the wake that offers these rows; only rows that no other wake covers. The ones taken."""
    query = """UPDATE mail SET wake_id = ? WHERE box = ? AND seq IN (SELECT value FROM json_each(?))
                AND received_at IS NULL AND wake_id IS NULL RETURNING seq"""
    return [row[0] for row in con.execute(query, (wake_id, box, quickjson.dumps(list(seqs)))).fetchall()]


def uncover(con: sqlite3.Connection, wake_id: int) -> None:
    """Give back what a closed wake offered and nobody read: it is due again."""
    con.execute(
        "UPDATE mail SET wake_id = NULL WHERE wake_id = ? AND received_at IS NULL AND wake_id IS NOT NULL",
        (wake_id,),
    )


def receive(con: sqlite3.Connection, rows: Iterable[tuple[str, int]], by: str, now: int) -> set[int]:
    """Mark rows as received, those that were not yet; the wakes that had offered them."""
    query = """UPDATE mail SET received_at = ?, received_by = ? WHERE box = ? AND seq = ? AND received_at IS NULL
               RETURNING wake_id"""
    wakes = set()
    for box, seq in rows:
        for row in con.execute(query, (now, by, box, seq)).fetchall():
            wakes.add(row[0])
    return {wake for wake in wakes if wake is not None}


def void(con: sqlite3.Connection, box: str, seq: int, now: int) -> None:
    """What this row announced is over (a claim that was lost, a reservation that ended): never show it."""
    receive(con, [(box, seq)], VOID, now)


def void_hints(con: sqlite3.Connection, room: int, since: int, now: int) -> None:
    """The handoffs from `since` on have their holder: nobody needs to hear any more that they wait."""
    con.execute(
        """UPDATE mail SET received_at = ?, received_by = ? WHERE received_at IS NULL AND seq IN
              (SELECT seq FROM events WHERE room = ? AND seq > ? AND type = 'handoff_hint')""",
        (now, VOID, room, since),
    )


def renew(con: sqlite3.Connection, box: str, seq: int) -> None:
    """A handoff whose receiver lost its turn is pending again, for who holds the turn next."""
    con.execute(
        "UPDATE mail SET received_at = NULL, received_by = NULL, wake_id = NULL WHERE box = ? AND seq = ?",
        (box, seq),
    )


def silence(con: sqlite3.Connection, agent: str, upto: int) -> None:
    """Standby: what is unread up to here wakes nobody any more; it stays unread."""
    con.execute(
        """UPDATE mail INDEXED BY mail_unread SET wake = 0
            WHERE box = ? AND received_at IS NULL AND seq <= ? AND wake > 0""",
        (agent, upto),
    )


def waking_received(con: sqlite3.Connection, agent: str, since: int) -> int:
    """How many waking rows an agent received since then, for the accounts."""
    query = """SELECT COUNT(*) FROM mail WHERE box = ? AND received_at >= ? AND wake > 0 AND received_by <> 'void'
                AND seq >= (SELECT COALESCE(MIN(seq), 0) FROM events WHERE at >= ?)"""
    return int(con.execute(query, (agent, since, since - 86_400_000)).fetchone()[0])


def addressed_unread(con: sqlite3.Connection, room: int) -> list[tuple[str, int]]:
    """(box, seq) of what is addressed and unread in a room, oldest first; for its archive."""
    query = """SELECT box, seq FROM mail INDEXED BY mail_unread JOIN events USING (seq)
                WHERE received_at IS NULL AND room = ? ORDER BY seq, box"""
    return [(row[0], row[1]) for row in con.execute(query, (room,))]


def unread_in_room(con: sqlite3.Connection, room: int) -> int:
    """Addressed mail of this room's events that nobody received yet."""
    query = """SELECT COUNT(*) FROM mail INDEXED BY mail_unread JOIN events USING (seq)
                WHERE received_at IS NULL AND room = ?"""
    return int(con.execute(query, (room,)).fetchone()[0])
