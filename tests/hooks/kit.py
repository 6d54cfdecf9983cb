"""Hooks as a client runs them: the installed command, a payload on stdin, the client as parent.

`Session` is a client session whose hooks the test fires; `rewake` starts one that blocks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import uuid

from bus import ids, locks
from tests.kit.world import ROOT, store, wait_for

RUN = os.path.join(ROOT, "hooks", "run.py")
HANDOFF = ("--status", "half done", "--next-action", "do the rest")
SLOW = os.environ.get("TESTS_SLOW", "") not in ("", "0")  # the long form of what has a short one
PROMPT = "please go on"
LEASE = re.compile(r"\d{13}(?=,\d+,\d+,)")


def command(name: str, *args: str) -> list[str]:
    """A hook without the shell around it."""
    return [sys.executable, "-I", "-S", RUN, name, *args]


def shell(name: str, *args: str, run: str = RUN) -> list[str]:
    """The line that is installed, run as clients run it."""
    words = " ".join(shlex.quote(word) for word in (sys.executable, "-I", "-S", run, name, *args))
    return ["/bin/sh", "-c", f"[ -f {shlex.quote(run)} ] || exit 0; exec {words} # talking-stick"]


class Session:
    """One session of a client, and what its client tells hooks about it."""

    def __init__(self, world, name: str, cwd: str, harness: str = "claude", **env: str) -> None:
        self.world, self.harness = world, harness
        self.key = str(uuid.uuid4())
        self.agent = world.agent(name, cwd, harness, session=self.key, **env)
        if harness == "claude":
            self.agent.env.update(CLAUDE_CODE_SESSION_ATTENDED="1", CLAUDE_CODE_ENTRYPOINT="cli")
        self.prompt = 0
        self.held: locks.Held | None = None

    @property
    def id(self) -> str:
        """The agent that its session is bound to."""
        rows = self.world.rows("SELECT agent FROM sessions WHERE key = ?", f"harness:{self.key}")
        return rows[0]["agent"]

    def payload(self, event: str, **more) -> dict:
        """What the client sends."""
        told = {
            "session_id": self.key,
            "transcript_path": f"/nowhere/{self.key}.jsonl",
            "cwd": self.agent.cwd,
            "hook_event_name": event,
        }
        if event not in ("SessionStart", "SessionEnd"):
            told |= {"prompt_id": f"prompt-{self.prompt}", "permission_mode": "default"}
        return {key: value for key, value in {**told, **more}.items() if value is not None}

    def pretend(self) -> None:
        """Hold the lock of a rewake, as if one were blocked: the session is not deaf. A real one takes over."""
        self.held = locks.hold(self.lock("rewake"))

    def start(self, hook: str, event: str, *args: str, env=None, raw: bytes | None = None, **more):
        """Start a hook; `raw` instead of the payload."""
        if hook == "rewake" and self.held is not None:
            self.held.release()
        data = json.dumps(self.payload(event, **more)).encode() if raw is None else raw
        argv = command(hook, "--harness", self.harness, *args)
        return self.agent.run(argv, env=env, input=data)

    def hook(self, hook: str, event: str, *args: str, env=None, raw: bytes | None = None, **more):
        """Run a hook to its end."""
        return self.start(hook, event, *args, env=env, raw=raw, **more).wait()

    def begin(self, source: str = "startup", **more):
        """SessionStart, without a rewake."""
        return self.hook("session", "SessionStart", source=source, **more)

    def end(self, reason: str = "other"):
        """SessionEnd."""
        return self.hook("session", "SessionEnd", reason=reason)

    def clear(self) -> None:
        """What `/clear` does: SessionEnd, a new session id in the same process, SessionStart."""
        self.end("clear")
        self.key = str(uuid.uuid4())
        self.agent.env["CLAUDE_CODE_SESSION_ID"] = self.key
        self.begin("clear").ok()

    def submit(self, text: str = PROMPT, **more) -> str:
        """UserPromptSubmit; what the board adds, empty for nothing."""
        self.prompt += 1
        run = self.hook("board", "UserPromptSubmit", prompt=text, **more).ok()
        return context(run)

    def stop(self, **more):
        """Stop, as its guard sees it."""
        return self.hook("stop-guard", "Stop", **more)

    def rewake(self, event: str = "Stop", *, env=None, **more):
        """A rewake that has its lock and blocks."""
        proc = self.start("rewake", event, env=env, **more)
        wait_for(lambda: self.armed() and asleep(proc.pid), what="a blocked rewake")
        return proc

    def rewake_now(self) -> str:
        """What a rewake says that finds something due at once."""
        run = self.hook("rewake", "Stop")
        assert (run.code, run.out) == (2, ""), repr(run)
        return run.err

    def take_over(self, other: Session) -> None:
        """Run the same session in this client: `--resume` in another terminal."""
        self.key = other.key
        self.agent.env["CLAUDE_CODE_SESSION_ID"] = other.key

    def mark_file(self) -> str:
        """Its open-turn mark."""
        return os.path.join(self.world.bus(), "bell", ids.file_name(self.id), "turn")

    def mark(self) -> str:
        """`open` or `closed`; empty where no hook has said so yet."""
        if not os.path.exists(self.mark_file()):
            return ""
        with open(self.mark_file(), encoding="ascii") as file:
            return file.read().split()[0]

    def armed(self, kind: str = "rewake") -> bool:
        """Does a listener of this kind live?"""
        return locks.held(self.lock(kind))

    def lock(self, kind: str) -> str:
        """The lock file of a listener."""
        rows = self.world.rows("SELECT agent FROM sessions WHERE key = ?", f"harness:{self.key}")
        return os.path.join(self.world.bus(), "locks", ids.file_name(rows[0]["agent"]) if rows else "", kind)

    def notified(self) -> list[str]:
        """The lines of its notify file."""
        path = os.path.join(self.world.bus(), ids.file_name(self.id) + ".notify")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()

    def unread(self) -> list[int]:
        """Numbers of its unread addressed mail."""
        rows = self.world.rows("SELECT seq FROM mail WHERE box = ? AND received_at IS NULL ORDER BY seq", self.id)
        return [row["seq"] for row in rows]

    def row(self):
        """Its row of the store."""
        return self.world.rows("SELECT * FROM agents WHERE id = ?", self.id)[0]


def context(run) -> str:
    """What a hook adds to the model's context, and that it is well-formed."""
    if not run.out:
        return ""
    told = json.loads(run.out)
    assert list(told) == ["hookSpecificOutput"], told
    assert list(told["hookSpecificOutput"]) == ["hookEventName", "additionalContext"], told
    return told["hookSpecificOutput"]["additionalContext"]


def asleep(pid: int) -> bool:
    """Does this process block in poll, armed? Before that it is busy or waits for a lock."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            where = file.read()
    except OSError:
        return False
    if "poll" in where:
        return True
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:  # no wchan in this kernel
        return file.read().split()[0] in ("7", "271", "73")


def switches(pid: int) -> int:
    """How often any thread of a process was put to sleep or woken so far."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


def rss(pid: int) -> int:
    """Resident memory, bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) * 1024


def dump(bus_dir: str) -> str:
    """The whole store as text; but for the end of leases, which guardians move."""
    with store(bus_dir) as con:
        return "\n".join(LEASE.sub("…", line) if '"rooms"' in line else line for line in con.iterdump())


def written(bus_dir: str) -> tuple:
    """What changes with any write of the store: the number of its commits, the size of its log."""
    wal = os.path.join(bus_dir, "bus.db-wal")
    with open(os.path.join(bus_dir, "bus.db"), "rb") as file:
        data = file.read()
    return data, os.path.getsize(wal) if os.path.exists(wal) else 0


def bodies(text: str) -> list[str]:
    """The indented lines of envelopes: what others wrote."""
    return [line[2:] for line in text.splitlines() if line.startswith("  ")]


def heads(text: str) -> list[str]:
    """The lines of envelopes that are ours."""
    return [line for line in text.splitlines() if not line.startswith("  ")]
