"""What must be shown, one test each: wakes, deaths, worktrees, first commands, handoffs that stay."""

from __future__ import annotations

import glob
import os
import signal
import sys
import threading
import time

import pytest

from tests.kit.procs import gone
from tests.kit.world import invariants, tt_command, wait_for
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
    listens,
    notified,
    owner,
    released,
    room,
    sends_many,
    sound,
    switches,
    texts,
    unread,
    waiting,
)

GRACE = 700  # ms

# `tt` with a stdout that takes nothing
_UNREADABLE = """
import os, sys
kind, argv = sys.argv[1], sys.argv[2:]
if kind == "broken":
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.close(reader), os.close(writer)
elif kind == "full":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
else:
    os.close(1)
os.execv(argv[0], argv)
"""
UNREADABLE = ("broken", "full", "closed")


def unreadable(agent, kind: str, *words: str):
    """The agent's `tt WORDS`, whose result nobody can read."""
    return agent.run([sys.executable, "-I", "-c", _UNREADABLE, kind, *tt_command(), *words])


@pytest.mark.timeout(120)
def test_blocked_waits_sleep_while_others_commit_and_only_the_addressee_wakes(world):
    names = [f"a{number}" for number in range(30)]
    ann, *others = joined(world, "ann", *names)
    for agent in others:
        agent.tt("inbox").ok()
    holder(ann)
    waits = [agent.start("wait") for agent in others[:-1]]
    for wait in waits:
        blocked(world, wait)
    before = [switches(wait.pid) for wait in waits]
    began = time.monotonic()
    while time.monotonic() - began < 3:  # a window to look through, not a synchronisation
        ann.tt("msg", "send", others[-1].id, "not for those who wait").ok()
        ann.tt("notes", "add", "neither is this").ok()
        others[-1].tt("inbox").ok()
    assert [switches(wait.pid) for wait in waits] == before
    ann.tt("msg", "send", others[7].id, "for you").ok()
    assert texts(waits[7].wait().ok().json) == ["for you"]
    rest = [number for number in range(len(waits)) if number != 7]
    assert [switches(waits[number].pid) for number in rest] == [before[number] for number in rest]


def test_worktrees_meet_on_one_bus_and_have_a_stick_each(world):
    repo = world.repo()
    places = [repo, world.worktree(repo, "beside"), world.worktree(repo, "inside", nested=True)]
    agents = [world.agent(name, place) for name, place in zip(("ann", "bob", "carl"), places, strict=True)]
    for agent in agents:
        agent.tt("join").ok()
    assert len(world.bus_dirs()) == 1
    for agent, place in zip(agents, places, strict=True):
        assert room(world, place)["path"] == place
        agent.tt("wait", "--claim").ok()
        assert room(world, place)["owner"] == agent.id
    for receiver in agents:
        wait = waiting(world, receiver)
        senders = [agent for agent in agents if agent is not receiver]
        senders[0].tt("msg", "send", receiver.id, "across").ok()
        assert texts(wait.wait().ok().json) == ["across"]
        senders[1].tt("msg", "send", receiver.id, "also across").ok()
        assert texts(receiver.tt("try").ok().json) == ["also across"]
    listed = agents[0].tt("list", "--json").ok().json
    assert all(place in str(listed) for place in places)


@pytest.mark.parametrize("left", ["alone", "among others"])
@pytest.mark.parametrize("guardian", ["lives", "killed too", "killed before"])
def test_a_blocked_peer_is_handed_the_turn_of_a_killed_holder(world, record_property, guardian, left):
    names = ("ann", "bob") if left == "alone" else ("ann", "bob", "carl", "dora")
    # others who are between two waits are left the fairness grace, which runs at the same time
    ann, bob, *rest = joined(world, *names, GONE_GRACE=GRACE, FAIRNESS_GRACE=GRACE)
    for agent in rest:
        agent.tt("inbox").ok()
    holder(bob)
    bob.tt("assign", ann.id, *HANDOFF, "--operator-requested").ok()
    turn = holder(ann)
    assert turn["handoff"]["next_action"] == "do the rest"
    wait = waiting(world, bob)
    if guardian == "killed before":
        os.kill(turn["guardian_pid"], signal.SIGKILL)
        wait_for(lambda: room(world)["guardian_pid"] != turn["guardian_pid"] and guarded(world))
    began = time.monotonic()
    ann.die()
    if guardian == "killed too":
        os.kill(turn["guardian_pid"], signal.SIGKILL)
    result = wait.line(30)
    took = time.monotonic() - began
    record_property("milliseconds", int(took * 1000))
    print(f"handed on after {took * 1000:.0f} ms with a grace of {GRACE} ms")
    assert result["status"] == "your_turn", result
    assert result["handoff"]["recovery"]["agent_id"] == ann.id
    assert result["handoff"]["recovery"]["last_handoff"]["next_action"] == "do the rest"
    assert took < 9, "something waited for a limit that was not shortened"
    assert guarded(world)
    wait_for(lambda: len(guardians(world)) == 1, what="the end of the old guardian")


def test_a_holder_killed_before_it_knew_hands_on_the_very_handoff(world):
    ann, bob = joined(world, "ann", "bob", GONE_GRACE=GRACE)
    holder(ann)
    released(ann)
    dead = bob.start("wait", env=die_at("before_print")).wait()
    assert dead.out == ""
    assert owner(world) == bob.id
    bob.die()
    result = ann.start("wait").wait(30).ok().json
    assert (result["status"], result["handoff"]["next_action"]) == ("your_turn", "do the rest")
    assert "recovery" not in result["handoff"]


@pytest.mark.parametrize("point", ["before_print", "after_flush"])
def test_a_message_that_a_killed_wait_did_not_mark_comes_again(world, point):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = blocked(world, bob.start("wait", env=die_at(point)))
    ann.tt("msg", "send", bob.id, "hello").ok()
    run = wait.wait()
    assert run.code == -signal.SIGKILL
    assert bool(run.out) == (point == "after_flush")
    assert texts(bob.tt("wait").ok().json) == ["hello"]


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_message_that_could_not_be_printed_comes_again(world, kind):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = blocked(world, unreadable(bob, kind, "wait"))
    ann.tt("msg", "send", bob.id, "hello").ok()
    wait.wait()
    assert [line.split("\t")[1] for line in notified(world, bob)] == ["hello"]
    assert texts(bob.tt("wait").ok().json) == ["hello"]


@pytest.mark.parametrize("verb", ["wait", "try"])
@pytest.mark.parametrize("point", ["after_grant_commit", "before_print"])
def test_a_grant_whose_wait_was_killed_is_told_again(world, verb, point):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    released(ann)
    run = bob.start(verb, env=die_at(point)).wait()
    assert (run.code, run.out) == (-signal.SIGKILL, "")
    assert owner(world) == bob.id
    assert guarded(world)
    wait_for(lambda: notified(world, bob), what="the wake of an owner that knows nothing")
    bob.tt("release", *HANDOFF).failed("turn_mismatch", 1)
    result = bob.tt("wait").ok().json
    assert (result["status"], result["reason"], result["repeated"]) == ("your_turn", "sequence", True)
    assert result["handoff"]["next_action"] == "do the rest"
    assert released(bob)["status"] == "released"


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_grant_that_could_not_be_printed_is_given_back(world, kind):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = blocked(world, unreadable(bob, kind, "wait"))
    assert released(ann)["reserved_for"] == bob.id
    wait.wait()
    row = room(world)
    assert (row["owner"], row["reserved_for"]) == (None, bob.id)
    wait_for(lambda: not guardians(world), what="the end of a guardian whose lease was given back")
    result = bob.tt("wait").ok().json
    assert (result["status"], result["handoff"]["next_action"]) == ("your_turn", "do the rest")
    assert "repeated" not in result


@pytest.mark.parametrize("point", ["after_commit", "before_bell"])
def test_a_sender_killed_before_its_bell_wakes_by_the_next_writing_command(world, point):
    ann, bob, carl = joined(world, "ann", "bob", "carl")
    holder(ann)
    wait = waiting(world, bob)
    before = switches(wait.pid)
    dead = ann.start("msg", "send", bob.id, "orphaned", env=die_at(point)).wait()
    assert dead.code == -signal.SIGKILL
    assert len(unread(world, bob)) == 1
    assert switches(wait.pid) == before
    carl.tt("notes", "add", "something else").ok()
    assert texts(wait.wait().ok().json) == ["orphaned"]


def test_a_background_wait_of_a_killed_client_marks_nothing(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    wait.stop()
    ann.tt("msg", "send", bob.id, "too late").ok()
    bob.die()
    wait.cont()
    wait_for(lambda: gone(wait.pid), what="the end of the orphaned wait")
    assert wait.wait().out == ""
    assert len(unread(world, bob)) == 1
    assert not listens(world, bob)


def test_a_background_wait_of_a_killed_client_is_never_given_a_turn(world):
    ann, bob, carl = joined(world, "ann", "bob", "carl", GONE_GRACE=GRACE)
    holder(ann)
    wait = waiting(world, bob)
    other = waiting(world, carl)
    wait.stop()
    assert released(ann)["reserved_for"] == bob.id
    bob.die()
    wait.cont()
    assert wait.wait().out == ""
    assert other.wait(30).ok().json["handoff"]["next_action"] == "do the rest"
    assert [event["sender"] for event in events(world, "claim")] == [ann.id, carl.id]


def test_an_orphaned_wait_ends_by_itself(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    bob.die()
    assert wait.wait(10).out == ""
    assert ann.tt("assign", bob.id, *HANDOFF).failed("recipient_unreachable", 1)


@pytest.mark.timeout(300)
def test_no_message_is_left_without_a_wake_while_waits_come_and_go(world):
    count = 2500 if SLOW else 250
    ann, bob, *senders = joined(world, "ann", "bob", "s1", "s2", "s3", "s4")
    for agent in senders:
        agent.tt("inbox").ok()
    bob.tt("inbox").ok()
    holder(ann)
    running = [sends_many(agent, bob.id, agent.name, count) for agent in senders]
    got: list[str] = []
    waits = 0
    while any(process.running for process in running):
        wait = bob.start("wait", "--timeout", "1s", env=die_at("after_flush") if waits % 5 == 4 else {})
        if waits % 3 == 2:
            wait.signal(signal.SIGTERM)
        run = wait.wait()
        got += texts(run.json) if run.out else []
        waits += 1
    for process in running:
        process.wait().ok()
    left = world.rows("SELECT seq FROM mail WHERE box = ? AND received_at IS NULL", bob.id)
    if left:
        assert notified(world, bob), "unread, nobody waits, and nothing was woken"
        sound(world)
    while unread(world, bob):
        got += texts(bob.tt("wait", "--timeout", "5s").ok().json)
    assert waits > 3
    assert set(got) == {f"{agent.name} {number}" for agent in senders for number in range(count)}
    assert len(events(world, "message")) == 4 * count
    sound(world)


def test_a_room_without_members_keeps_its_handoff_for_who_joins(world):
    (ann,) = joined(world, "ann")
    ann.tt("wait", "--claim").ok()
    released(ann)
    assert ann.tt("leave").ok().json["kept_for"] == ["pending_handoff"]
    bob = world.agent("bob", ann.cwd)
    bob.tt("join").ok()
    result = bob.tt("wait").ok().json
    assert (result["status"], result["handoff"]["next_action"]) == ("your_turn", "do the rest")


def test_an_archived_room_gives_its_handoff_back_to_who_joins(world):
    (ann,) = joined(world, "ann", IDLE_ROOM=1, SWEEP=1)
    other = world.worktree(ann.cwd, "side")
    ann.tt("wait", "--claim").ok()
    released(ann)
    ann.tt("leave").ok()
    carl = world.agent("carl", other)
    carl.tt("join").ok()
    carl.tt("notes", "add", "sweep").ok()
    wait_for(lambda: not world.rows("SELECT 1 FROM rooms WHERE path = ?", ann.cwd), what="the room's end")
    bob = world.agent("bob", ann.cwd)
    bob.tt("join").ok()
    assert bob.tt("wait").ok().json["handoff"]["next_action"] == "do the rest"


@pytest.mark.timeout(600)
def test_sixteen_first_commands_at_once_make_one_sound_bus(world):
    repo = world.repo()
    agents = [(world.person if number % 4 == 3 else world.agent)(f"a{number}", repo) for number in range(16)]
    verbs = (("join",), ("msg", "send", "bus", "hello"), ("join",), ("config", "set", "retention", "24"))
    for number in range(100 if SLOW else 10):
        data = os.path.join(world.data, f"round-{number}")
        gate = threading.Barrier(len(agents))

        def first(agent, words, data=data, gate=gate):
            gate.wait(20)
            agent.result = agent.start(*words, env={"TALKING_STICK_DATA_DIR": data})

        threads = [threading.Thread(target=first, args=(agent, verbs[place % 4])) for place, agent in enumerate(agents)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        for agent in agents:
            agent.result.wait(30).ok()
        (made,) = glob.glob(os.path.join(glob.escape(data), "buses", "*", "bus.db"))
        invariants(os.path.dirname(made))
