"""Rooms and their sticks. Room 0 is the bus itself; it has no stick."""

from __future__ import annotations

from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

BUS = 0


class Room(Record):
    """One row: the room, its lease or its reservation."""

    id: int
    path: str
    created_at: int
    active_at: int
    state: str
    owner: str | None
    turn_id: int
    lease_id: str | None
    lease_until: int | None
    guardian_pid: int | None
    claim_seq: int | None
    reserved_for: str | None
    reserved_until: int | None
    reserved_why: str | None
    reserved_seq: int | None
    idle_since: int | None
    prior_owner: str | None


_SELECT = f"SELECT {columns(Room)} FROM rooms "


def by_id(con: sqlite3.Connection, room: int) -> Room | None:
    """The room with this number, or None."""
    row = con.execute(_SELECT + "WHERE id = ?", (room,)).fetchone()
    return Room(*row) if row else None


def by_path(con: sqlite3.Connection, path: str) -> Room | None:
    """The room of this working tree, or None."""
    row = con.execute(_SELECT + "WHERE path = ?", (path,)).fetchone()
    return Room(*row) if row and row[0] != BUS else None


def every(con: sqlite3.Connection) -> list[Room]:
    """All rooms of the bus but the bus itself."""
    return [Room(*row) for row in con.execute(_SELECT + "WHERE id > 0 ORDER BY id")]


def needing_care(con: sqlite3.Connection, now: int) -> list[Room]:
    """Rooms that are owned, and rooms whose reservation is over."""
    query = _SELECT + "WHERE owner IS NOT NULL OR (reserved_for IS NOT NULL AND reserved_until <= ?)"
    return [Room(*row) for row in con.execute(query, (now,))]


def left_lying(con: sqlite3.Connection, before: int) -> list[Room]:
    """Idle rooms whose handoff has waited since before that time."""
    query = (
        _SELECT
        + """WHERE state = 'idle' AND id > 0 AND idle_since <= ? AND EXISTS (
               SELECT 1 FROM mail INDEXED BY mail_unread WHERE box = 'turn:' || rooms.id AND received_at IS NULL)"""
    )
    return [Room(*row) for row in con.execute(query, (before,))]


def make(con: sqlite3.Connection, path: str, now: int) -> int:
    """A new, idle room; its number is never used again."""
    query = "INSERT INTO rooms (path, created_at, active_at, idle_since) VALUES (?, ?, ?, ?) RETURNING id"
    return int(con.execute(query, (path, now, now, now)).fetchone()[0])


def touch(con: sqlite3.Connection, room: int, now: int) -> None:
    """Note activity, which keeps the room from being archived."""
    con.execute("UPDATE rooms SET active_at = ? WHERE id = ?", (now, room))


def own(con: sqlite3.Connection, seen: Room, owner: str, lease: Lease, now: int) -> bool:
    """Give the turn, if the room is still at the turn and in the hands that the caller saw.

    The one statement behind "at most one holder": compare-and-set on turn, owner and reservation.
    """
    query = """
        UPDATE rooms SET state = 'owned', owner = ?, turn_id = turn_id + 1, lease_id = ?, lease_until = ?,
               guardian_pid = ?, claim_seq = ?, reserved_for = NULL, reserved_until = NULL, reserved_why = NULL,
               reserved_seq = NULL, idle_since = NULL, active_at = ?
         WHERE id = ? AND turn_id = ? AND owner IS ? AND lease_id IS ? AND reserved_for IS ?"""
    fence = (seen.id, seen.turn_id, seen.owner, seen.lease_id, seen.reserved_for)
    given = (owner, lease.id, lease.until, lease.guardian_pid, lease.claim_seq, now)
    return con.execute(query, given + fence).rowcount == 1


class Lease(Record):
    """What a grant writes: who watches it, until when, and the claim event that announces it."""

    id: str
    until: int
    guardian_pid: int
    claim_seq: int


def set_idle(con: sqlite3.Connection, room: int, now: int) -> None:
    """Nobody owns the turn and it is reserved for nobody; remembers who held it last."""
    con.execute(
        """UPDATE rooms SET state = 'idle', prior_owner = COALESCE(owner, prior_owner), owner = NULL, lease_id = NULL,
                  lease_until = NULL, guardian_pid = NULL, claim_seq = NULL, reserved_for = NULL, reserved_until = NULL,
                  reserved_why = NULL, reserved_seq = NULL, idle_since = ?, active_at = ? WHERE id = ?""",
        (now, now, room),
    )


def restore_prior(con: sqlite3.Connection, room: int, prior: str | None) -> None:
    """A grant that was given back never was: who held the turn before it counts as the last holder."""
    con.execute("UPDATE rooms SET prior_owner = ? WHERE id = ?", (prior, room))


def reserve(con: sqlite3.Connection, room: int, agent: str, *, until: int, why: str, seq: int) -> None:
    """Reserve an idle turn for one agent."""
    con.execute(
        """UPDATE rooms SET state = 'reserved', reserved_for = ?, reserved_until = ?, reserved_why = ?,
                  reserved_seq = ? WHERE id = ? AND owner IS NULL""",
        (agent, until, why, seq, room),
    )


def renew(con: sqlite3.Connection, room: int, lease: str, until: int, guardian_pid: int) -> bool:
    """Lengthen a lease; false when it is no longer this one. Never touches presence."""
    query = "UPDATE rooms SET lease_until = MAX(lease_until, ?), guardian_pid = ? WHERE id = ? AND lease_id = ?"
    return con.execute(query, (until, guardian_pid, room, lease)).rowcount == 1


def delete(con: sqlite3.Connection, room: int) -> None:
    """Remove a room whose history was archived, with everything that hangs on it."""
    # What is still unread for somebody goes on as mail of the bus: its addressee may live in another room.
    con.execute(
        """UPDATE events SET room = 0 WHERE room = ? AND public = 0 AND EXISTS (
               SELECT 1 FROM mail m WHERE m.seq = events.seq AND m.received_at IS NULL AND m.box NOT GLOB 'turn:*')""",
        (room,),
    )
    con.execute("DELETE FROM mail WHERE seq IN (SELECT seq FROM events WHERE room = ?)", (room,))
    for table in ("events", "members", "notes", "listeners"):
        con.execute(f"DELETE FROM {table} WHERE room = ?", (room,))  # names are ours
    con.execute("DELETE FROM rooms WHERE id = ?", (room,))
