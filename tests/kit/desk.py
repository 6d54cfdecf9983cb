"""`Desk`: one bus inside this process, with a clock, lives and guardians that the test decides.

    def test_release(desk):
        desk.join("claude:aa", "claude:bb")
        desk.do("claude:aa", granting.try_once)
        desk.tick(60)
        desk.refused("claude:bb", "stale_lease", turns.release, HANDOFF)

Everything else is real: the SQLite file, the lock files, the operations, and what the
guardian does at each of its steps. Nothing sleeps and no process is started.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

from bus import bell, clock, deliver, gitdir, identity, limits, locks, process
from bus.deliver import guardian
from bus.errors import BusError
from bus.operations import enter, join, receive
from bus.store import check, db, listeners
from bus.store.listeners import Listener
from monitor import granting, waiting
from monitor.guardian import Guardian

START = 1_790_000_000_000 - 1_790_000_000_000 % 86_400_000 + 8 * limits.HOUR  # 08:00 UTC of some day
A, B, C, D = "claude:aa", "codex:bb", "grok:cc", "opencode:dd"
ANN, BEN = "human:ann", "human:ben"
CONSOLE = "human:ann:chat:1"
HANDOFF = {"status": "half done", "next_action": "do the rest"}
GRANTER_LIVES = 1_000_000  # stands for the pipe of a granter that has not exited yet


class Guarding:
    """A guardian as its starter sees it: a pid, and `close` when the starter lets go."""

    def __init__(self, desk: Desk, bus, guard, lock: locks.Held) -> None:
        self.desk, self.lock, self.pid = desk, lock, 4000 + len(desk.guardians)
        self.real = Guardian(bus.dir, guard.room, guard.lease, guard.owner, GRANTER_LIVES)

    def close(self) -> None:
        self.real.pipe = -1
        self.desk.guard()


class Desk:
    """One room at `path`, and whoever is called into it."""

    def __init__(self, top, patch) -> None:
        self.top = os.path.realpath(top)
        self.path = self.folder("work")
        self.data = os.path.join(self.top, "data")
        self.env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self.folder("home"),
            "USER": "tester",
            "TALKING_STICK_DATA_DIR": self.data,
        }
        self.now = START
        self.life: dict[str, str] = {}
        self.inferred: set[str] = set()
        self.stations: dict[str, str] = {}
        self.guardians: dict[str, Guarding] = {}
        self.listening: dict[tuple[str, str], locks.Held] = {}
        self.rang: list[str] = []
        self.no_guardian = False
        self._patch(patch)

    def _patch(self, patch) -> None:
        real_caller, real_life = identity.caller, process.liveness

        def caller(env, pid, *, agent=None, **_):
            found = real_caller(env, pid, agent=agent, procs=[])
            person = found.kind != "harness"
            verified = found.agent_id not in self.inferred
            return found.replace(anchor=self.anchor(found.agent_id), verified=verified, person=person)

        patch.setattr(clock, "now", lambda: self.now)
        patch.setattr(limits, "SWEEP", 0)
        patch.setattr(identity, "caller", caller)
        patch.setattr(
            process, "liveness", lambda a: self.life.get(a, "unknown") if a.startswith("else") else real_life(a)
        )
        patch.setattr(guardian, "start", self._start)
        patch.setattr(gitdir, "status", lambda *_: None)
        patch.setattr(bell, "ring", lambda directory: self.rang.append(os.path.basename(directory)))
        patch.setattr(enter.Context, "station", lambda ctx: self.stations.get(ctx.me))

    # --- facts -----------------------------------------------------------------------

    def folder(self, name: str) -> str:
        path = os.path.join(self.top, name)
        os.makedirs(path, exist_ok=True)
        return path

    @staticmethod
    def anchor(agent: str) -> str:
        """The process of an agent, on a host that is not this one: only `life` knows it."""
        return f"elsewhere/{sum(agent.encode())}/{agent}".replace("/human", "/h")

    def tick(self, seconds: float) -> None:
        self.now += int(seconds * 1000)

    def alive(self, *agents: str) -> None:
        self.life.update({self.anchor(agent): "alive" for agent in agents})

    def dies(self, *agents: str) -> None:
        """The process is gone, and with it what it listened with."""
        for agent in agents:
            self.life[self.anchor(agent)] = "gone"
            for key in [key for key in self.listening if key[0] == agent]:
                self.listening.pop(key).release()

    def listen(self, agent: str, kind: str = "wait", intent: str = "active") -> None:
        """The agent has a live listener of this kind in the room."""
        with self.bus() as bus:
            held = locks.hold(bus.lock(agent, kind))
            assert held is not None
            self.listening[agent, kind] = held
            row = Listener(agent, kind, f"r{self.now}", self.room(bus), intent, os.getpid(), self.now)
            with db.Write(bus.con) as con:
                listeners.save(con, row)

    def deafen(self, agent: str, kind: str = "wait") -> None:
        """Its listener ended."""
        held = self.listening.pop((agent, kind), None)
        if held is not None:
            held.release()

    # --- guardians ---------------------------------------------------------------------

    def _start(self, bus, guard):
        if self.no_guardian:
            raise BusError("cli_error", "the guardian did not answer")
        lock = locks.hold(bus.lease_lock(guard.lease))
        if lock is None:
            return None
        self.guardians[guard.lease] = Guarding(self, bus, guard, lock)
        return self.guardians[guard.lease]

    def guard(self) -> None:
        """Every guardian looks once, as it does at a bell, a death or a beat."""
        with self.bus() as bus:
            for lease, one in list(self.guardians.items()):
                if one.real._step(bus) is None:
                    self.guardians.pop(lease).lock.release()

    def kill_guardian(self) -> None:
        """SIGKILL for every guardian."""
        while self.guardians:
            self.guardians.popitem()[1].lock.release()

    # --- commands ----------------------------------------------------------------------

    def enter(self, agent: str, path: str | None = None, **named):
        return enter.enter(path or self.path, agent=agent, env=self.env, **named)

    def do(self, agent: str, operation, *args, printed=True, settled=True, path=None, **named):
        """Run one command to its end, as `tt` does; its result. Unprinted or unsettled: it died there."""
        make = operation is join.join
        need_room = operation not in (join.join, receive.inbox)
        with contextlib.closing(self.enter(agent, path, make=make, need_room=need_room)) as ctx:
            outcome = operation(ctx, *args, **named)
            served = deliver.carry_out(ctx.bus, outcome)
            if printed and settled:
                receive.settle(ctx.bus, outcome.receipt, clock.now())
                deliver.after_write(ctx.bus, self.data, served)
        self._exited()
        return outcome.result

    def wait(self, agent: str, *, timeout_ms: int = 0, printed=True, **named):
        """One `wait` whose time-out is over at once: what it printed, or None."""
        said: list[dict] = []

        def emit(result) -> bool:
            if printed:
                said.append(result)
            return printed

        with contextlib.closing(self.enter(agent)) as ctx:
            waiting.wait(ctx, emit=emit, timeout_ms=timeout_ms, **named)
        self._exited()
        return said[0] if said else None

    def _exited(self) -> None:
        for one in self.guardians.values():
            one.real.pipe = -1
        self.guard()

    def refused(self, agent: str, code: str, operation, *args, **named) -> BusError:
        """The command is refused with this code, and the database is as it was."""
        before = self.dump()
        with pytest.raises(BusError) as refused:
            self.do(agent, operation, *args, **named)
        assert refused.value.code == code, f"{refused.value.code}: {refused.value.message}"
        assert self.dump() == before, "a refusal wrote something"
        return refused.value

    def join(self, *agents: str) -> None:
        for agent in agents:
            self.do(agent, join.join)

    def own(self, agent: str):
        """The agent gets the turn by `try`."""
        result = self.do(agent, granting.try_once)
        assert result["status"] == "your_turn", result
        return result

    def inbox(self, agent: str) -> list[dict]:
        """What it drains now."""
        found = self.do(agent, receive.inbox)["events"]
        assert isinstance(found, list)
        return found

    def texts(self, agent: str) -> list[str]:
        """The messages that it drains now."""
        return [event["text"] for event in self.inbox(agent) if event["type"] == "message"]

    # --- the store -----------------------------------------------------------------------

    def bus(self):
        (name,) = (name for name in os.listdir(os.path.join(self.data, "buses")) if name.startswith("work-"))
        return db.open_bus(os.path.join(self.data, "buses", name))

    def room(self, bus=None) -> int:
        """The number of the room at `path`."""
        return int(self.rows("SELECT id FROM rooms WHERE path = ?", self.path)[0]["id"])

    def rows(self, sql: str, *values) -> list[sqlite3.Row]:
        with self.bus() as bus:
            bus.con.row_factory = sqlite3.Row
            return bus.con.execute(sql, values).fetchall()

    def one(self, sql: str, *values):
        """The only value of the only row."""
        (row,) = self.rows(sql, *values)
        return row[0]

    def state(self) -> sqlite3.Row:
        """The row of the room."""
        (row,) = self.rows("SELECT * FROM rooms WHERE path = ?", self.path)
        return row

    def pending(self) -> list[int]:
        """Handoffs that wait for the next holder."""
        found = self.rows(
            "SELECT seq FROM mail WHERE box GLOB 'turn:*' AND received_at IS NULL ORDER BY seq",
        )
        return [row[0] for row in found]

    def dump(self) -> list[str]:
        """Everything in the database, as text."""
        with self.bus() as bus:
            return list(bus.con.iterdump())

    def check(self) -> None:
        """The store's own invariants hold."""
        if not os.path.isdir(os.path.join(self.data, "buses")):
            return
        with self.bus() as bus:
            assert check.check(bus.con) == []

    def close(self) -> None:
        """Free every lock."""
        self.kill_guardian()
        for key in list(self.listening):
            self.listening.pop(key).release()
