"""Everything at once: members, deaths, listeners, a clock and all verbs, in any order.

After every step the store is sound, no handoff is lost and a refusal has written nothing; at the
end everybody has received every message once, and the room can still be taken. For more than the
fast suite does: `TESTS_MACHINE_EXAMPLES=500 pytest tests/operations/test_machine.py`.
"""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bus import limits, locks
from bus.errors import BusError
from bus.operations import join, messages, notes, receive, standby, sweep, turns
from monitor import granting
from tests.kit.desk import ANN, HANDOFF, A, B, C, D, Desk

AGENTS = (A, B, C, D)
EXAMPLES = int(os.environ.get("TESTS_MACHINE_EXAMPLES", "20"))
STEPS = int(os.environ.get("TESTS_MACHINE_STEPS", "30"))

agents = st.sampled_from(AGENTS)
anybody = st.sampled_from((*AGENTS, ANN))
often = st.sampled_from((True, True, True, False))
seconds = st.sampled_from((1, 5, 11, 61, 121, 601, 1201, 2701, 7200))


class Room(RuleBasedStateMachine):
    """One room; facts that only the test knows are kept beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.top = tempfile.mkdtemp(prefix="tt-machine-")
        self.desk = Desk(self.top, self.patch)
        self.desk.stations.update({A: "line-1", B: "line-1"})
        self.handoffs: set[int] = set()  # given, not yet printed and marked
        self.sent: dict[int, str] = {}  # directed messages, to whom
        self.got: dict[str, list[int]] = {name: [] for name in (*AGENTS, ANN, "claude:late")}
        self.dead: set[str] = set()

    def teardown(self) -> None:
        try:
            self.finish()
        finally:
            self.desk.close()
            self.patch.undo()
            shutil.rmtree(self.top, ignore_errors=True)

    # --- doing ---------------------------------------------------------------------------

    def do(self, agent, operation, *args, settled=True, **named):
        """The command, if its agent lives. A refusal must have written nothing."""
        if agent in self.dead:
            return None
        before = self.desk.dump()
        try:
            result = self.desk.do(agent, operation, *args, settled=settled, **named)
        except BusError:
            assert self.desk.dump() == before, "a refusal wrote something"
            return None
        if settled:
            self.printed(agent, result)
            self.guarded()
        return result

    def printed(self, agent, result) -> None:
        """What an agent was shown, and what was marked."""
        self.got[agent] += [event["event_seq"] for event in result.get("events", ()) if event["type"] == "message"]
        if result["status"] == "your_turn":
            shown = [result["handoff"], *result.get("earlier_handoffs", ()), *result.get("handoffs", ())]
            self.handoffs -= {handoff["event_seq"] for handoff in shown if handoff}

    def guarded(self) -> None:
        """After each writing command a lease that runs has its guardian."""
        with self.desk.bus() as bus:
            for row in self.desk.rows("SELECT * FROM rooms WHERE lease_id IS NOT NULL"):
                if row["lease_until"] > self.desk.now:
                    assert locks.held(bus.lease_lock(row["lease_id"])), "an unguarded lease"

    # --- members -------------------------------------------------------------------------

    @initialize(first=st.sets(agents, min_size=1))
    def begin(self, first):
        self.desk.join(*sorted(first))

    @rule(agent=agents)
    def join(self, agent):
        self.do(agent, join.join)

    @rule(agent=agents)
    def leave(self, agent):
        self.do(agent, join.leave)

    @rule(agent=anybody, whom=agents, force=often)
    def kick(self, agent, whom, force):
        self.do(agent, join.kick, whom, force=force)

    @rule(agent=agents)
    def die(self, agent):
        self.desk.dies(agent)
        self.dead.add(agent)

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def resume(self, data):
        agent = data.draw(st.sampled_from(sorted(self.dead)))
        self.dead.discard(agent)
        self.desk.alive(agent)

    @rule(
        agent=agents, kind=st.sampled_from(("wait", "rewake", "monitor")), intent=st.sampled_from(("active", "parked"))
    )
    def listen(self, agent, kind, intent):
        there = self.desk.rows("SELECT id FROM rooms WHERE path = ?", self.desk.path)
        if there and agent not in self.dead and (agent, kind) not in self.desk.listening:
            self.desk.listen(agent, kind, intent)

    @rule(agent=agents, kind=st.sampled_from(("wait", "rewake", "monitor")))
    def deafen(self, agent, kind):
        self.desk.deafen(agent, kind)

    # --- time ----------------------------------------------------------------------------

    @rule(seconds=seconds)
    def later(self, seconds):
        self.desk.tick(seconds)
        self.desk.guard()

    @rule()
    def guardians_die(self):
        self.desk.kill_guardian()

    @rule()
    def sweep(self):
        with self.desk.bus() as bus:
            sweep.sweep(bus, data=self.desk.data)

    # --- the turn --------------------------------------------------------------------------

    @rule(agent=agents, park=st.booleans(), settled=often)
    def try_once(self, agent, park, settled):
        self.do(agent, granting.try_once, park=park, settled=settled)

    @rule(agent=agents, park=st.booleans(), claim=st.booleans(), printed=often)
    def wait(self, agent, park, claim, printed):
        if agent in self.dead:
            return
        try:
            result = self.desk.wait(agent, park=park, claim=claim, printed=printed)
        except BusError:
            return
        if result is not None:
            self.printed(agent, result)

    @rule(agent=agents)
    def release(self, agent):
        result = self.do(agent, turns.release, HANDOFF)
        if result is not None:
            self.handoffs.add(result["event_seq"])

    @rule(agent=agents, whom=agents, asked=st.booleans())
    def assign(self, agent, whom, asked):
        result = self.do(agent, turns.assign, whom, HANDOFF, operator_requested=asked)
        if result is not None:
            self.handoffs.add(result["event_seq"])

    @rule(agent=agents, asked=st.booleans(), force=st.booleans(), settled=often)
    def take(self, agent, asked, force, settled):
        self.do(agent, granting.take, reason="test", operator_requested=asked, force=force, settled=settled)

    # --- mail ------------------------------------------------------------------------------

    @rule(sender=anybody, to=st.sampled_from((*AGENTS, "line-1", "room", "bus")), wake=often, loud=st.booleans())
    def send(self, sender, to, wake, loud):
        result = self.do(sender, messages.send, to, "hello", wake=wake, interrupt=loud)
        if result is not None and to in AGENTS:
            self.sent[result["event_seq"]] = to

    @rule(agent=anybody, settled=often)
    def inbox(self, agent, settled):
        if self.do(agent, receive.inbox, settled=settled) is not None and settled:
            assert self.do(agent, receive.inbox)["events"] == [], "a drained inbox stays empty"

    @rule(agent=agents)
    def standby(self, agent):
        self.do(agent, standby.standby)

    @rule(agent=agents)
    def note(self, agent):
        self.do(agent, notes.add, "remember")

    @rule(agent=agents, number=st.integers(1, 4))
    def resolve(self, agent, number):
        self.do(agent, notes.resolve, number)

    # --- what must be true -------------------------------------------------------------------

    @invariant()
    def sound(self):
        self.desk.check()

    @invariant()
    def no_handoff_is_lost(self):
        if os.path.isdir(os.path.join(self.desk.data, "buses")):
            assert self.handoffs <= set(self.desk.pending()), "a handoff that nobody was shown is gone"

    @invariant()
    def nobody_gets_anything_twice(self):
        for agent, seqs in self.got.items():
            assert len(seqs) == len(set(seqs)), f"{agent} was shown a message twice"

    def finish(self) -> None:
        """In the end: all mail arrives, and a turn that lies there can be taken."""
        if not os.path.isdir(os.path.join(self.desk.data, "buses")):
            return
        for agent in sorted(self.dead):
            self.desk.alive(agent)
        self.dead.clear()
        for agent, kind in list(self.desk.listening):
            self.desk.deafen(agent, kind)
        for agent in AGENTS:
            self.do(agent, receive.inbox)
        for seq, agent in self.sent.items():
            assert self.got[agent].count(seq) == 1, f"{agent} never got {seq}"
            assert not [other for other in self.got if other != agent and seq in self.got[other]]
        self.nobody_strands_it()
        self.sound()

    def nobody_strands_it(self) -> None:
        late = "claude:late"
        self.desk.join(late)
        self.desk.own(late) if self.can_be_taken(late) else None
        assert not self.handoffs or self.desk.state()["owner"] not in (None, late)

    def can_be_taken(self, late) -> bool:
        """Wait out reservation, grace and cooldown; then it is ours, unless somebody holds it."""
        for _ in range(8):
            if self.desk.state()["owner"] is not None:
                return False
            result = self.do(late, granting.try_once)
            if result["status"] == "your_turn":
                return False
            if result.get("reason") == "solo_room":
                assert not self.handoffs
                return False
            self.desk.tick(limits.RESERVATION / 1000 + 1)
        raise AssertionError("a stranded turn")


def test_any_order_of_anything():
    run_state_machine_as_test(
        Room,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
