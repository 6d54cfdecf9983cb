"""A campaign: every verb is killed wherever it passes a named point, and nothing is lost, stuck or broken."""

from __future__ import annotations

import collections
import os
import signal
from typing import Any

import pytest

from bus.crash import POINTS
from tests.kit.world import store, wait_for
from tests.processes.stories import (
    HANDOFF,
    SLOW,
    blocked,
    die_at,
    events,
    guarded,
    guardians,
    holder,
    joined,
    released,
    room,
    sound,
    texts,
)

REASON = ("--force", "--operator-requested", "--reason", "asked")
PATIENT = ("wait", "--timeout", "9s")
PENDING = "SELECT seq FROM mail WHERE box GLOB 'turn:*' AND received_at IS NULL"
# What waits behind an open wake is served when that one is read.
DUE = """SELECT box, seq FROM mail WHERE received_at IS NULL AND wake_id IS NULL AND wake > 0
          AND NOT EXISTS (SELECT 1 FROM wakes w JOIN mail x ON x.wake_id = w.id WHERE w.agent = mail.box
                           AND w.seen_at IS NULL AND w.closed_at IS NULL AND x.received_at IS NULL)"""
UNREAD = """SELECT 1 FROM mail WHERE box = :me AND received_at IS NULL UNION ALL
             SELECT 1 FROM members m JOIN events e ON e.room = m.room AND e.seq > m.cursor AND e.public
              WHERE m.agent = :me AND m.left_at IS NULL AND e.sender <> :me"""
UNHANDED = """SELECT seq FROM events e WHERE type IN ('release', 'pass', 'assign', 'handoff')
               AND NOT EXISTS (SELECT 1 FROM mail m WHERE m.seq = e.seq AND m.box GLOB 'turn:*')"""

# verb → who holds the turn before it, and the words
VERBS = {
    "msg send": ("carl", ("msg", "send", "BOB", "TEXT")),
    "msg to a sleeper": ("bob", ("msg", "send", "BOB", "TEXT")),
    "try": (None, ("try",)),
    "wait": (None, ("wait",)),
    "wait in vain": ("carl", ("wait", "--timeout", "250ms")),
    "release": ("ann", ("release", *HANDOFF)),
    "take": ("bob", ("take", *REASON)),
    "leave": ("ann", ("leave",)),
}
MORE = {
    "join": ("bob", ("join",)),
    "msg send room": ("carl", ("msg", "send", "room", "TEXT")),
    "wait for mail": ("carl", ("wait",)),
    "pass": ("ann", ("pass", "--to", "BOB", *HANDOFF)),
    "assign": ("ann", ("assign", "BOB", *HANDOFF)),
    "kick": ("bob", ("kick", "BOB", "--force")),
    "inbox": ("carl", ("inbox",)),
    "standby": ("carl", ("standby",)),
    "notes add": ("carl", ("notes", "add", "TEXT")),
}
if SLOW:
    VERBS |= MORE
SEEN: set[str] = set()  # the points at which this campaign killed


class Scene:
    """Three members: ann does the deed, bob listens, carl goes on afterwards."""

    def __init__(self, world, verb: str) -> None:
        self.world, self.verb = world, verb
        soon: dict[str, Any] = {
            "GONE_GRACE": 300,
            "FAIRNESS_GRACE": 1,
            "TAKE_BACK_COOLDOWN": 1,
            "GUARDIAN_ADOPT": 200,
            "SWEEP": 1,
        }
        self.ann, self.bob, self.carl = joined(world, "ann", "bob", "carl", **soon)
        self.agents = {agent.name: agent for agent in (self.ann, self.bob, self.carl)}
        self.got: dict[str, list[str]] = collections.defaultdict(list)
        self.ear: Any = None
        self.count = 0

    def read(self, agent, run) -> dict:
        """Note what a finished command told this agent; its result."""
        result = run.json if run.out else {}
        self.got[agent.id] += texts(result) if "events" in result else []
        return result

    def set_up(self) -> None:
        """All are members, the turn is where the verb wants it, bob listens."""
        for agent in self.agents.values():
            if not self.is_member(agent):
                agent.tt("join").ok()
        wanted, _ = VERBS[self.verb]
        self.give_turn(self.agents[wanted or "bob"])
        if wanted is None:
            self.bob.tt("release", *HANDOFF).ok()
        if self.verb == "join":
            self.ann.tt("leave").ok()
        for agent in self.agents.values():
            if self.unread(agent):
                self.read(agent, agent.tt("inbox").ok())
        if self.verb in ("wait for mail", "inbox", "standby", "try"):
            self.carl.tt("msg", "send", self.ann.id, f"for ann {self.count}").ok()
        if wanted not in (None, "bob"):
            self.ear = blocked(self.world, self.bob.start("wait"))

    def is_member(self, agent) -> bool:
        query = "SELECT 1 FROM members WHERE agent = ? AND room > 0 AND left_at IS NULL"
        return bool(self.world.rows(query, agent.id))

    def unread(self, agent) -> bool:
        with store(self.world.bus()) as con:
            return con.execute(UNREAD, {"me": agent.id}).fetchone() is not None

    def give_turn(self, agent) -> None:
        row = room(self.world)
        others = row["owner"] not in (None, agent.id) or row["reserved_for"] not in (None, agent.id)
        result = self.read(agent, agent.tt("take", *REASON).ok() if others else agent.tt("try").ok())
        assert result["status"] == "your_turn", result

    def killed_at(self, point: str):
        """The verb, killed there. A guardian's beat may serve the mail first, and then a point is not passed."""
        for tried in range(3):
            self.set_up()
            _, run = self.deed(die_at(point))
            if run.code == -signal.SIGKILL or tried == 2:
                return run
        raise AssertionError(point)

    def deed(self, env: dict[str, str]):
        """Ann's verb, to its end or its death."""
        self.count += 1
        names = {"BOB": self.bob.id, "TEXT": f"text {self.count}"}
        words = [names.get(word, word) for word in VERBS[self.verb][1]]
        run = self.ann.start(*words, env=env)
        done = run.wait()
        self.read(self.ann, done)
        return run.pid, done

    def points(self) -> list[str]:
        """Where the verb passes, in order; `name#2` is the second time."""
        trace = os.path.join(self.world.top, "trace")
        self.set_up()
        pid, run = self.deed({"TT_TEST_CRASH": f"?{trace}"})
        run.ok()
        self.aftermath(known=False)
        passed: list[str] = []
        with open(trace, encoding="ascii") as file:
            for line in file:
                who, name = line.split()
                if int(who) == pid:
                    passed.append(name)
        return [f"{name}#{passed[: place + 1].count(name)}" for place, name in enumerate(passed)]

    def aftermath(self, *, known: bool) -> None:
        """What must hold after a death, whatever was being done. `known`: did ann read of its turn?"""
        self.carl.tt("notes", "add", f"the next command {self.count}").ok()
        sound(self.world)
        assert not self.world.rows(UNHANDED), "a handoff is nobody's mail"
        self.turn_moves(known=known)
        self.nothing_due()
        sound(self.world)

    def turn_moves(self, *, known: bool) -> None:
        """Whoever has the turn is told of it, and it comes round to carl with its handoff."""
        if self.ear is not None:
            self.ear_ends()
        row = room(self.world)
        keeper = next((a for a in self.agents.values() if a.id in (row["owner"], row["reserved_for"])), None)
        handed = self.world.rows(PENDING)
        if keeper is None:
            result = self.read(self.carl, self.carl.tt(*PATIENT).ok())
            assert result["status"] == "your_turn", result
            assert not handed or result["handoff"]["event_seq"] == handed[-1]["seq"]
            return
        if row["owner"] and not guarded(self.world):
            # the guardian has the environment of its granter and dies at the same point, maybe only now
            self.carl.tt("notes", "add", f"one more command {self.count}").ok()
            wait_for(lambda: guarded(self.world), what="a guardian for a turn that nobody guards")
        claim = "SELECT 1 FROM mail WHERE box = ? AND seq = ? AND received_at IS NULL"
        untold = bool(self.world.rows(claim, row["owner"], row["claim_seq"]))
        result = self.read(keeper, keeper.tt("try").ok())
        assert result["status"] == "your_turn", result
        assert result.get("repeated", False) == untold
        released(keeper)
        if keeper is not self.carl:
            row = room(self.world)
            taker = next((a for a in self.agents.values() if a.id == row["reserved_for"]), self.carl)
            result = self.read(taker, taker.tt(*PATIENT).ok())
            assert result["status"] == "your_turn", result
            assert result["handoff"]["next_action"] == "do the rest"

    def ear_ends(self) -> None:
        """Bob's wait returned with what was for it; else it still listens, and is told to end by a message."""
        ear, self.ear = self.ear, None
        wait_for(lambda: not ear.running or not self.world.rows(DUE + " AND box = ?", self.bob.id), what="the ear")
        if ear.running:
            self.carl.tt("msg", "send", self.bob.id, f"that is all {self.count}").ok()
        run = ear.wait()
        assert run.code == 0 or run.error["error"] == "unknown_member", run
        self.read(self.bob, run)

    def nothing_due(self) -> None:
        """After a writing command everything that wakes was offered to its addressee."""
        left = [tuple(row) for row in self.world.rows(DUE)]
        assert not left, f"a wake is missing: {left}"

    def all_arrived(self) -> None:
        """Every message that was committed to an agent was printed for it."""
        for agent in self.agents.values():
            if not self.is_member(agent):
                agent.tt("join").ok()
            self.read(agent, agent.tt("inbox").ok())
        for row in self.world.rows("SELECT box, body FROM mail JOIN events USING (seq) WHERE type = 'message'"):
            assert any(repr(text)[1:-1] in row["body"] for text in self.got[row["box"]]), tuple(row)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_killed_anywhere_loses_nothing(world, verb):
    scene = Scene(world, verb)
    points = scene.points()
    assert points
    for point in points:
        run = scene.killed_at(point)
        assert run.code == -signal.SIGKILL, (point, run)
        SEEN.add(point.partition("#")[0])
        try:
            scene.aftermath(known=bool(run.out))
        except AssertionError as problem:
            problem.add_note(f"after a death at {point}: {run!r}")
            raise
    scene.all_arrived()
    wait_for(lambda: len(guardians(world)) <= 1, what="the end of guardians without a lease")


def test_a_first_command_that_is_killed_while_it_makes_the_bus_is_made_good_by_the_next(world):
    repo = world.repo()
    ann, bob = world.agent("ann", repo), world.agent("bob", repo)
    trace = os.path.join(world.top, "trace")
    other = {"TALKING_STICK_DATA_DIR": os.path.join(world.top, "elsewhere")}
    ann.tt("join", env={"TT_TEST_CRASH": f"?{trace}", **other}).ok()
    with open(trace, encoding="ascii") as file:
        passed = [line.split()[1] for line in file]
    assert {"before_migrate", "after_migrate"} <= set(passed)
    for place, name in enumerate(passed):
        data = {"TALKING_STICK_DATA_DIR": os.path.join(world.data, f"round-{place}")}
        point = f"{name}#{passed[: place + 1].count(name)}"
        SEEN.add(name)
        assert ann.start("join", env=die_at(point) | data).wait().code == -signal.SIGKILL
        bob.tt("join", env=data).ok()
        assert bob.tt("wait", "--claim", env=data).ok().json["status"] == "your_turn"
        members = {member["agent_id"] for member in ann.tt("join", env=data).ok().json["members"]}
        assert members == {ann.id, bob.id}


def test_a_last_leave_that_is_killed_can_be_done_again(world):
    (ann,) = joined(world, "ann")
    for name in ("before_replace", "before_commit#2", "after_commit#2"):
        SEEN.add(name.partition("#")[0])
        ann.start("leave", env=die_at(name)).wait()
        ann.tt("join").ok()
        sound_enough(world)
        assert ann.tt("wait", "--claim").ok().json["status"] == "your_turn"
        ann.tt("leave").ok()
        ann.tt("join").ok()
        assert "recovery" in str(ann.tt("wait").ok().json["handoff"])


def sound_enough(world) -> None:
    """Archived events leave gaps in the log; the rest holds."""
    from tests.kit.world import invariants

    invariants(world.bus())


def test_the_campaign_killed_at_every_point_there_is(request):
    """Fails when a point is added that no verb of the campaign passes."""
    campaign = [item for item in request.session.items if "test_crash_points" in item.nodeid]
    if len(campaign) < len(VERBS) + 3:
        pytest.skip("only a part of the campaign ran")
    assert set(POINTS) <= SEEN


def test_a_killed_guardian_starter_leaves_no_turn_behind(world):
    ann, bob = joined(world, "ann", "bob")
    for name in ("before_guardian_start", "after_guardian_ready", "before_grant_commit"):
        assert ann.start("try", env=die_at(name)).wait().code == -signal.SIGKILL
        wait_for(lambda: not guardians(world), what="the end of a guardian without a lease")
        assert room(world)["owner"] is None
    assert not events(world, "claim")
    holder(bob)
