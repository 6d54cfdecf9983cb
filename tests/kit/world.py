"""`World`: scratch repositories, and agents and people who run the real `tt` in them.

    def test_a_message_arrives(world):
        repo = world.repo()
        ann, bob = world.agent("ann", repo), world.agent("bob", repo)
        ann.tt("join").ok(); bob.tt("join").ok()
        waiting = bob.start("wait")
        ann.tt("msg", "send", bob.id, "hello").ok()
        assert waiting.line()["wake_reason"] == "event"

Every command gets an environment made from scratch. Closing kills all that holds this world's
data directory, by pid; the `world` fixture then checks the invariants of every bus.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import sqlite3
import subprocess
import sys
import uuid

from tests.kit.anchor import Client
from tests.kit.procs import Proc, Run, kill_holding, wait_for

__all__ = ["Agent", "Proc", "Run", "World", "invariants", "store", "tt_command", "wait_for"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USER = "tester"

# harness → the name of its process, and what it puts into the environment of a shell command
HARNESSES = {
    "claude": (
        "claude",
        lambda key, pid: {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": key, "CLAUDE_PID": str(pid)},
    ),
    "codex": ("codex", lambda key, pid: {"CODEX_THREAD_ID": key}),
    "grok": ("grok", lambda key, pid: {"GROK_AGENT": "1", "GROK_SESSION_ID": key}),
    "opencode": (
        "opencode",
        lambda key, pid: {"OPENCODE": "1", "OPENCODE_RUN_ID": key, "OPENCODE_PID": str(pid)},
    ),
    "antigravity": ("agy", lambda key, pid: {"ANTIGRAVITY_AGENT": "1", "ANTIGRAVITY_CONVERSATION_ID": key}),
    "gemini": ("gemini", lambda key, pid: {"GEMINI_CLI": "1"}),
}


@functools.cache
def tt_command() -> list[str]:
    """How `tt` is started: the console script beside this Python, else `python -I -m tt`."""
    script = os.path.join(os.path.dirname(sys.executable), "tt")
    return [script] if os.path.exists(script) else [sys.executable, "-I", "-m", "tt"]


class Agent:
    """One session (or person): its client process, its environment, its directory."""

    def __init__(self, world: World, name: str, cwd: str, env: dict[str, str], client: Client) -> None:
        self.world, self.name, self.cwd, self.env, self.client = world, name, cwd, env, client

    def start(self, *args: str, env=None, input=None, cwd=None) -> Proc:
        """Start `tt ARGS` and go on. `env` adds variables (None takes one away), `input` feeds stdin."""
        return self.run([*tt_command(), *args], env=env, input=input, cwd=cwd)

    def run(self, argv, *, env=None, input=None, cwd=None) -> Proc:
        """Start any program as this agent would (a hook, `tail -F`, git)."""
        merged = {k: v for k, v in {**self.env, **(env or {})}.items() if v is not None}
        data = input.encode("utf-8", "surrogateescape") if isinstance(input, str) else input
        proc = Proc(list(argv), self.client.starter(cwd or self.cwd, merged), data)
        self.world.procs.append(proc)
        return proc

    def tt(self, *args: str, input=None, env=None, timeout: float = 20, cwd=None) -> Run:
        """Run `tt ARGS` to its end."""
        return self.start(*args, env=env, input=input, cwd=cwd).wait(timeout)

    @functools.cached_property
    def id(self) -> str:
        """Its agent id, as `tt whoami` tells it."""
        return self.tt("whoami", "--json").ok().json["agent_id"]

    def die(self) -> None:
        """SIGKILL for the client. Its running commands live on; new ones are no longer its children."""
        self.client.die()

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {self.cwd!r})"


class World:
    """All of one test, below one scratch folder."""

    def __init__(self, tmp_path, limits=None) -> None:
        """`limits`: {"GONE_GRACE": 300} sets TT_TEST_GONE_GRACE for every command (see bus.limits)."""
        self.top = os.path.realpath(tmp_path)
        self.data = os.path.join(self.top, "data")
        self.home = os.path.join(self.top, "home")
        for folder in (self.data, self.home):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self.limits: dict[str, str] = {}
        self.agents: list[Agent] = []
        self.procs: list[Proc] = []
        self.limit(**(limits or {}))

    def limit(self, **limits: int) -> None:
        """Set limits for agents made from now on, and for those there are."""
        named = {name if name.startswith("TT_") else f"TT_TEST_{name}": str(v) for name, v in limits.items()}
        self.limits.update(named)
        for agent in self.agents:
            agent.env.update(named)

    def env(self, **extra: str) -> dict[str, str]:
        """An environment from scratch: nothing of the developer's but the PATH behind our own."""
        return {
            "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath),
            "HOME": self.home,
            "TALKING_STICK_DATA_DIR": self.data,
            "USER": USER,
            "LOGNAME": USER,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.limits,
            **extra,
        }

    def git(self, cwd: str, *args: str) -> str:
        """Run git there; its output."""
        who = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *who, *args],
            cwd=cwd,
            env=self.env(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout.strip()

    def repo(self, name: str = "repo") -> str:
        """A repository with one commit on `main`; its path."""
        path = os.path.join(self.top, name)
        os.makedirs(path)
        self.git(path, "init", "-q", "-b", "main")
        self.write(path, "README.md", f"# {name}\n")
        self.git(path, "add", "-A")
        self.git(path, "commit", "-q", "-m", "first")
        return path

    def worktree(self, repo: str, name: str, *, nested: bool = False) -> str:
        """A linked worktree on a branch of its own, beside the repository or (nested) inside it; its path."""
        path = os.path.join(repo if nested else self.top, name)
        self.git(repo, "worktree", "add", "-q", "-b", name, path)
        return path

    def folder(self, name: str) -> str:
        """A plain directory outside git; its path."""
        path = os.path.join(self.top, name)
        os.makedirs(path, exist_ok=True)
        return path

    @staticmethod
    def write(folder: str, name: str, text: str) -> str:
        """Write a file, with its folders; its path."""
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def agent(self, name: str, cwd: str, harness: str = "claude", session: str | None = None, **env: str) -> Agent:
        """A session of that harness, with a live client process. `env` adds variables."""
        process, variables = HARNESSES[harness]
        client = self._client(process, orphan=False)
        made = self.env(**variables(session or str(uuid.uuid4()), client.pid), **env)
        return self._add(Agent(self, name, cwd, made, client))

    def person(self, name: str, cwd: str, **env: str) -> Agent:
        """A person at a shell: user `name`, no harness in the environment and none among the ancestors."""
        client = self._client("sh", orphan=True)
        return self._add(Agent(self, name, cwd, self.env(USER=name, LOGNAME=name, **env), client))

    def _client(self, process: str, *, orphan: bool) -> Client:
        # the data directory in its environment is what `close` finds it by, should all else fail
        return Client(os.path.join(self.top, "clients"), process, self.env(), orphan=orphan)

    def _add(self, agent: Agent) -> Agent:
        self.agents.append(agent)
        return agent

    def bus_dirs(self) -> list[str]:
        """The directories of the buses there are."""
        return sorted(map(os.path.dirname, glob.glob(os.path.join(glob.escape(self.data), "buses/*/bus.db"))))

    def bus(self) -> str:
        """The directory of the only bus."""
        (found,) = self.bus_dirs()
        return found

    def rows(self, sql: str, *values) -> list[sqlite3.Row]:
        """Rows of the only bus, for assertions."""
        with store(self.bus()) as con:
            return con.execute(sql, values).fetchall()

    def close(self) -> None:
        """Kill everything of this world by pid (guardians and drains too) and reap our own."""
        for agent in self.agents:
            agent.client.close()
        kill_holding(self.data)
        for proc in self.procs:
            with contextlib.suppress(AssertionError):
                proc.wait(5)


@contextlib.contextmanager
def store(bus_dir: str):
    """A read-only connection to a bus's database, closed afterwards."""
    con = sqlite3.connect(f"file:{os.path.join(bus_dir, 'bus.db')}?mode=ro", uri=True, isolation_level=None)
    con.row_factory = sqlite3.Row
    try:
        yield con
    finally:
        con.close()


def invariants(bus_dir: str) -> None:
    """Assert that the store's self-check finds nothing."""
    from bus.store import check

    with store(bus_dir) as con:
        problems = list(check.check(con))
    assert not problems, "\n".join(f"{name}: {detail}" for name, detail in problems)
