"""The words in which these tests are told: hold, hand over, block, look, count."""

from __future__ import annotations

import contextlib
import json
import os
import sys

import psutil

from tests.kit.procs import gone
from tests.kit.world import invariants, store, wait_for

HANDOFF = ("--status", "half done", "--next-action", "do the rest")
SLOW = os.environ.get("TESTS_SLOW", "") not in ("", "0")  # the long form of what has a short one

_SEND = """
import sys
from bus import clock, deliver
from bus.operations import enter, messages
to, text, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
ctx = enter.enter(None, make=True, need_room=False)
for number in range(count):
    ctx.now = clock.now()
    outcome = messages.send(ctx, to, f"{text} {number}")
    deliver.carry_out(ctx.bus, outcome)
    deliver.send(ctx.bus, deliver.sweep.sweep(ctx.bus))
ctx.close()
"""


def joined(world, *names: str, where: str | None = None, **limits: int):
    """Agents of these names, all members of one room (of a new repository), who have read of each other."""
    world.limit(**limits)
    place = where or world.repo()
    made = [world.agent(name, place) for name in names]
    for agent in made:
        agent.tt("join").ok()
    for agent in made[:-1]:
        agent.tt("inbox").ok()
    return made


def holder(agent):
    """The agent, which holds the turn now and knows it; its result."""
    result = agent.tt("try").ok().json
    assert result["status"] == "your_turn", result
    return result


def released(agent, *words: str, **more):
    """It hands the turn over; the result."""
    return agent.tt("release", *HANDOFF, *words, **more).ok().json


def blocked(world, proc):
    """The same process, once it sleeps on its bells and nothing else."""
    wait_for(lambda: not proc.running or _sleeps(world, proc.pid), what="a blocked wait")
    assert proc.running, proc.wait()
    return proc


def waiting(world, agent, *words: str, **more):
    """A blocked `tt wait` of this agent."""
    return blocked(world, agent.start("wait", *words, **more))


def _sleeps(world, pid: int) -> bool:
    registered = any(row["pid"] == pid for row in world.rows("SELECT pid FROM listeners WHERE kind = 'wait'"))
    return registered and "inotify" in " ".join(_open_files(pid)) and wchan(pid).startswith(("poll", "do_poll"))


def wchan(pid: int) -> str:
    """Where in the kernel the main thread sleeps."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _open_files(pid: int) -> list[str]:
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def stopped(proc):
    """The same process, once it has stopped at the point that it was told to stop at."""
    wait_for(
        lambda: not proc.running or psutil.Process(proc.pid).status() == psutil.STATUS_STOPPED,
        what="a stop at the named point",
    )
    assert proc.running, proc.wait()
    return proc


def queued(proc):
    """The same process, once it waits for another writer of the store."""
    wait_for(lambda: not proc.running or "nanosleep" in wchan(proc.pid), what="a writer in the queue")
    assert proc.running, proc.wait()
    return proc


def stop_at(point: str) -> dict[str, str]:
    """Environment: stop at this point."""
    return {"TT_TEST_CRASH": f"{point}!stop"}


def die_at(point: str) -> dict[str, str]:
    """Environment: die by SIGKILL at this point."""
    return {"TT_TEST_CRASH": point}


def switches(pid: int) -> int:
    """Context switches of all threads so far."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


def room(world, path: str | None = None):
    """The row of the only room, or of the room at this path."""
    rows = world.rows("SELECT * FROM rooms WHERE id > 0 AND (? IS NULL OR path = ?)", path, path)
    assert len(rows) == 1, [tuple(row) for row in rows]
    return rows[0]


def owner(world) -> str | None:
    """Who holds the turn of the only room."""
    return room(world)["owner"]


def guardians(world) -> list[int]:
    """The guardians that live in this world."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            words = process.cmdline()
            if any("monitor.guardian" in word for word in words) and any(world.data in word for word in words):
                found.append(process.pid)
    return [pid for pid in found if not gone(pid)]


def guarded(world) -> bool:
    """Does a live guardian, the one that is on record, hold the lock of the present lease?"""
    from bus import locks

    row = room(world)
    lock = os.path.join(world.bus(), "locks", f"lease-{row['lease_id']}")
    return bool(row["lease_id"]) and locks.held(lock) and not gone(row["guardian_pid"])


def notified(world, agent) -> list[str]:
    """The lines of its notify file, without their times."""
    from bus import ids

    path = os.path.join(world.bus(), ids.file_name(agent.id) + ".notify")
    try:
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n").partition("\t")[2] for line in file]
    except FileNotFoundError:
        return []


def unread(world, agent) -> list[int]:
    """Numbers of the addressed mail that it has not received."""
    rows = world.rows("SELECT seq FROM mail WHERE box = ? AND received_at IS NULL ORDER BY seq", agent.id)
    return [row["seq"] for row in rows]


def texts(result) -> list[str]:
    """The texts of the messages in a result."""
    return [event["text"] for event in result["events"] if event["type"] == "message"]


def listens(world, agent) -> bool:
    """Is the lock of its wait held?"""
    from bus import ids, locks

    return locks.held(os.path.join(world.bus(), "locks", ids.file_name(agent.id), "wait"))


def events(world, *types: str):
    """Events of these types (all without any), oldest first, with their bodies."""
    rows = world.rows(
        "SELECT * FROM events WHERE ? = '[]' OR type IN (SELECT value FROM json_each(?)) ORDER BY seq",
        json.dumps(types),
        json.dumps(types),
    )
    return [dict(row) | {"body": json.loads(row["body"])} for row in rows]


def sound(world) -> None:
    """Every bus of this world is sound now, and its log has no gap."""
    for bus_dir in world.bus_dirs():
        invariants(bus_dir)
        with store(bus_dir) as con:
            seqs = [row[0] for row in con.execute("SELECT seq FROM events ORDER BY seq")]
        assert seqs == list(range(1, len(seqs) + 1)), "an event is missing"


def sends_many(agent, to: str, text: str, count: int):
    """A process that sends `text 0`, `text 1`, … as fast as it can."""
    return agent.run([sys.executable, "-I", "-c", _SEND, to, text, str(count)])
