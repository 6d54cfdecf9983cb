"""Following, reading and waiting beside others: each costs what it should, and nothing is swallowed."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.kit.world import tt_command, wait_for
from tests.processes.stories import blocked, holder, joined, listens, released, texts, unread, waiting, wchan


def following(agent, *words: str):
    """`tt events --follow` of this agent, once it sleeps."""
    proc = agent.start("events", "--follow", *words)
    wait_for(lambda: not proc.running or wchan(proc.pid).startswith(("poll", "do_poll")), what="a follower")
    assert proc.running, proc.wait()
    return proc


def test_a_follower_prints_each_event_when_it_comes(world):
    """Behind a pipe nothing was seen until the program ended."""
    ann, bob = joined(world, "ann", "bob")
    proc = following(bob)
    seqs = []
    for number in range(3):
        seqs.append(ann.tt("msg", "send", bob.id, f"n {number}").ok().json["event_seq"])
        shown = proc.line()
        assert (shown["event_seq"], shown["text"]) == (seqs[-1], f"n {number}")
    assert unread(world, bob) == seqs, "looking marks nothing"
    assert not listens(world, bob)
    proc.signal(signal.SIGTERM)
    run = proc.wait()
    assert run.code == 0
    assert f'"cursor_event_seq":{seqs[-1]}' in run.err


def test_a_follower_of_all_hears_what_is_for_others_also_for_newcomers(world):
    ann, bob = joined(world, "ann", "bob")
    person = world.person("zoe", ann.cwd)
    person.tt("join").ok()
    proc = following(person, "--target", "any", "--event", "message", "--json")
    mine = following(person, "--event", "message", "--json")
    carl = world.agent("carl", ann.cwd)
    carl.tt("join").ok()
    for to in (bob, carl, person):
        for text in ("one", "two"):
            ann.tt("msg", "send", to.id, text).ok()
            shown = proc.line()
            assert (shown["to"], shown["text"]) in ((to.id, text), ("you", text))
    assert [mine.line()["text"] for _ in range(2)] == ["one", "two"]


def test_wait_for_one_event_ends_with_it(world):
    ann, bob = joined(world, "ann", "bob")
    proc = bob.start("events", "--wait", "--event", "message")
    wait_for(lambda: wchan(proc.pid).startswith(("poll", "do_poll")), what="a look that blocks")
    ann.tt("notes", "add", "no event").ok()
    ann.tt("msg", "send", bob.id, "one").ok()
    assert proc.wait().ok().json["text"] == "one"


def test_a_follower_ends_when_nobody_reads_it(world):
    ann, bob = joined(world, "ann", "bob")
    script = f"{' '.join(tt_command())} events --follow | head -n 1"
    proc = bob.run(["sh", "-c", script])
    wait_for(lambda: followers(world), what="a follower")
    (pid,) = followers(world)
    wait_for(lambda: wchan(pid).startswith(("poll", "do_poll")), what="a blocked follower")
    for text in ("one", "two", "three"):
        ann.tt("msg", "send", bob.id, text).ok()
    run = proc.wait()
    shown, told = json.loads(run.out), json.loads(run.err)
    assert told == {"cursor_event_seq": shown["event_seq"]}, "it says as far as it was read"


def followers(world) -> list[int]:
    """The processes that follow in this world."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{name}/environ", "rb") as file:
                mine = world.data.encode() in file.read()
        except OSError:
            continue
        if b"--follow" in words and mine:
            found.append(int(name))
    return found


@pytest.mark.parametrize("words", [("state",), ("health",), ("events",), ("notes", "list"), ("msg", "recv")])
def test_a_careful_reader_is_seen(world, words):
    """Who only read looked dead. At most one note in a while, and nothing of the turn is touched."""
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    before = seen(world, bob)
    bob.tt(*words).ok()
    assert seen(world, bob) == before, "one note a minute is enough"
    world.limit(LAST_SEEN=50)
    time.sleep(0.1)
    room = dict(world.rows("SELECT * FROM rooms WHERE id > 0")[0])
    bob.tt(*words).ok()
    assert seen(world, bob) > before
    assert dict(world.rows("SELECT * FROM rooms WHERE id > 0")[0]) == room


def seen(world, agent) -> int:
    return world.rows("SELECT last_seen FROM agents WHERE id = ?", agent.id)[0]["last_seen"]


def test_a_wait_that_is_woken_for_others_writes_nothing(world):
    """Each poll wrote presence."""
    ann, bob, carl = joined(world, "ann", "bob", "carl")
    carl.tt("inbox").ok()
    holder(ann)
    wait = waiting(world, bob)
    mine = [tuple(row) for row in rows_of(world, bob)]
    ann.tt("msg", "send", carl.id, "not for bob").ok()
    released(ann, "--turn", "1")
    wait.wait().ok()
    ann.tt("inbox").ok()
    again = waiting(world, bob)
    mine = [tuple(row) for row in rows_of(world, bob)]
    for _ in range(3):
        ann.tt("msg", "send", carl.id, "nor this").ok()
        ann.tt("notes", "add", "nor this").ok()
    assert [tuple(row) for row in rows_of(world, bob)] == mine
    assert again.running


def rows_of(world, agent):
    """What the store holds of an agent and its memberships."""
    return [
        *world.rows("SELECT * FROM agents WHERE id = ?", agent.id),
        *world.rows("SELECT * FROM members WHERE agent = ? ORDER BY room", agent.id),
        *world.rows("SELECT * FROM listeners WHERE agent = ?", agent.id),
    ]


def test_somebody_new_ends_a_wait_and_who_was_here_already_does_not(world):
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    wait = waiting(world, bob)
    ann.tt("join").ok()
    ann.tt("state").ok()
    assert wait.running
    carl = world.agent("carl", ann.cwd)
    carl.tt("join").ok()
    assert [event["type"] for event in wait.wait().ok().json["events"]] == ["join"]
    wait = waiting(world, bob)
    carl.tt("leave").ok()
    assert [event["type"] for event in wait.wait().ok().json["events"]] == ["leave"]


def test_two_threads_of_one_client_are_two_members(world):
    """The second one once evicted the first, in the middle of its turn."""
    repo = world.repo()
    first = world.agent("first", repo, "codex", session="0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001")
    other = {"CODEX_THREAD_ID": "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0002"}
    first.tt("join").ok()
    second = first.tt("join", env=other).ok().json["agent_id"]
    assert second != first.id
    turn = holder(first)
    first.tt("inbox", env=other).ok()
    assert first.tt("try", env=other).ok().json["current_owner"] == first.id
    assert released(first)["turn_id"] == turn["turn_id"]


def test_a_wait_behind_a_wrapper_is_no_second_one(world):
    """A shell around the command, and waits of other rooms and agents, once counted as duplicates."""
    ann, bob = joined(world, "ann", "bob")
    holder(ann)
    other = waiting(world, ann)
    proc = bob.run(["sh", "-c", f"{' '.join(tt_command())} wait; true"])
    wait_for(lambda: listens(world, bob), what="a wait behind a shell")
    bob.tt("wait", "--timeout", "1s").failed("duplicate_listener", 1)
    blocked(world, other)
    ann.tt("msg", "send", bob.id, "hello").ok()
    assert texts(proc.wait().ok().json) == ["hello"]
