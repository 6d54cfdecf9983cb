"""A room that ends is written to a file first: its history, and what was still pending.

Kept true: nothing is deleted before the file is whole on disk; a name is never used twice; a
later join of the same path finds the pending handoff again.
"""

from __future__ import annotations

import os

from bus import clock, crash, locks, places, quickjson
from bus.operations import present
from bus.operations.outcome import SYSTEM
from bus.store import db, events, mail, members, notes, rooms
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

    from bus.store.db import Bus
    from bus.store.rooms import Room


def removable(bus: Bus, room: Room, now: int, *, idle: bool) -> bool:
    """May this room end? `idle`: it was long without activity, so what is pending may go to the file too."""
    con = bus.con
    if room.owner is not None or _console_lives(bus, room.id):
        return False
    if idle:
        return not any(seat.present and not seat.gone for seat in present.seats(bus, room.id, now))
    if members.of_room(con, room.id):
        return False
    kept = mail.pending(con, mail.turn_box(room.id)) or notes.unresolved(con, room.id)
    return not kept and not mail.unread_in_room(con, room.id)


def _console_lives(bus: Bus, room: int) -> bool:
    """A live console keeps its room open; a crashed one does not."""
    consoles = [member.agent for member in members.of_room(bus.con, room) if ":chat:" in member.agent]
    return any(locks.held(bus.lock(agent, "console")) for agent in consoles)


def remove(bus: Bus, data: str, room: Room, now: int) -> bool:
    """Write the archive, then delete the room if nothing happened in it meanwhile."""
    path = _write(bus, room, now)
    with db.Write(bus.con) as con:
        again = rooms.by_id(con, room.id)
        if again is None or again != room or events.newest_in(con, room.id) > _last(path):
            os.unlink(path)
            return False
        rooms.delete(con, room.id)
    places.index_remove(data, room.path, str(room.id))
    return True


def _write(bus: Bus, room: Room, now: int) -> str:
    """The archive file: a head line, then every event of the room as one line each."""
    directory = os.path.join(bus.dir, "archive")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = os.path.join(directory, f"{room.id}-{now}.jsonl")
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(quickjson.dumps(line, ensure_ascii=False) + "\n" for line in _lines(bus.con, room, now))
        file.flush()
        os.fsync(file.fileno())
    crash.point("before_replace")
    os.replace(temporary, path)
    return path


def _lines(con: sqlite3.Connection, room: Room, now: int) -> Iterable[dict[str, Any]]:
    """Head, then history."""
    pending = [{"from": event.sender, "handoff": event.content().get("handoff")} for event in _pending(con, room)]
    yield {
        "path": room.path,
        "room_id": room.id,
        "turn_id": room.turn_id,
        "archived_at": clock.iso(now),
        "pending_handoffs": pending,
        "open_notes": [
            {"note_id": note.id, "turn_id": note.turn, "author_agent_id": note.author, "body": note.body}
            for note in notes.open_in(con, room.id)
        ],
        "unread_mail": [{"to": box, "event_seq": seq} for box, seq in mail.addressed_unread(con, room.id)],
        "newest": events.newest_in(con, room.id),
    }
    for event in events.of_room(con, room.id):
        yield {
            "event_seq": event.seq,
            "event_id": event.id,
            "type": event.type,
            "from": event.sender,
            "turn_id": event.turn,
            "created_at": clock.iso(event.at),
            "body": event.content(),
        }


def _pending(con: sqlite3.Connection, room: Room) -> list[events.Event]:
    """The handoffs that nobody took."""
    return events.several(con, mail.pending(con, mail.turn_box(room.id)))


def _last(path: str) -> int:
    """Up to which event an archive goes."""
    return int(_head(path).get("newest", 0))


def _head(path: str) -> dict[str, Any]:
    """The first line of an archive; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            found = quickjson.loads(file.readline())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def restore(con: sqlite3.Connection, bus: Bus, room_id: int, path: str, now: int) -> int:
    """A new room at the path of an archived one: its pending handoffs wait again. How many."""
    directory = os.path.join(bus.dir, "archive")
    names = sorted(os.listdir(directory), key=_archived_at) if os.path.isdir(directory) else []
    heads = [head for head in (_head(os.path.join(directory, name)) for name in names) if head.get("path") == path]
    if not heads:
        return 0
    restored = [one for one in heads[-1].get("pending_handoffs", []) if isinstance(one, dict) and "handoff" in one]
    for one in restored:
        sender = str(one.get("from") or SYSTEM)
        seq, _ = events.append(con, Draft(room_id, "handoff", sender, now, {"handoff": one["handoff"]}, turn=0))
        mail.post(con, seq, [mail.turn_box(room_id)], mail.NO_WAKE)
    return len(restored)


def _archived_at(name: str) -> int:
    """When an archive was written, by its name."""
    _, _, rest = name.partition("-")
    number = rest.removesuffix(".jsonl")
    return int(number) if number.isdigit() else 0
