"""What every row needs: a scratch place, agents anchored on this process, timed processes, a table.

Cases that are compared run interleaved in random order, so that a noisy moment hits all alike.
Every wait has a limit; `Place.close` kills whatever is left.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import random
import select
import shutil
import signal
import statistics
import sys
import tempfile
import time
import uuid

from tests.kit.procs import gone, kill_holding
from tests.kit.world import World

QUIET = 0.05  # seconds without a context switch
LIMIT = 30.0  # seconds until a measured process is called hung
PROTOTYPE = [sys.executable, "-I", os.path.join(os.path.dirname(os.path.abspath(__file__)), "prototype.py")]
TT = os.path.join(os.path.dirname(sys.executable), "tt")


class HungError(Exception):
    """A measured process did not do what it was started for."""


class Row:
    """One line of the table."""

    def __init__(self, what, ours, reach, *, ok=None, compared=None, unit="ms", note="") -> None:
        """`ours` and the values of `compared` are numbers in `unit`; `reach` is what to reach, in words."""
        self.what, self.ours, self.reach, self.ok = what, ours, reach, ok
        self.compared, self.unit, self.note = compared or {}, unit, note

    def as_json(self):
        """For the file."""
        kept = dict(vars(self))
        kept["ratios"] = {name: ratio(self.ours, value) for name, value in self.compared.items()}
        return kept

    def cells(self) -> list[str]:
        """For the table."""
        others = ", ".join(f"{name} {shown(value)}" for name, value in self.compared.items())
        ratios = ", ".join(f"{ratio(self.ours, value):g}×" for value in self.compared.values() if value)
        mark = {True: "✓", False: "✗", None: " "}[self.ok]
        ours = f"{shown(self.ours)} {self.unit}".strip() + (f" ({self.note})" if self.note else "")
        return [mark, self.what, ours, self.reach, others, ratios]


def shown(value) -> str:
    """A figure as short as it is exact."""
    if isinstance(value, float):
        return f"{value:.2f}" if value < 1 else f"{value:.1f}"
    return str(value)


def ratio(ours, other) -> float | None:
    """How many times the other."""
    both = isinstance(ours, int | float) and isinstance(other, int | float) and other
    return round(ours / other, 2) if both else None


def median(samples) -> float:
    """The middle one."""
    return statistics.median(samples)


def p95(samples) -> float:
    """All but the slowest twentieth are at most this."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def interleaved(cases, times: int) -> dict[str, list[float]]:
    """Run every case that often, in random order each time; name → samples in ms."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(times):
        names = list(cases)
        random.shuffle(names)
        for name in names:
            found[name].append(cases[name]())
    return found


class Session:
    """An agent whose client is this very process."""

    def __init__(self, place: Place, cwd: str, session: str = "") -> None:
        variables = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session or str(uuid.uuid4())}
        self.place, self.cwd = place, cwd
        self.env = place.world.env(**variables, CLAUDE_PID=str(os.getpid()))

    def tt(self, *words: str) -> float:
        """Run `tt WORDS` to its end; how long the whole process took."""
        return timed([TT, *words], self.env, self.cwd)

    def result(self, *words: str):
        """Run it and read its result."""
        started = Started([TT, *words], self.env, self.cwd)
        text = started.rest()
        started.done()
        return json.loads(text)

    def start(self, *words: str) -> Started:
        """Start it and go on."""
        return Started([TT, *words], self.env, self.cwd)

    def join(self) -> Session:
        """Become a member; the id is known then."""
        self.id = self.result("join")["agent_id"]
        return self

    def wait(self) -> Started:
        """A `tt wait` that has come to rest."""
        waiting = self.start("wait")
        waiting.settle()
        return waiting


class Started:
    """A process whose stdout we read."""

    def __init__(self, argv, env, cwd, *, errors: bool = False) -> None:
        """With `errors` its stderr is read as well."""
        self.argv = argv
        self.out, end = os.pipe()
        self.began = time.perf_counter()
        self.pid = spawn(argv, env, cwd, end, errors=errors)
        os.close(end)
        self.text = b""

    def line(self, limit: float = LIMIT) -> float:
        """Wait for its next line; when it came (seconds, perf_counter)."""
        until = time.perf_counter() + limit
        while b"\n" not in self.text:
            left = until - time.perf_counter()
            if left <= 0 or not select.select([self.out], [], [], left)[0]:
                self.kill()
                raise HungError(f"no line from {self.argv[-3:]}")
            piece = os.read(self.out, 1 << 16)
            if not piece:
                raise HungError(f"no line, but the end of {self.argv[-3:]}")
            self.text += piece
        at = time.perf_counter()
        self.last, _, self.text = self.text.partition(b"\n")
        return at

    def rest(self) -> bytes:
        """Everything up to its end."""
        found = self.text
        while select.select([self.out], [], [], LIMIT)[0]:
            piece = os.read(self.out, 1 << 16)
            if not piece:
                return found
            found += piece
        self.kill()
        raise HungError(f"no end of {self.argv[-3:]}")

    def done(self) -> int:
        """Reap it."""
        code = reap(self.pid, self.argv)
        os.close(self.out)
        return code

    def settle(self) -> None:
        """Wait until it blocks."""
        settle(self.pid)

    def kill(self) -> None:
        """Away with it."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def spawn(argv, env, cwd, stdout: int | None = None, *, errors: bool = False) -> int:
    """Start a program with no other streams; posix_spawn, since its own cost is in every figure."""
    null = os.devnull
    actions: list[tuple] = [(os.POSIX_SPAWN_OPEN, fd, null, os.O_RDWR, 0) for fd in (0, 1, 2)]
    if stdout is not None:
        actions[1] = (os.POSIX_SPAWN_DUP2, stdout, 1)
        if errors:
            actions[2] = (os.POSIX_SPAWN_DUP2, stdout, 2)
    os.chdir(cwd)
    return os.posix_spawn(argv[0], argv, env, file_actions=actions)


def reap(pid: int, argv) -> int:
    """Its exit code. A hung one is killed."""
    watch = os.pidfd_open(pid)
    try:
        if not select.select([watch], [], [], LIMIT)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise HungError(f"no end of {argv[-3:]}")
    finally:
        os.close(watch)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def timed(argv, env, cwd) -> float:
    """How long a whole process takes, in ms. It must succeed."""
    began = time.perf_counter()
    pid = spawn(argv, env, cwd)
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter() - began) * 1000
    if status:
        raise HungError(f"{argv[-3:]} ended with {os.waitstatus_to_exitcode(status)}")
    return took


def switches(pid: int) -> int:
    """Context switches of all threads so far."""
    total = 0
    with contextlib.suppress(OSError):
        for path in glob.glob(f"/proc/{pid}/task/*/status"):
            with open(path) as file:
                total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


def settle(pid: int) -> None:
    """Wait until a process blocks: every thread asleep, and no context switch for a while.

    Neither alone will do: a process that computes on a free core is never switched either.
    """
    before, since, until = -1, 0.0, time.perf_counter() + LIMIT
    while time.perf_counter() < until:
        if gone(pid):
            raise HungError(f"process {pid} has ended instead of blocking")
        now = switches(pid)
        if now != before or not asleep(pid):
            before, since = now, time.perf_counter()
        elif time.perf_counter() - since > QUIET:
            return
        time.sleep(0.004)
    raise HungError(f"process {pid} does not come to rest")


def asleep(pid: int) -> bool:
    """Does none of its threads run?"""
    with contextlib.suppress(OSError):
        for path in glob.glob(f"/proc/{pid}/task/*/stat"):
            with open(path) as file:
                if file.read().rpartition(")")[2].split()[0] != "S":
                    return False
    return True


def rss(pid: int) -> float:
    """Resident memory in MB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


class Place:
    """Everything of one run below one scratch folder."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="tt-bench-"))
        self.world = World(os.path.join(self.top, "w"))
        self.count = 0

    def times(self, full: int, quick: int) -> int:
        """How often, by the kind of run."""
        return quick if self.quick else full

    def repo(self) -> str:
        """A fresh repository, which is a fresh bus."""
        self.count += 1
        return self.world.repo(f"r{self.count}")

    def sessions(self, cwd: str, count: int) -> list[Session]:
        """That many members of the room there, who have read who else came."""
        found = [Session(self, cwd).join() for _ in range(count)]
        for session in found:
            session.tt("inbox")
        return found

    def folder(self, name: str) -> str:
        """An empty folder."""
        self.count += 1
        path = os.path.join(self.top, f"{name}{self.count}")
        os.makedirs(path)
        return path

    def close(self) -> None:
        """Kill by pid, remove."""
        os.chdir("/")
        self.world.close()
        kill_holding(self.top)
        shutil.rmtree(self.top, ignore_errors=True)


def python_sqlite(place: Place):
    """The cost that nothing in Python with SQLite can go below."""
    argv = [sys.executable, "-I", "-c", "import sqlite3"]
    return lambda: timed(argv, place.world.env(), place.top)


def node(place: Place):
    """The cost of any program on Node, or None."""
    found = shutil.which("node")
    return (lambda: timed([found, "-e", "0"], place.world.env(), place.top)) if found else None


def finish(*procs: Started) -> None:
    """Reap what has ended, kill what has not."""
    for proc in procs:
        if not gone(proc.pid):
            proc.kill()
        else:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(proc.pid, 0)
        with contextlib.suppress(OSError):
            os.close(proc.out)
