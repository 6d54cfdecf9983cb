"""The bus's append-only log, in strictly increasing order of `seq`."""

from __future__ import annotations

from bus import ids, quickjson
from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

TYPES = (
    "message",
    "join",
    "leave",
    "kick",
    "claim",
    "release",
    "pass",
    "assign",
    "handoff",
    "takeover",
    "turn_lost",
    "reservation_expired",
    "handoff_hint",
    "takeover_offer",
    "undelivered",
    "note",
    "commit",
    "memory",
    "ticket",
    "ask",
    "answer",
)


class Event(Record):
    """One row; `body` is a JSON object whose shape depends on `type`."""

    seq: int
    id: str
    room: int
    type: str
    sender: str
    sender_station: str | None
    public: int
    turn: int | None
    thread: str | None
    at: int
    body: str

    def content(self) -> dict[str, Any]:
        """The body as an object."""
        found: dict[str, Any] = quickjson.loads(self.body)
        return found


class Draft(Record):
    """An event before it has a number."""

    room: int
    type: str
    sender: str
    at: int
    body: dict[str, Any]
    sender_station: str | None = None
    public: bool = False
    turn: int | None = None
    thread: str | None = None


_COLUMNS = columns(Event)
_SELECT = f"SELECT {_COLUMNS} FROM events "


def append_once(con: sqlite3.Connection, draft: Draft, event: str) -> bool:
    """Write an event under an id that says what it is about; false when it is there already."""
    if con.execute("SELECT 1 FROM events WHERE id = ?", (event,)).fetchone():
        return False
    append(con, draft, event)
    return True


def append(con: sqlite3.Connection, draft: Draft, event: str | None = None) -> tuple[int, str]:
    """Write an event; (seq, id)."""
    event = event or ids.new_id("e")
    body = quickjson.dumps(draft.body, ensure_ascii=False, separators=(",", ":"))
    query = """INSERT INTO events (id, room, type, sender, sender_station, public, turn, thread, at, body)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq"""
    values = (
        event,
        draft.room,
        draft.type,
        draft.sender,
        draft.sender_station,
        int(draft.public),
        draft.turn,
        draft.thread,
        draft.at,
        body,
    )
    return int(con.execute(query, values).fetchone()[0]), event


def get(con: sqlite3.Connection, seq: int) -> Event | None:
    """The event with this number."""
    row = con.execute(_SELECT + "WHERE seq = ?", (seq,)).fetchone()
    return Event(*row) if row else None


def by_id(con: sqlite3.Connection, event: str) -> Event | None:
    """The event with this id."""
    row = con.execute(_SELECT + "WHERE id = ?", (event,)).fetchone()
    return Event(*row) if row else None


def several(con: sqlite3.Connection, seqs: Iterable[int]) -> list[Event]:
    """The events with these numbers, in order."""
    wanted = quickjson.dumps(sorted(seqs))
    query = _SELECT + "WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"
    return [Event(*row) for row in con.execute(query, (wanted,))]


def newest(con: sqlite3.Connection) -> int:
    """The highest number given so far; 0 on a fresh bus. Also counts archived events."""
    row = con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row else 0


def newest_in(con: sqlite3.Connection, room: int) -> int:
    """The highest number in one room."""
    return int(con.execute("SELECT COALESCE(MAX(seq), 0) FROM events WHERE room = ?", (room,)).fetchone()[0])


def of_room(con: sqlite3.Connection, room: int) -> Iterable[Event]:
    """The whole history of a room, for its archive."""
    for row in con.execute(_SELECT + "WHERE room = ? ORDER BY seq", (room,)):
        yield Event(*row)


def noticed(con: sqlite3.Connection, room: int, kind: str, agent: str, about: int) -> bool:
    """Was this agent already told once (hint, offer) about this handoff or turn?"""
    query = """SELECT 1 FROM mail JOIN events USING (seq)
                WHERE box = ? AND type = ? AND room = ? AND turn = ? LIMIT 1"""
    return con.execute(query, (agent, kind, room, about)).fetchone() is not None


def newer(con: sqlite3.Connection, seq: int, types: tuple[str, ...], besides: str) -> list[Event]:
    """Events of these types past a number, of anybody but one sender, oldest first; of very many the newest."""
    query = (
        _SELECT
        + """WHERE seq > ? AND type IN (SELECT value FROM json_each(?)) AND sender <> ?
             ORDER BY seq DESC LIMIT 5000"""
    )
    return [Event(*row) for row in con.execute(query, (seq, quickjson.dumps(types), besides))][::-1]


class View(Record):
    """Which events a reader asked for. `names` are the caller's boxes; None shows all of the room."""

    rooms: tuple[int, ...]
    after: int
    limit: int
    names: tuple[str, ...] | None
    me: str
    types: tuple[str, ...] = ()
    sender: str | None = None
    since: int = 0


def view(con: sqlite3.Connection, wanted: View, *, newest_first: bool) -> list[Event]:
    """The events of a view, oldest first; with `newest_first` the last `limit` of them."""
    where = ["room IN (SELECT value FROM json_each(?))", "seq > ?", "at >= ?"]
    values: list[Any] = [quickjson.dumps(wanted.rooms), wanted.after, wanted.since]
    if wanted.types:
        where.append("type IN (SELECT value FROM json_each(?))")
        values.append(quickjson.dumps(wanted.types))
    if wanted.sender is not None:
        where.append("sender = ?")
        values.append(wanted.sender)
    if wanted.names is not None:
        where.append(
            """((public = 1 AND sender <> ?) OR EXISTS (SELECT 1 FROM mail m WHERE m.seq = events.seq
                AND m.box IN (SELECT value FROM json_each(?))))"""
        )
        values += [wanted.me, quickjson.dumps(wanted.names)]
    order = "DESC" if newest_first else "ASC"
    query = f"{_SELECT}WHERE {' AND '.join(where)} ORDER BY seq {order} LIMIT ?"
    found = [Event(*row) for row in con.execute(query, [*values, wanted.limit])]
    return found[::-1] if newest_first else found


def count(con: sqlite3.Connection, rooms: tuple[int, ...]) -> int:
    """How many events the rooms hold."""
    query = "SELECT COUNT(*) FROM events WHERE room IN (SELECT value FROM json_each(?))"
    return int(con.execute(query, (quickjson.dumps(rooms),)).fetchone()[0])
