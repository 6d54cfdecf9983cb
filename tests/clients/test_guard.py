"""The Stop guard in Claude Code: once in a turn, with the reason, never a sub-agent, never for long."""

from __future__ import annotations

import pytest

from tests.clients import stories
from tests.clients.model import bash, say, subagent
from tests.kit.procs import wait_for
from tests.processes.stories import HANDOFF, owner

BLOCKED = "]: talking-stick: "  # behind the command line, which the client quotes


@pytest.fixture
def session(claude, project):
    """An installed client in bypass mode with an idle session."""
    stories.installed(project, claude)
    return claude.interactive(bypass=True)


def blocks(model, after: int):
    """The requests that show a blocked Stop."""
    return [request for request in model.since(after) if BLOCKED in request.new_text and not request.subagent]


def test_a_session_that_owns_the_turn_is_stopped_once_in_each_turn_and_told_why(session, world, model):
    me = stories.joins(session)  # ends its turn without a block: it owns nothing yet
    assert blocks(model, 0) == []
    before = model.count()
    session.ask(model.script("take", bash("tt try --json"), say("I am done")), 3)
    assert owner(world) == me
    (block,) = blocks(model, before)
    for word in (me, "release", "pass"):
        assert word in block.new_text
    assert model.count() == before + 3, model.told()
    before = model.count()
    session.ask("and now?", 2)
    assert len(blocks(model, before)) == 1
    assert model.count() == before + 2, model.told()


def test_after_a_release_nothing_is_blocked(session, model, project):
    stories.joins(session, "tt try --json", "tt release --status done --next-action rest")
    assert blocks(model, 0) == []
    assert project.bob.tt("try").ok().json["status"] == "your_turn"


def test_it_blocks_once_in_a_turn_that_a_rewake_started(session, world, project, model):
    me = stories.joins(session)
    project.busy()
    stories.armed(session, me)
    model.script("take", bash("tt try --json"), say("I am done"))
    before = model.count()
    project.bob.tt("pass", me, "--status", "half done", "--next-action", "RUN take").ok()
    assert stories.envelopes(model.wait_next(before).new_text)
    wait_for(lambda: owner(world) == me, what="the turn")
    model.quiet(2)
    assert len(blocks(model, before)) == 1, model.told()
    assert model.count() == before + 3, model.told()


def test_an_unclaimed_reservation_is_named_with_standby_as_a_way_out(session, project, model):
    me = stories.joins(session)
    project.busy()
    stories.armed(session, me)
    before = model.count()
    project.bob.tt("pass", me, *HANDOFF).ok()
    model.wait_next(before)
    model.quiet(2)
    (block,) = blocks(model, before)
    assert "standby" in block.new_text


@pytest.mark.parametrize("background", [False, True])
def test_a_subagents_stop_is_never_blocked(session, world, model, background):
    me = stories.joins(session)
    model.script("inside", bash("echo from the sub-agent"), say("sub-agent done"))
    before = model.count()
    work = subagent("RUN inside", background=background)
    session.type(model.script("lead", bash("tt try --json"), work, say("I am done")))
    model.wait_text("sub-agent done", after=before)
    model.quiet(2)
    assert owner(world) == me
    inside = [request for request in model.since(before) if request.subagent]
    assert len(inside) == 2, model.told()
    assert not any("still holds turn" in request.new_text for request in inside)
    # an interactive client may put it into the background whatever was asked: its end is a turn of its own then
    assert 1 <= len(blocks(model, before)) <= 2, model.told()


def test_a_headless_run_ends_at_once_and_with_the_turn_after_one_block(claude, project, model):
    stories.installed(project, claude)
    plain = claude.headless("hello").ok()
    assert model.count() == 1
    holding = claude.headless(model.script("take", bash("tt join"), bash("tt try --json"), say("I am done"))).ok()
    assert len(blocks(model, 1)) == 1
    assert model.count() == 1 + 4, model.told()
    print(f"claude -p: {plain.seconds:.2f} s, with the turn: {holding.seconds:.2f} s")
    assert plain.seconds < 10


def test_without_the_guard_nothing_is_blocked(claude, world, project, model):
    stories.installed(project, claude, "--no-guard")
    claude.interactive(bypass=True)
    me = stories.joins(claude, "tt try --json")
    assert owner(world) == me
    assert blocks(model, 0) == []
