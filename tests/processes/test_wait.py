"""What ends a `tt wait`, what doesn't, and what it leaves behind (each row of the table)."""

from __future__ import annotations

import signal
import time

import pytest

from tests.kit.world import tt_command
from tests.processes.stories import (
    HANDOFF,
    blocked,
    events,
    holder,
    joined,
    listens,
    notified,
    owner,
    released,
    room,
    sends_many,
    texts,
    unread,
    waiting,
)


def test_a_grant_ends_a_wait(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    assert released(ann)["reserved_for"] == bob.id
    result = wait.wait().ok().json
    assert (result["status"], result["reason"], result["wake_reason"]) == ("your_turn", "sequence", "turn")
    assert result["handoff"]["next_action"] == "do the rest"
    assert owner(world) == bob.id


def test_a_message_ends_a_wait_and_is_marked(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    sent = ann.tt("msg", "send", bob.id, "hello").ok().json
    assert (sent["delivery_status"], sent["delivery_transport"]) == ("receiver", "wait")
    result = wait.wait().ok().json
    assert (result["status"], result["wake_reason"], texts(result)) == ("not_yet", "event", ["hello"])
    assert result["hint"].endswith("start exactly one new `tt wait`")
    assert unread(world, bob) == []


def test_a_message_to_the_room_ends_a_live_wait(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    ann.tt("msg", "send", "room", "all of you").ok()
    assert texts(wait.wait().ok().json) == ["all of you"]


def test_a_closed_room_ends_a_wait(world):
    (ann,) = joined(world, "ann")
    wait = waiting(world, ann)
    assert ann.tt("leave").ok().json["status"] == "room_deleted"
    assert wait.wait().ok().json["status"] == "closed"
    assert not listens(world, ann)


def test_a_kicked_sessions_wait_ends_with_unknown_member(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    ann.tt("kick", bob.id, "--force", "--reason", "away").ok()
    run = wait.wait().failed("unknown_member", 1)
    assert run.error["agent_id"] == bob.id
    assert "join" in run.error["hint"]
    bob.tt("wait", "--timeout", "1s").failed("unknown_member", 1)
    bob.tt("join").ok()
    assert bob.tt("try").ok().json["status"] == "not_yet"


def test_a_wait_joins_nobody(world):
    ann, _ = joined(world, "ann", "bob")
    carl = world.agent("carl", ann.cwd)
    carl.tt("wait", "--timeout", "1s").failed("not_joined", 1)
    assert not world.rows("SELECT 1 FROM members WHERE agent = ?", carl.id)


def test_a_takeover_is_offered_to_one_waiter_at_a_time_and_once(world):
    """An expired reservation or lease once woke every waiter."""
    ann, bob, carl = joined(world, "ann", "bob", "carl", LEASE=1200, TAKEOVER_OFFER=1500)
    holder(ann)
    first, second = waiting(world, bob), waiting(world, carl)
    offer = first.wait().ok().json
    assert (offer["status"], offer["reason"]) == ("takeover_available", "owner_timeout")
    assert offer["current_owner"] == ann.id
    again = waiting(world, bob)
    assert second.wait().ok().json["status"] == "takeover_available"
    ann.tt("msg", "send", bob.id, "still here").ok()
    assert texts(again.wait().ok().json) == ["still here"]
    one, two = events(world, "takeover_offer")
    assert two["at"] - one["at"] > 1000  # one stood in line behind the other
    assert bob.tt("take", "--reason", "the lease is over").ok().json["status"] == "your_turn"


def test_an_idle_owner_ends_no_wait_but_is_reported(world):
    ann, bob, carl = joined(world, "ann", "bob", "carl", OWNER_IDLE=400)
    holder(ann)
    wait = waiting(world, bob)
    timed = carl.start("wait", "--timeout", "900ms").wait().ok().json
    assert (timed["status"], timed["reason"]) == ("takeover_available", "owner_idle")
    tried = carl.tt("try").ok().json
    assert (tried["status"], tried["reason"]) == ("takeover_available", "owner_idle")
    assert wait.running
    wait.signal(signal.SIGTERM)
    assert wait.wait().out == ""


def test_a_parked_wait_is_told_once_of_a_pending_handoff(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    bob.tt("standby").ok()
    parked = waiting(world, bob, "--park")
    assert released(ann)["parked_hinted"] == [bob.id]
    result = parked.wait().ok().json
    assert (result["status"], result["reason"]) == ("not_yet", "auto_claim_disabled")
    assert "one new" not in result["hint"]
    again = waiting(world, bob, "--park")
    ann.tt("msg", "send", bob.id, "take it").ok()
    assert texts(again.wait().ok().json) == ["take it"]
    assert owner(world) is None
    assert bob.tt("wait").ok().json["handoff"]["status"] == "half done"


def test_a_parked_wait_is_told_also_when_it_starts_late(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    bob.tt("standby").ok()
    world.agent("carl", ann.cwd).tt("join").ok()
    released(ann)
    result = bob.tt("wait", "--park").ok().json
    assert result["reason"] == "auto_claim_disabled"
    waiting(world, bob, "--park")


def test_a_parked_wait_is_given_an_assigned_turn(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    parked = waiting(world, bob, "--park")
    passed = ann.tt("assign", bob.id, *HANDOFF).ok().json
    assert passed["reserved_for"] == bob.id
    result = parked.wait().ok().json
    assert (result["status"], result["reason"]) == ("your_turn", "direct_pass")


def test_a_lost_turn_ends_the_owners_wait_once(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, ann)
    taken = bob.tt("take", "--operator-requested", "--force", "--reason", "asked").ok().json
    assert taken["revoked_agent_id"] == ann.id
    result = wait.wait().ok().json
    assert (result["status"], result["reason"]) == ("not_yet", "lost_turn")
    again = waiting(world, ann)
    again.signal(signal.SIGTERM)
    assert again.wait().out == ""


def test_owning_and_being_alone_end_no_wait(world):
    (ann,) = joined(world, "ann")
    alone = waiting(world, ann)
    alone.signal(signal.SIGTERM)
    assert alone.wait().code == 128 + signal.SIGTERM
    timed = ann.tt("wait", "--timeout", "100ms").ok().json
    assert (timed["status"], timed["reason"], timed["wake_reason"]) == ("not_yet", "solo_room", "timeout")
    assert ann.tt("wait", "--claim").ok().json["status"] == "your_turn"
    owning = waiting(world, ann)
    owning.signal(signal.SIGTERM)
    owning.wait()
    told = ann.tt("wait", "--timeout", "100ms").ok().json
    assert (told["status"], told["reason"]) == ("your_turn", "already_owner")


def test_park_and_claim_exclude_each_other(world):
    ann, _ = joined(world, "ann", "bob")
    ann.tt("wait", "--park", "--claim").failed("invalid_wait_mode")
    assert not listens(world, ann)


def test_a_timeout_is_kept(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob, "--timeout", "1500ms")
    (row,) = world.rows("SELECT since FROM listeners WHERE pid = ?", wait.pid)
    result = wait.wait().ok().json
    late = time.time() * 1000 - row["since"]
    assert (result["status"], result["wake_reason"], result["events"]) == ("not_yet", "timeout", [])
    assert 1400 <= late < 15_000
    assert not listens(world, bob)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_wait_and_what_is_due_is_woken_anew(world, number):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    wait.stop()
    assert ann.tt("msg", "send", bob.id, "in between").ok().json["delivery_status"] == "receiver"
    wait.signal(number)
    wait.cont()
    run = wait.wait()
    assert (run.code, run.out, run.err) == (128 + number, "", "")
    assert not listens(world, bob)
    assert [line.split("\t")[1] for line in notified(world, bob)] == ["in between"]
    assert texts(bob.tt("wait").ok().json) == ["in between"]


def test_a_hang_up_is_ignored_under_nohup(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = blocked(world, bob.run(["nohup", *tt_command(), "wait"]))
    wait.signal(signal.SIGHUP)
    ann.tt("msg", "send", bob.id, "still there?").ok()
    assert texts(wait.wait().ok().json) == ["still there?"]


def test_a_second_wait_is_refused_wherever_the_first_one_is(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    other = world.worktree(ann.cwd, "side")
    bob.tt("join", cwd=other).ok()
    first = waiting(world, bob)
    (row,) = world.rows("SELECT id FROM listeners WHERE pid = ?", first.pid)
    error = bob.tt("wait", cwd=other).failed("duplicate_listener", 1).error
    assert (error["receiver_id"], error["receiver_pid"], error["path"]) == (row["id"], first.pid, ann.cwd)
    first.kill()
    second = waiting(world, bob, cwd=other)
    assert second.running


def test_after_a_number_nothing_is_marked(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    first = ann.tt("msg", "send", bob.id, "one").ok().json["event_seq"]
    ann.tt("msg", "send", bob.id, "two").ok()
    for _ in range(2):
        assert texts(bob.tt("wait", "--after", str(first - 1)).ok().json) == ["one", "two"]
        assert texts(bob.tt("wait", "--after", str(first)).ok().json) == ["two"]
    assert len(unread(world, bob)) == 2
    assert texts(bob.tt("wait").ok().json) == ["one", "two"]


def test_more_than_a_batch_comes_in_two(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    sends_many(ann, bob.id, "n", 501).wait(60).ok()
    first = bob.tt("wait").ok().json
    assert first["more"] is True
    assert texts(first) == [f"n {number}" for number in range(500)]
    second = bob.tt("wait", "--timeout", "5s").ok().json
    assert ("more" not in second, texts(second)) == (True, ["n 500"])


def test_a_wait_on_an_archived_room_is_refused(world):
    (ann,) = joined(world, "ann")
    ann.tt("leave").ok()
    ann.tt("wait").failed("room_not_found", 1)


def test_the_owner_is_told_what_comes_while_it_waits(world):
    ann, bob = joined(world, "ann", "bob")
    turn = holder(ann)["turn_id"]
    wait = waiting(world, ann)
    bob.tt("msg", "send", ann.id, "a question").ok()
    result = wait.wait().ok().json
    assert (result["status"], result["turn_id"], texts(result)) == ("your_turn", turn, ["a question"])
    assert room(world)["turn_id"] == turn
