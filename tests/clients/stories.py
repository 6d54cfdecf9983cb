"""The words in which these tests are told."""

from __future__ import annotations

import datetime as dt
import os
import re
import statistics
import subprocess
import sys
import time

import psutil

from bus import ids, locks
from tests.clients.model import Request, bash, say
from tests.kit.procs import gone, wait_for
from tests.processes.stories import wchan

ALLOW = {"allow": ["Bash", "Read", "Edit", "Write"]}  # default mode would ask a person for each


def seconds(stamp: str) -> float:
    """An ISO time of the bus as Unix seconds."""
    return dt.datetime.fromisoformat(stamp).timestamp()


def joins(client, *more: str) -> str:
    """The model joins the room (in a terminal) and does what else is told; the agent's id."""
    steps = [bash("tt join --json"), *map(bash, more), say("joined")]
    before = client.model.count()
    client.ask(client.model.script(f"joins{before}", *steps), len(steps))
    return client.model.since(before)[1].json["agent_id"]


def waits(client) -> int:
    """The model leaves a `tt wait` in the background and ends its turn; the pid of that wait."""
    before = client.model.count()
    client.ask(client.model.script(f"waits{before}", bash("tt wait --json", background=True), say("waiting")), 2)
    return wait_for(lambda: listener(client.world), what="a registered wait")


def listener(world, kind: str = "wait", but: int = 0) -> int:
    """The pid of the one live listener of this kind (another one than `but`), or 0."""
    rows = world.rows("SELECT pid FROM listeners WHERE kind = ? AND pid <> ?", kind, but)
    alive = [row["pid"] for row in rows if not gone(row["pid"])]
    return alive[0] if alive else 0


def output_file(world, pid: int) -> str:
    """Where the client collects what this background command prints."""
    found = os.readlink(f"/proc/{pid}/fd/1")
    assert found.startswith(world.top), found
    return found


def read(path: str) -> str:
    """A file's text."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def unread(world, agent: str) -> list[int]:
    """The addressed mail that this agent has not received."""
    rows = world.rows("SELECT seq FROM mail WHERE box = ? AND received_at IS NULL ORDER BY seq", agent)
    return [row["seq"] for row in rows]


def received(world, agent: str, seq: int) -> bool:
    """Is this mail recorded as received?"""
    return bool(world.rows("SELECT 1 FROM mail WHERE box = ? AND seq = ? AND received_at IS NOT NULL", agent, seq))


def sends(sender, to: str, text: str, *more: str):
    """`tt msg send`; its result."""
    return sender.tt("msg", "send", to, text, "--json", *more).ok().json


def woken_after(sent: dict, request: Request) -> float:
    """Seconds from the commit of a message to the model's request."""
    return request.wall - seconds(sent["created_at"])


def slowness() -> float:
    """How much slower than usual this machine is now (at least 1): a busy one is no defect of ours."""
    taken = []
    for _ in range(7):
        began = time.monotonic()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        taken.append(time.monotonic() - began)
    return max(1.0, statistics.median(taken) / 0.012)


def told(name: str, values) -> None:
    """Print a measurement (seen with -s and in the report of a failure)."""
    figures = sorted(value * 1000 for value in values)
    print(f"{name}: n={len(figures)} median={statistics.median(figures):.0f} ms {figures[0]:.0f}–{figures[-1]:.0f}")


def installed(project, client, *words: str):
    """`tt install` for this client's home (`words` are further options); the finished command, which succeeded."""
    return project.tt(client, "install", {"claude": "claude-code"}.get(client.kind, client.kind), *words).ok()


def agent_of(world, client) -> str:
    """The agent bound to this client's process, as its hooks have recorded it."""

    def bound():
        rows = world.rows("SELECT id, anchor FROM agents WHERE anchor IS NOT NULL AND ended_at IS NULL")
        return [row["id"] for row in rows if row["anchor"].split("/")[1] == str(client.pid)]

    (found,) = wait_for(bound, what="an agent on record for the client's process")
    return found


def held(world, agent: str, kind: str) -> bool:
    """Does this agent have a live listener of this kind (wait, rewake, monitor)?"""
    return locks.held(os.path.join(world.bus(), "locks", ids.file_name(agent), kind))


def armed(client, agent: str) -> int:
    """The pid of the rewake that is blocked for this agent, waited for; the client is idle then."""
    client.idle()

    def blocked():
        pids = hooks_running(client, "rewake")
        return held(client.world, agent, "rewake") and len(pids) == 1 and asleep(pids[0]) and pids[0]

    return wait_for(blocked, what="one blocked rewake")


def asleep(pid: int) -> bool:
    """Does the process sleep on its bells (inotify) in the kernel?"""
    try:
        files = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any("inotify" in name for name in files) and wchan(pid).startswith(("poll", "do_poll"))


def hooks_running(client, name: str = "") -> list[int]:
    """The processes of our hooks (of this name) that belong to this client's home."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            ours = len(words) > 3 and any(word.endswith("hooks/run.py") for word in words[:4]) and name in (*words, "")
            if ours and process.environ().get("HOME") == client.home and not gone(process.pid):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def envelopes(text: str) -> list[str]:
    """The whole envelopes in a text, header to end."""
    return re.findall(r"\[talking-stick\] (?:room|bus) .*?^\[/talking-stick\]", text, re.MULTILINE | re.DOTALL)
