"""`tt demo`: the main job on a scratch repository, with real processes, told as it happens.

Every line of the story is a check that was really made; the exit code is 0 only if all were.
The first failure ends the story. Whatever ends it, no process and no file is left behind.
"""

from __future__ import annotations

import os
import signal
import sys

from bus import clock
from bus.records import Record
from tt import output
from tt.demo_world import GRACE, Agent, Failed, Running, World, pause, switches
from tt.text_parts import Paint, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
WATCHED = 1000  # ms during which a blocked wait must not move
TITLE = 50  # characters of a line before what was found
HANDOFF = ("the lexer is done, its tests pass", "write the parser, start in src/parser.py")


class Found(Record):
    """What a step found, in words; `ms` where a wake was measured; `more` lines to show below."""

    detail: str
    ms: float | None = None
    more: tuple[str, ...] = ()


class _EndedError(BaseException):
    """A signal asked the demo to end. No step may catch it."""


def run(args: dict[str, Any]) -> int:
    """Tell the story. 0 when every step was checked, 1 when one failed, 128 + n after a signal."""
    before = _take_signals()
    began = clock.monotonic()
    told = Telling(args)
    world = None
    number = 0
    try:
        world = World()
        told.all(Story(world).steps())
    except _EndedError as ended:
        number = int(ended.args[0])
    except OSError as error:
        told.failed("a scratch folder and its processes", str(error))
    finally:
        _ignore_signals(before)
        if world is not None:
            told.one("nothing is left behind", lambda: _close(world))
        for name, handler in before.items():
            signal.signal(name, handler if handler is not None else signal.SIG_DFL)
    if number:
        return 128 + number
    return told.end(round(clock.monotonic() - began))


def _take_signals() -> dict[int, Any]:
    """End the story, not the process, when somebody asks for an end. What was set before."""
    before: dict[int, Any] = {}
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, _end)
    return before


def _ignore_signals(taken: dict[int, Any]) -> None:
    """Cleaning up is not broken off."""
    for number in taken:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: object) -> None:
    """Leave the story."""
    raise _EndedError(number)


def _close(world: World) -> Found:
    """End every process of the world and remove its folder."""
    ended = world.close()
    return Found(f"{ended} processes ended, scratch folder removed")


class Telling:
    """Prints each step when it is over, or keeps all of them for one JSON object."""

    def __init__(self, args: dict[str, Any]) -> None:
        """Nothing is told yet."""
        self.args = args
        self.silent = output.wants_json(args)
        self.paint = Paint(on=output._paint(sys.stdout))  # noqa: SLF001  # one rule for colours
        self.steps: list[dict[str, Any]] = []
        self.say(self.paint("tt demo", "bold") + ": three agents on a scratch repository; nothing of yours is touched")

    def say(self, line: str) -> None:
        """One line for people."""
        if not self.silent:
            output.plain(line)

    def all(self, steps: list[tuple[str, Callable[[], Found] | None]]) -> None:
        """Every step in its order, up to the first that fails. A title without a step is a heading."""
        for title, step in steps:
            if step is None:
                self.say("\n" + self.paint(title, "bold"))
            elif not self.one(title, step):
                return

    def one(self, title: str, step: Callable[[], Found]) -> bool:
        """Make one check and tell of it; was it passed?"""
        try:
            found = step()
        except (Failed, KeyError, TypeError, OSError) as error:
            reason = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
            self.failed(title, reason)
            return False
        self.steps.append({"step": title, "ok": True, "ms": _rounded(found.ms), "detail": found.detail})
        self.say(
            f"  {self.paint('✓', 'green')} {title:{TITLE}} {self._time(found.ms)}{self.paint(found.detail, 'dim')}"
        )
        for line in found.more:
            self.say(f"      {line}")
        return True

    def _time(self, ms: float | None) -> str:
        """A wake's latency, which is what this is about."""
        return "" if ms is None else self.paint(f"{ms:4.0f} ms", "cyan") + "  "

    def failed(self, title: str, why: str) -> None:
        """A step that did not come out."""
        self.steps.append({"step": title, "ok": False, "ms": None, "detail": why})
        self.say(f"  {self.paint('✗', 'red')} {title}\n      {word(why)}")

    def end(self, ms: int) -> int:
        """The sum of it; the exit code."""
        good = sum(step["ok"] for step in self.steps)
        passed = good == len(self.steps)
        if self.silent:
            status = "ok" if passed else "failed"
            output.result(self.args, {"status": status, "elapsed_ms": ms, "steps": self.steps})
        elif passed:
            good_words = self.paint(f"All {good} steps were checked", "green")
            self.say(f"\n{good_words}, in {ms / 1000:.1f} s. Now yours: `tt join`, then `tt wait`.")
        else:
            bad_words = self.paint(f"Failed after {good} checked steps", "red")
            self.say(f"\n{bad_words}, in {ms / 1000:.1f} s. How things stand here: `tt health`.")
        return 0 if passed else 1


def _rounded(ms: float | None) -> float | None:
    """Tenths of a millisecond are noise already."""
    return None if ms is None else round(ms, 1)


def must(holds: object, why: str, seen: object = None) -> None:
    """Fail the step unless that holds."""
    if not holds:
        raise Failed(why if seen is None else f"{why}: {seen}")


class Story:
    """The steps, in order. Each checks what it says."""

    def __init__(self, world: World) -> None:
        """The people of the story are made by its first steps."""
        self.world = world
        self.rooms: dict[str, int] = {}
        self.waiting: Running
        self.ann: Agent
        self.bob: Agent
        self.cem: Agent

    def steps(self) -> list[tuple[str, Callable[[], Found] | None]]:
        """What happens, with its headings."""
        return [
            ("One repository, one bus", None),
            ("a git repository `kitchen`, a linked worktree", self.repository),
            ("ann and bob join in the main worktree", self.two_join),
            ("cem joins in the linked worktree `garden`", self.third_joins),
            ("One holds the stick, the other sleeps", None),
            ("ann runs `tt try`", self.take),
            ("bob runs `tt wait`, which blocks", self.block),
            ("ann → bob `tt msg send`", self.message),
            ("bob waits again, ann hands over `tt release`", self.hand_over),
            ("Between worktrees", None),
            ("bob → cem, who waits in `garden`", self.across),
            ("cem takes the turn in `garden` meanwhile", self.own_stick),
            ("bob → ann `tt msg send --interrupt`", self.interrupt),
            ("An agent dies", None),
            ("bob's client and guardian get `kill -9`", self.death),
            ("ann's blocked `tt wait` is given the turn", self.recovery),
            ("the store checks itself", self.check),
        ]

    def repository(self) -> Found:
        """One commit on main, and a second working tree."""
        place = os.path.join(self.world.top, "kitchen")
        os.mkdir(place)
        self.world.git(place, "init", "-q", "-b", "main")
        self.world.git(place, "commit", "-q", "--allow-empty", "-m", "first")
        self.world.git(place, "worktree", "add", "-q", "-b", "garden", os.path.join(self.world.top, "garden"))
        return Found("in a temporary folder")

    def two_join(self) -> Found:
        """Both are members of one room."""
        self.ann, self.bob = self.world.agent("ann", "kitchen"), self.world.agent("bob", "kitchen")
        first, second = self._join(self.ann), self._join(self.bob)
        must(first["room_id"] == second["room_id"], "they are in different rooms")
        must(len(second["members"]) == 2, "the second does not see the first", second["members"])
        return Found(f"{self.ann.id}, {self.bob.id}")

    def third_joins(self) -> Found:
        """The same bus, but another room."""
        self.cem = self.world.agent("cem", "garden")
        joined = self._join(self.cem)
        must(joined["room_id"] != self.rooms["bob"], "both worktrees share one room")
        self.world.bus_dir()  # there is just one, or it raises
        return Found(f"{self.cem.id}, same bus, own stick")

    def _join(self, agent: Agent) -> dict[str, Any]:
        """Join, and note who it is."""
        joined = agent.tt("join")
        agent.id = joined["agent_id"]
        self.rooms[agent.name] = joined["room_id"]
        return joined

    def take(self) -> Found:
        """The room is free: the turn is given at once."""
        given = self.ann.tt("try")
        must(given["status"] == "your_turn", "it was not given the turn", given)
        return Found(f"turn {given['turn_id']}, guarded by process {given['guardian_pid']}")

    def block(self) -> Found:
        """Nothing moves while nothing happens."""
        self.waiting = self._wait(self.bob)
        before = switches(self.waiting.pid)
        pause(WATCHED)
        must(not self.waiting.ready(), "it returned although nothing happened")
        if before is None:
            return Found("no news in a second; this system counts no switches")
        moved = (switches(self.waiting.pid) or 0) - before
        must(moved == 0, f"it woke {moved} times in a second with nothing to do")
        return Found("0 context switches in 1 s: nobody polls")

    def _wait(self, agent: Agent) -> Running:
        """Start a wait and see it come to rest."""
        waiting = agent.start("wait")
        waiting.settle()
        return waiting

    def message(self) -> Found:
        """The blocked wait returns it, word for word."""
        return self._deliver(self.ann, self.bob, "are you at the parser?")

    def _deliver(self, sender: Agent, receiver: Agent, text: str, *options: str) -> Found:
        """One message into the blocked wait; the time runs from before the sender was started."""
        sending = sender.start("msg", "send", *options, receiver.id, text)
        heard = self.waiting.heard()
        sent = sending.heard().value
        sending.end()
        self.waiting.end()
        events = heard.value["events"]
        must([event["text"] for event in events] == [text], "it was woken by something else", events)
        must(events[0]["from"] == sender.id, "the sender is wrong", events)
        must(bool(options) == bool(events[0].get("interrupt")), "the interrupt was lost", events)
        arrived = sent["delivery_status"] == "receiver" or sent.get("also_receiver")
        must(arrived, "the sender was not told that it arrived", sent)
        return Found(f"“{text}”", heard.at - sending.began)

    def hand_over(self) -> Found:
        """The handoff comes with the turn."""
        self.waiting = self._wait(self.bob)
        status, then = HANDOFF
        releasing = self.ann.start("release", "--status", status, "--next-action", then)
        heard = self.waiting.heard()
        releasing.heard()
        releasing.end()
        self.waiting.end()
        given = heard.value
        must(given["status"] == "your_turn", "bob was not given the turn", given)
        handoff = given["handoff"]
        must((handoff["status"], handoff["next_action"]) == HANDOFF, "the handoff is not the one given", handoff)
        must(given["from_agent_id"] == self.ann.id, "it names another author", given)
        more = (f"status: {status}", f"next: {then}")
        return Found(f"`your_turn`, turn {given['turn_id']}", heard.at - releasing.began, more)

    def across(self) -> Found:
        """A wait hears the whole bus."""
        self.waiting = self._wait(self.cem)
        return self._deliver(self.bob, self.cem, "I change the grammar")

    def own_stick(self) -> Found:
        """Two rooms are held at once, each by its own agent."""
        given = self.cem.tt("wait", "--claim")
        must(given["status"] == "your_turn", "it was not given the turn", given)
        rooms = self.cem.tt("list", self.world.top, "--all")["rooms"]
        owners = {room["room_id"]: room["owner"] for room in rooms}
        expected = {self.rooms["bob"]: self.bob.id, self.rooms["cem"]: self.cem.id}
        must(owners == expected, "the sticks are not where they belong", owners)
        return Found("each worktree has its own stick")

    def interrupt(self) -> Found:
        """It arrives marked as one."""
        self.waiting = self._wait(self.ann)
        return self._deliver(self.bob, self.ann, "stop: the build is red", "--interrupt")

    def death(self) -> Found:
        """The holder goes without a word, and so does who watches it."""
        self.waiting = self._wait(self.ann)
        held = self.bob.tt("try")
        must(held["status"] == "your_turn", "bob does not hold the turn", held)
        self.guardian = int(held["guardian_pid"])
        self.world.kill(self.guardian)
        self.bob.client.kill()
        self.died = clock.monotonic()
        return Found(f"processes {self.bob.client.pid} and {self.guardian}; ann waits, blocked")

    def recovery(self) -> Found:
        """Another guardian proved the death and handed the turn on."""
        heard = self.waiting.heard(GRACE + 2 * 10_000)
        self.waiting.end()
        given = heard.value
        must(given["status"] == "your_turn", "ann was not given the turn", given)
        must(given["handoff"], "it came without a recovery handoff", given)
        must(given["guardian_pid"] != self.guardian, "the dead guardian guards it")
        more = (
            f"{word(given['handoff'].get('status'))}",
            f"no human was asked; the grace is {GRACE / 1000:g} s here, 10 s in earnest",
        )
        return Found(f"turn {given['turn_id']}, with a recovery handoff", heard.at - self.died, more)

    def check(self) -> Found:
        """Every invariant, on the database as it is."""
        from bus.store import check, db

        with db.open_bus(self.world.bus_dir()) as bus:
            problems = check.check(bus.con)
        must(not problems, "an invariant is broken", problems)
        return Found(f"{len(check.INVARIANTS)} invariants hold")
