"""Wakes of an installed Claude Code: whole envelopes as turns, receipts for nothing, one turn a message."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.clients import stories
from tests.clients.model import bash, hold, say
from tests.kit.procs import gone, wait_for
from tests.processes.stories import guardians, owner, sends_many

WITHIN = 0.150  # seconds from the commit to the model's request, median of ten, on a quiet machine
MODES = pytest.mark.parametrize("bypass", [False, True], ids=["default", "bypass"])


@pytest.fixture
def session(claude, project):
    """An installed client; `started` starts its session."""
    stories.installed(project, claude)
    claude.settings(permissions=stories.ALLOW)
    return claude


def started(claude, world, *, bypass: bool = False) -> str:
    """Start the session; the agent id, once the rewake of SessionStart is armed."""
    claude.interactive(bypass=bypass)
    me = stories.agent_of(world, claude)
    stories.armed(claude, me)
    return me


def woken(claude, world, project, me: str, text: str):
    """One message to the idle session: exactly one turn, with the whole envelope; (seconds, request)."""
    model = claude.model
    stories.armed(claude, me)
    before = model.count()
    sent = stories.sends(project.bob, me, text)
    assert sent["delivery_status"] == "rewake", sent
    request = model.wait_text(text, after=before)
    (envelope,) = stories.envelopes(request.new_text)
    assert f"#{sent['event_seq']} " in envelope
    assert f"  {text}" in envelope.splitlines()
    assert project.bob.id in envelope
    wait_for(lambda: stories.received(world, me, sent["event_seq"]), 5, "a receipt")
    assert not any("tool" in block for each in model.since(before) for block in each.reply), "no tool call"
    model.quiet(1)
    assert model.count() == before + 1, model.told()
    return stories.woken_after(sent, request), request


@MODES
def test_ten_messages_are_ten_turns_with_whole_envelopes_and_receipts(session, world, project, bypass):
    me = started(session, world, bypass=bypass)
    before = stories.slowness()
    taken = [woken(session, world, project, me, f"message number {n}")[0] for n in range(10)]
    slow = max(before, stories.slowness())
    stories.told(f"commit → turn by rewake, {'bypass' if bypass else 'default'} mode", taken)
    print(f"this machine is {slow:.1f} × slower than usual")
    print(f"to reach on a quiet machine: {WITHIN * 1000:.0f} ms, median of ten")  # reported: time gates nothing
    assert stories.unread(world, me) == []


@MODES
def test_compact_and_clear_leave_the_same_agent_reachable(session, world, project, bypass):
    me = started(session, world, bypass=bypass)
    session.ask("something to compact")
    session.compact()
    taken = [woken(session, world, project, me, "after compact")[0]]
    session.clear()
    assert stories.agent_of(world, session) == me
    taken.append(woken(session, world, project, me, "after clear")[0])
    session.ask("a prompt in the new conversation")
    taken.append(woken(session, world, project, me, "after a turn in it")[0])
    stories.told("commit → turn after /compact and /clear", taken)
    assert len(stories.hooks_running(session)) == 1


def test_the_plugins_monitor_is_the_route_behind_the_rewake_also_after_clear(session, world, project, model):
    me = started(session, world)
    wait_for(lambda: stories.held(world, me, "monitor"), what="a live monitor")
    session.clear()
    assert stories.held(world, me, "monitor")
    os.kill(stories.armed(session, me), signal.SIGKILL)
    wait_for(lambda: not stories.held(world, me, "rewake"), what="the end of the rewake")
    before = model.count()
    sent = stories.sends(project.bob, me, "by the monitor")
    assert sent["delivery_transport"] == "monitor", sent
    assert "by the monitor" in model.wait_next(before).new_text
    model.quiet(2)
    assert model.count() == before + 1, model.told()
    assert stories.unread(world, me) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@MODES
def test_forty_minutes_after_start_a_message_still_wakes(session, world, project, bypass):
    me = started(session, world, bypass=bypass)
    armed = stories.armed(session, me)
    time.sleep(40 * 60)  # the subject of the test: a hook without a long timeout dies after ten minutes
    assert stories.armed(session, me) == armed
    woken(session, world, project, me, "forty minutes later")


def test_a_message_beside_a_background_wait_costs_one_turn(session, world, project, model):
    me = started(session, world)
    assert stories.joins(session) == me
    project.busy()
    wait = stories.waits(session)
    output = stories.output_file(world, wait)
    before = model.count()
    sent = stories.sends(project.bob, me, "one message")
    assert (sent["delivery_status"], sent["delivery_transport"]) == ("receiver", "wait")
    assert "completed (exit code 0)" in model.wait_next(before).new_text
    assert "one message" in stories.read(output)
    model.quiet(2)
    assert model.count() == before + 1, model.told()
    assert stories.unread(world, me) == []
    woken(session, world, project, me, "and one after that wait")


def test_a_wait_that_is_killed_leaves_the_rewake(session, world, project):
    me = started(session, world)
    stories.joins(session)
    project.busy()
    wait = stories.waits(session)
    os.kill(wait, signal.SIGKILL)
    wait_for(lambda: gone(wait), what="the end of the wait")
    session.model.quiet(1)  # the client tells the model that its command was killed
    woken(session, world, project, me, "after the wait")


def test_a_burst_of_twenty_is_few_turns_and_loses_nothing(session, world, project, model):
    me = started(session, world)
    before = model.count()
    sends_many(project.bob, me, "burst", 20).wait(30).ok()
    wait_for(lambda: not stories.unread(world, me), 30, "receipts for all")
    model.quiet(2)
    turns = model.since(before)
    shown = "\n".join(envelope for each in turns for envelope in stories.envelopes(each.new_text))
    lines = [line.strip() for line in shown.splitlines()]
    assert [lines.count(f"burst {n}") for n in range(20)] == [1] * 20
    print(f"20 messages in {len(turns)} turns")
    assert len(turns) <= 6


def test_an_interrupt_beside_a_wait_costs_at_most_two_turns(session, world, project, model):
    me = started(session, world)
    stories.joins(session)
    project.busy()
    stories.waits(session)
    before = model.count()
    sent = stories.sends(project.bob, me, "stop now", "--interrupt")
    assert sent["also_receiver"] is True, sent
    model.wait_next(before)
    model.quiet(2)
    assert 1 <= model.count() - before <= 2, model.told()


# --- the open turn -----------------------------------------------------------------------


def open_turn(session, model):
    """A turn that stays open at the model until `model.let("go")`, with a tool boundary in it; its first request."""
    name = f"open{model.count()}"
    before = model.count()
    steps = ([say("thinking"), bash("sleep 2; echo first")], [hold("go"), bash("echo second")], say("end"))
    session.type(model.script(name, *steps))
    return model.wait_next(before)


def test_an_agents_message_comes_after_the_open_turn(session, world, project, model):
    me = started(session, world)
    first = open_turn(session, model)
    before = model.count()
    sent = stories.sends(project.bob, me, "for later")
    model.wait_count(before + 1)
    model.let("go")
    shown = model.wait_text("for later", after=before)
    turn = model.since(before)
    assert [request.results != [] for request in turn[: turn.index(shown)]] == [True, True], model.told()
    assert stories.envelopes(shown.new_text)
    model.quiet(1)
    assert len(model.saying("for later", before)) == 1
    assert stories.received(world, me, sent["event_seq"])
    assert first.number < shown.number


def test_a_persons_message_joins_the_open_turn_at_the_next_tool_boundary(session, world, project, model):
    me = started(session, world)
    open_turn(session, model)
    before = model.count()
    sent = stories.sends(project.ann, me, "from a person")
    joined = model.wait_text("from a person", after=before)
    assert any("first" in result for result in joined.results), "with the result of the running tool"
    model.let("go")
    model.quiet(1)
    assert len(model.saying("from a person", before)) == 1
    assert stories.received(world, me, sent["event_seq"])


# --- no loops ----------------------------------------------------------------------------


def test_an_envelope_that_is_queued_but_not_seen_is_not_sent_again(session, world, project, model):
    """The client runs Stop before the prompt hook of what it has queued."""
    me = started(session, world)
    before = model.count()
    session.type(model.script("text", [hold("go"), say("a slow answer in words")]))
    model.wait_next(before)
    sent = stories.sends(project.ann, me, "seen late")  # joins, but there is no tool boundary in this turn
    wait_for(lambda: not stories.held(world, me, "rewake"), 5, "a fired rewake")
    model.let("go")
    model.wait_text("seen late", after=before)
    model.quiet(2)
    assert len(model.saying("seen late", before)) == 1, model.told()
    assert stories.received(world, me, sent["event_seq"])


def test_after_three_rewakes_without_a_receipt_there_is_silence_until_a_prompt(claude, world, project, model):
    world.limit(UNSEEN_WAKE=1)  # an unseen wake is replaced by newer mail at once, not after five minutes
    stories.installed(project, claude, "--settings")
    deaf = blind(claude)
    me = started(claude, world)
    before = model.count()
    world.write(*os.path.split(deaf), "")
    for number in range(6):
        stories.armed(claude, me)
        stories.sends(project.bob, me, f"try {number}")
        model.quiet(1.5)
    assert len(envelope_turns(model, before)) == 3, model.told()
    os.unlink(deaf)
    claude.ask("a prompt by a person")  # the prompt hook shows what is unread, and speaking lifts the silence
    assert stories.unread(world, me) == []
    woken(claude, world, project, me, "heard again")


def envelope_turns(model, after: int):
    return [request for request in model.since(after) if stories.envelopes(request.new_text)]


def blind(claude) -> str:
    """Make our prompt hook do nothing while a file exists, whose path is returned."""
    flag = os.path.join(claude.home, "blind")
    settings = json.loads(stories.read(claude.settings_file))
    for group in settings["hooks"]["UserPromptSubmit"]:
        for handler in group["hooks"]:
            handler["command"] = f"[ -e {flag} ] && exit 0; {handler['command']}"
    claude.settings(**settings)
    return flag


# --- ends --------------------------------------------------------------------------------


def test_sigkill_of_the_client_leaves_no_rewake_and_no_guardian(session, world, project):
    grace = 1.5
    world.limit(GONE_GRACE=int(grace * 1000))
    me = started(session, world)
    stories.joins(session, "tt try --json")
    assert owner(world) == me
    rewake = stories.armed(session, me)
    (guardian,) = guardians(world)
    ended = time.monotonic()
    session.kill9()
    wait_for(lambda: gone(rewake), 5, "the end of the rewake")
    without_rewake = time.monotonic() - ended
    wait_for(lambda: gone(guardian), 10, "the end of the guardian")
    without_guardian = time.monotonic() - ended
    print(f"rewake gone after {without_rewake:.2f} s, guardian after {without_guardian:.2f} s")
    assert without_rewake < 1
    assert without_guardian < grace + 1
    assert owner(world) is None
    assert not stories.hooks_running(session)


def test_exit_ends_everything_and_resume_is_the_same_agent(session, world, project, model):
    me = started(session, world)
    session.ask("hello")
    session.exit()
    wait_for(lambda: not stories.hooks_running(session), 5, "the end of all hooks")
    assert not stories.held(world, me, "rewake")
    assert not stories.held(world, me, "monitor")
    project.bob.tt("msg", "send", me, "while away").failed("unknown_recipient")
    session.interactive("--continue")
    assert stories.agent_of(world, session) == me
    woken(session, world, project, me, "back again")


def test_a_headless_run_is_not_held_by_the_rewake(session, model):
    done = session.headless("hello").ok()
    assert done.out.strip() == "ok ack"
    assert done.seconds < 15
    print(f"claude -p with hooks: {done.seconds:.2f} s")
    assert model.count() == 1
