"""One forced interleaving per known race: a process stops between two steps while others act."""

from __future__ import annotations

import os
import signal

import pytest

from tests.kit.procs import gone, send
from tests.kit.world import wait_for
from tests.processes.stories import (
    HANDOFF,
    events,
    guarded,
    guardians,
    holder,
    joined,
    notified,
    owner,
    queued,
    released,
    room,
    sound,
    stop_at,
    stopped,
    texts,
    unread,
    waiting,
)


@pytest.mark.parametrize("point", ["before_print", "after_flush", "after_mark", "before_unlock"])
def test_a_message_between_a_waits_read_and_its_end_is_woken_anew(world, point):
    """It rings a wait that has looked already; that wait looks once more after it gave up its lock."""
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = bob.start("wait", env=stop_at(point))
    ann.tt("msg", "send", bob.id, "one").ok()
    stopped(wait)
    sent = ann.tt("msg", "send", bob.id, "two").ok().json
    assert sent["delivery_status"] == "receiver"
    wait.cont()
    assert texts(wait.wait().ok().json) == ["one"]
    assert unread(world, bob) == [sent["event_seq"]]
    assert [line.split("\t")[1] for line in notified(world, bob)] == ["two"]
    assert texts(bob.tt("wait").ok().json) == ["two"]


def test_a_sender_that_probes_after_the_end_of_a_wait_wakes_by_itself(world):
    """The other order: the sender commits, the wait gives up its lock and looks, the sender probes."""
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    sender = stopped(ann.start("msg", "send", bob.id, "late", env=stop_at("before_bell")))
    wait.signal(signal.SIGTERM)
    assert wait.wait().out == ""
    assert len(notified(world, bob)) == 1
    sender.cont()
    assert sender.wait().ok().json["delivery_status"] == "pending"
    assert len(notified(world, bob)) == 1


@pytest.mark.parametrize("point", ["before_grant_commit", "after_guardian_ready", "before_guardian_start"])
def test_of_two_granters_one_wins_and_the_losers_guardian_ends(world, point):
    ann, bob = joined(world, "ann", "bob")
    slow = stopped(ann.start("try", env=stop_at(point)))
    won = holder(bob)
    slow.cont()
    assert slow.wait().ok().json["current_owner"] == bob.id
    wait_for(lambda: guardians(world) == [won["guardian_pid"]], what="the end of the loser's guardian")
    assert [event["sender"] for event in events(world, "claim")] == [bob.id]


def test_a_granter_that_dies_before_its_commit_leaves_neither_turn_nor_guardian(world):
    ann, bob = joined(world, "ann", "bob")
    slow = stopped(ann.start("try", env=stop_at("before_grant_commit")))
    assert len(guardians(world)) == 1
    slow.kill()
    wait_for(lambda: not guardians(world), what="the end of a guardian without a lease")
    assert owner(world) is None
    holder(bob)


def test_a_take_that_a_release_overtakes_changes_nothing(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    take = bob.start("take", "--force", "--operator-requested", "--reason", "x", env=stop_at("before_grant_commit"))
    stopped(take)
    released(ann)
    take.cont()
    take.wait().failed("takeover_not_available", 1)
    assert not events(world, "takeover", "turn_lost")
    wait_for(lambda: not guardians(world), what="the end of the take's guardian")
    assert bob.tt("try").ok().json["handoff"]["status"] == "half done"


def test_a_take_in_the_queue_behind_a_release_changes_nothing(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    release = stopped(ann.start("release", *HANDOFF, env=stop_at("before_commit")))
    take = queued(bob.start("take", "--force", "--operator-requested", "--reason", "x"))
    release.cont()
    release.wait().ok()
    take.wait().failed("takeover_not_available", 1)
    assert owner(world) is None
    sound(world)


def test_a_release_in_the_queue_behind_a_take_is_stale_and_writes_nothing(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    # the first commit says that it is there, the second one takes the turn
    words = ("--force", "--operator-requested", "--reason", "x")
    take = stopped(bob.start("take", *words, env=stop_at("before_commit#2")))
    release = queued(ann.start("release", *HANDOFF))
    take.cont()
    assert take.wait().ok().json["revoked_agent_id"] == ann.id
    release.wait().failed("stale_lease", 1)
    assert owner(world) == bob.id
    assert not events(world, "release")


def test_a_holder_that_slept_through_a_takeover_can_record_nothing(world):
    ann, bob = joined(world, "ann", "bob")
    turn = holder(ann)["turn_id"]
    send(ann.client.pid, signal.SIGSTOP)
    bob.tt("take", "--force", "--operator-requested", "--reason", "asleep").ok()
    send(ann.client.pid, signal.SIGCONT)
    before = len(events(world))
    for words in (HANDOFF, (*HANDOFF, "--turn", str(turn)), (*HANDOFF, "--turn", str(turn + 1))):
        ann.tt("release", *words).failed("stale_lease", 1)
    ann.tt("pass", *HANDOFF).failed("stale_lease", 1)
    assert len(events(world)) == before
    assert owner(world) == bob.id
    assert ann.tt("wait").ok().json["reason"] == "lost_turn"


def test_a_release_in_the_queue_behind_its_owners_kick_is_stale(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    kick = stopped(bob.start("kick", ann.id, "--force", env=stop_at("before_commit")))
    release = queued(ann.start("release", *HANDOFF))
    kick.cont()
    kick.wait().ok()
    release.wait().failed("stale_lease", 1)
    result = holder(bob)
    assert result["handoff"]["recovery"]["agent_id"] == ann.id


def test_a_kick_in_the_queue_behind_a_release_removes_the_releaser(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    release = stopped(ann.start("release", *HANDOFF, env=stop_at("before_commit")))
    kick = queued(bob.start("kick", ann.id, "--force"))
    release.cont()
    release.wait().ok()
    kick.wait().ok()
    assert holder(bob)["handoff"]["status"] == "half done"
    assert len(events(world, "handoff")) == 0


@pytest.mark.parametrize("verb", ["release", "assign", "pass"])
def test_nobody_is_given_a_turn_while_it_is_being_kicked(world, verb):
    """Who is next was probed before the transaction; the kick committed in between."""
    ann, bob, carl = joined(world, "ann", "bob", "carl")
    holder(ann)
    wait = waiting(world, bob)
    kick = stopped(carl.start("kick", bob.id, "--force", env=stop_at("before_commit")))
    named = {"release": ["release"], "assign": ["assign", bob.id], "pass": ["pass", "--to", bob.id]}[verb]
    giving = queued(ann.start(*named, *HANDOFF))
    kick.cont()
    kick.wait().ok()
    wait.wait().failed("unknown_member", 1)
    run = giving.wait()
    sound(world)
    assert room(world)["reserved_for"] != bob.id
    if verb == "release":
        run.ok()
        assert carl.tt("try").ok().json["status"] == "your_turn"
    else:
        run.failed("unknown_member", 1)
        assert owner(world) == ann.id


def test_a_departing_owners_turn_goes_to_nobody_who_is_being_kicked(world):
    ann, bob, carl = joined(world, "ann", "bob", "carl")
    holder(ann)
    waiting(world, bob)
    kick = stopped(carl.start("kick", bob.id, "--force", env=stop_at("before_commit")))
    leave = queued(ann.start("leave"))
    kick.cont()
    kick.wait().ok()
    leave.wait().ok()
    sound(world)
    assert holder(carl)["handoff"]["recovery"]["agent_id"] == ann.id


def test_of_two_waits_that_start_at_once_one_is_refused(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    both = [bob.start("wait") for _ in range(2)]
    wait_for(lambda: sum(wait.running for wait in both) == 1, what="a refusal")
    (loser,) = [wait for wait in both if not wait.running]
    loser.wait().failed("duplicate_listener", 1)
    (winner,) = [wait for wait in both if wait.running]
    ann.tt("msg", "send", bob.id, "hello").ok()
    assert texts(winner.wait().ok().json) == ["hello"]


def test_a_refusal_never_names_a_dead_receiver(world):
    """The lock is taken before the row is written: the row may be of an earlier wait."""
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    old = waiting(world, bob)
    old.kill()
    first = stopped(bob.start("wait", env=stop_at("before_commit")))
    error = bob.start("wait").wait().failed("duplicate_listener", 1).error
    first.cont()
    assert error.get("receiver_pid") in (None, first.pid)


def test_a_successors_row_survives_the_end_of_a_killed_wait(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    first = stopped(bob.start("wait", "--timeout", "100ms", env=stop_at("before_unlock")))
    bob.tt("wait").failed("duplicate_listener", 1)
    first.cont()
    first.wait().ok()
    second = waiting(world, bob)
    assert [row["pid"] for row in world.rows("SELECT pid FROM listeners")] == [second.pid]


@pytest.mark.parametrize("point", ["before_grant_commit", "after_grant_commit"])
def test_a_guardian_that_dies_around_the_commit_is_replaced_before_the_turn_is_told(world, point):
    ann, _ = joined(world, "ann", "bob")
    grant = stopped(ann.start("try", env=stop_at(point)))
    (guardian,) = guardians(world)
    os.kill(guardian, signal.SIGKILL)
    wait_for(lambda: gone(guardian), what="the guardian's end")
    grant.cont()
    result = grant.wait().ok().json
    assert result["status"] == "your_turn"
    assert result["guardian_pid"] != guardian
    assert guarded(world)
    assert room(world)["guardian_pid"] == result["guardian_pid"]


def test_a_guardian_killed_later_is_replaced_by_one_of_those_who_wait(world):
    ann, bob, carl = joined(world, "ann", "bob", "carl", GUARDIAN_ADOPT=300)
    guardian = holder(ann)["guardian_pid"]
    waits = [waiting(world, bob), waiting(world, carl)]
    os.kill(guardian, signal.SIGKILL)
    wait_for(lambda: room(world)["guardian_pid"] != guardian and guarded(world), what="another guardian")
    assert len(guardians(world)) == 1
    assert all(wait.running for wait in waits)
    assert owner(world) == ann.id


def test_a_grant_overtaken_by_its_granters_kick_is_none(world):
    ann, bob = joined(world, "ann", "bob")
    grant = stopped(ann.start("try", env=stop_at("before_grant_commit")))
    bob.tt("kick", ann.id, "--force").ok()
    grant.cont()
    grant.wait().failed("unknown_member", 1)
    assert owner(world) is None
    wait_for(lambda: not guardians(world), what="the end of a guardian without a lease")


def test_a_join_that_meets_the_last_leave_leaves_a_usable_room(world):
    """The archive is written, then the room is deleted only if nothing happened in it meanwhile."""
    (ann,) = joined(world, "ann")
    bob = world.agent("bob", ann.cwd)
    leave = stopped(ann.start("leave", env=stop_at("before_replace")))
    bob.tt("join").ok()
    leave.cont()
    left = leave.wait().ok().json
    assert left["status"] == "left"
    assert left["remaining_members"] == [bob.id]
    assert bob.tt("wait", "--claim").ok().json["status"] == "your_turn"
