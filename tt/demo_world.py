"""The scratch world of `tt demo`: a repository, a data directory, clients, and their commands.

Kept true: every process gets an environment made from scratch, so it makes no difference who
runs the demo; `close` ends every process that belongs to it, each by its pid, and removes the
folder. Whatever is not as it should be raises `Failed`, with words for a person.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from bus import clock, ids
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo_client.py")
GRACE = 1500  # ms; limits.GONE_GRACE of the demo, which nobody wants to watch for ten seconds
PATIENCE = 10_000  # ms until a step that hangs is called failed
QUIET = 60 if os.path.isdir("/proc/self/task") else 400  # ms; after them a process has come to rest
LONGEST = 1 << 16


class Failed(Exception):  # noqa: N818  # a step failed: the word that the story uses
    """A step did not come out as it must."""


class Heard(Record):
    """One line of a command's stdout, and when it arrived (ms, monotonic)."""

    value: dict[str, Any]
    at: float


class Running:
    """A command that an agent has started. `began` is the moment before it was."""

    def __init__(self, agent: Agent, words: tuple[str, ...]) -> None:
        """Start it as a child of the agent's client."""
        self.agent, self.words, self.buffer = agent, words, b""
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.began = clock.monotonic()
        try:
            self.pid = agent.client.start(agent, words, out, err)
        finally:
            os.close(out)
            os.close(err)

    def heard(self, within: int = PATIENCE) -> Heard:
        """The next line of stdout."""
        end = clock.monotonic() + within
        while b"\n" not in self.buffer:
            left = end - clock.monotonic()
            if left <= 0 or not select.select([self.out], [], [], left / 1000)[0]:
                raise Failed(f"{self} said nothing within {within / 1000:g} s")
            piece = os.read(self.out, LONGEST)
            if not piece:
                raise Failed(f"{self} ended without a result{self._said()}")
            self.buffer += piece
        at = clock.monotonic()
        line, _, self.buffer = self.buffer.partition(b"\n")
        return Heard(json.loads(line), at)

    def ready(self) -> bool:
        """Whether it has said something that nobody has heard, or ended."""
        return bool(self.buffer or select.select([self.out], [], [], 0)[0])

    def end(self) -> None:
        """Its end, which must be a good one."""
        while select.select([self.out], [], [], PATIENCE / 1000)[0]:
            if not os.read(self.out, LONGEST):
                break
        else:
            raise Failed(f"{self} did not end")
        code = self.agent.client.ended(self.pid)
        if code:
            raise Failed(f"{self} ended with {code}{self._said()}")
        os.close(self.out)
        os.close(self.err)

    def _said(self) -> str:
        """What is on stderr."""
        ready = select.select([self.err], [], [], 0)[0]
        text = os.read(self.err, LONGEST).decode("utf-8", "replace").strip() if ready else ""
        return f": {text}" if text else ""

    def settle(self) -> None:
        """Wait until it blocks: its lock held, every thread asleep, and no switch for a while.

        A process that computes on a free core is never switched either, so both are looked at.
        """
        end = clock.monotonic() + PATIENCE
        before: int | None = -1
        while clock.monotonic() < end:
            now = switches(self.pid)
            if now == before and self.agent.listens() and not runs(self.pid):
                return
            before = now
            pause(QUIET)
        raise Failed(f"{self} did not come to rest")

    def __str__(self) -> str:
        """As the agent would have typed it."""
        return f"{self.agent.name}'s `tt {' '.join(self.words[:2])}`"


class Client:
    """A process that stands for a harness client: the anchor of one agent."""

    def __init__(self, world: World) -> None:
        """Start it; it ends when this process does."""
        self.sock, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-I", "-S", CLIENT, str(theirs.fileno())]
            self.process = subprocess.Popen(
                argv,
                env=world.env,
                cwd=world.top,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is meant for the demo, which then ends it in good order
            )
        self.sock.settimeout(PATIENCE / 1000)
        self.pid = self.process.pid

    def start(self, agent: Agent, words: tuple[str, ...], out: int, err: int) -> int:
        """Start `tt WORDS` with these streams; its pid."""
        argv = [sys.executable, "-I", "-m", "tt", *words]
        request = {"argv": argv, "env": agent.env, "cwd": agent.place}
        return self._ask(request, [out, err])

    def ended(self, pid: int) -> int:
        """The exit code of a child that is over."""
        return self._ask({"wait": pid}, [])

    def _ask(self, request: dict[str, Any], streams: list[int]) -> int:
        """One request and its answer."""
        try:
            socket.send_fds(self.sock, [json.dumps(request).encode()], streams)
            return int(self.sock.recv(64))
        except (OSError, ValueError) as error:
            raise Failed(f"a client process does not answer: {type(error).__name__}") from error

    def kill(self) -> None:
        """SIGKILL: no word of farewell, as when a client crashes."""
        self.process.kill()
        self.process.wait(PATIENCE / 1000)

    def close(self) -> None:
        """Let it end by itself, its commands with it; kill it if it doesn't."""
        self.sock.close()
        try:
            self.process.wait(PATIENCE / 1000)
        except subprocess.TimeoutExpired:
            self.kill()


class Agent:
    """One session: its client, its environment, its working tree."""

    def __init__(self, world: World, name: str, place: str) -> None:
        """Start its client. The id is known once it has joined."""
        self.world, self.name, self.place = world, name, place
        self.client = Client(world)
        self.id = ""
        session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": f"demo-{name}", "CLAUDE_PID": str(self.client.pid)}
        self.env = world.env | session

    def start(self, *words: str) -> Running:
        """Start a command and go on."""
        return Running(self, words)

    def tt(self, *words: str) -> dict[str, Any]:
        """Run a command to its good end; its result."""
        running = Running(self, words)
        heard = running.heard()
        running.end()
        return heard.value

    def listens(self) -> bool:
        """Whether a live wait of this agent holds its lock."""
        from bus import locks

        return locks.held(os.path.join(self.world.bus_dir(), "locks", ids.file_name(self.id), "wait"))


class World:
    """Everything of one demo, below one scratch folder."""

    def __init__(self) -> None:
        """Make the folder; nothing is started yet."""
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="tt-demo-"))
        self.agents: list[Agent] = []
        self.data = os.path.join(self.top, "data")
        home = os.path.join(self.top, "home")
        os.mkdir(home, 0o700)
        tests = {name: value for name, value in os.environ.items() if name.startswith("TT_TEST_")}
        self.env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "USER": "demo",
            "LANG": "C.UTF-8",
            "TALKING_STICK_DATA_DIR": self.data,
            "TT_TEST_GONE_GRACE": str(GRACE),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        } | tests

    def git(self, where: str, *words: str) -> None:
        """Run git there."""
        who = ["-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false"]
        try:
            done = subprocess.run(
                ["git", *who, *words],
                cwd=where,
                env=self.env,
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=PATIENCE / 1000,
            )
        except FileNotFoundError as error:
            raise Failed("git is not on the PATH") from error
        if done.returncode:
            raise Failed(f"git {words[0]}: {done.stderr.strip()}")

    def agent(self, name: str, place: str) -> Agent:
        """A new session there."""
        made = Agent(self, name, os.path.join(self.top, place))
        self.agents.append(made)
        return made

    def bus_dir(self) -> str:
        """The directory of the one bus."""
        from bus import places

        found = places.buses(self.data)
        if len(found) != 1:
            raise Failed(f"{len(found)} buses instead of one")
        return found[0]

    def kill(self, pid: int) -> None:
        """SIGKILL for one process of ours."""
        os.kill(pid, signal.SIGKILL)

    def close(self) -> int:
        """End every process, remove the folder; how many processes were ended. Raises Failed if any stays."""
        for agent in self.agents:
            agent.client.close()
        ended = len(self.agents) + self._end_rest()
        shutil.rmtree(self.top, ignore_errors=True)
        left = [self.top] if os.path.exists(self.top) else []
        if left:
            raise Failed(f"left behind: {left[0]}")
        return ended

    def _end_rest(self) -> int:
        """Kill guardians, which are nobody's children, until none is left; how many there were."""
        import psutil

        ended: set[int] = set()
        for _ in range(20):
            found = belonging(self.data)
            if not found:
                return len(ended)
            for process in found:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(found, timeout=PATIENCE / 1000)
            ended |= {process.pid for process in found}
        raise Failed(f"processes keep appearing: {sorted(ended)}")


def belonging(data: str) -> list[Any]:
    """The processes that work on this data directory, by their environment.

    A command line proves nothing: whoever looks into the folder meanwhile names it too.
    """
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("TALKING_STICK_DATA_DIR") == data
            over = process.status() == psutil.STATUS_ZOMBIE
        except (psutil.Error, OSError):
            continue
        if mine and not over and process.pid != os.getpid():
            found.append(process)
    return found


def pause(ms: int) -> None:
    """Let time pass."""
    select.select([], [], [], ms / 1000)


def switches(pid: int) -> int | None:
    """Context switches of all threads of a process so far; None where the system does not say."""
    lines = [line for text in _threads(pid, "status") for line in text.splitlines() if "ctxt_switches" in line]
    return sum(int(line.split()[1]) for line in lines) if lines else None


def runs(pid: int) -> bool:
    """Whether any thread of a process computes now; false where the system does not say."""
    return any(text.rpartition(")")[2].split()[:1] != ["S"] for text in _threads(pid, "stat"))


def _threads(pid: int, name: str) -> list[str]:
    """One file of `/proc` for each thread of a process; empty where there is none."""
    folder = f"/proc/{pid}/task"
    found = []
    try:
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/{name}", encoding="ascii", errors="replace") as file:
                found.append(file.read())
    except OSError:  # another system, or the process has ended
        return []
    return found
