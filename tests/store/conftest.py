"""`bus`: a fresh bus with a room and three agents in it, and `fill` to put rows in."""

from __future__ import annotations

import pytest

from bus.store import db, events, mail, members, migrate, rooms
from bus.store.agents import Agent, save
from bus.store.events import Draft

NOW = 1_790_000_000_000


class Filled:
    """A bus with `room`, and short ways to put rows into it."""

    def __init__(self, directory: str) -> None:
        migrate.make_bus(directory, "/work", "/work")
        self.dir = directory
        self.bus = db.open_bus(directory)
        self.con = self.bus.con
        with db.Write(self.con):
            self.room = rooms.make(self.con, "/work", NOW)
        self.agents("ann", "bob", "cat")

    def agents(self, *names: str, room: int | None = None, kind: str = "harness") -> None:
        """Make agents who are members of the bus and of the room."""
        with db.Write(self.con):
            for name in names:
                save(
                    self.con,
                    Agent(name, kind, "claude", name, None, None, None, 0, 1, NOW, *([None] * 5)),
                )
                for number in (rooms.BUS, room or self.room):
                    members.join(self.con, name, number, NOW, events.newest(self.con))

    def event(self, *boxes: str, sender="ann", public=False, wake=1, room=None, kind="message", turn=None) -> int:
        """One event, addressed to these boxes; its number."""
        draft = Draft(self.room if room is None else room, kind, sender, NOW, {"text": "hi"}, public=public, turn=turn)
        with db.Write(self.con):
            seq, _ = events.append(self.con, draft)
            mail.post(self.con, seq, boxes, wake)
        return seq

    def unread(self, agent: str, *boxes: str, limit: int = 100) -> list[int]:
        """What the agent has not received."""
        return [item.event.seq for item in mail.unread(self.con, agent, boxes or (agent,), limit)]

    def plan(self, call, *args) -> str:
        """How SQLite runs the statements of a call."""
        statements: list[str] = []
        self.con.set_trace_callback(statements.append)
        found = call(self.con, *args)
        if found is not None and not isinstance(found, int | set | str):
            list(found)
        self.con.set_trace_callback(None)
        rows = [row for one in statements for row in self.con.execute("EXPLAIN QUERY PLAN " + one)]
        return "\n".join(row[3] for row in rows)


@pytest.fixture
def fill(tmp_path):
    made = Filled(str(tmp_path / "bus"))
    yield made
    made.bus.close()
