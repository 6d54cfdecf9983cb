"""Codex with our hooks: trust, board, guard, `codex queue`, a wait that nobody reads, Codex inside Claude."""

from __future__ import annotations

import uuid

import pytest

from tests.clients import stories
from tests.clients.model import bash, say, shell
from tests.kit.procs import wait_for
from tests.processes.stories import owner

GUARD = "<hook_prompt"
TURN = 20  # seconds that no turn may take: a hook that hangs is ended by its time limit only then


@pytest.fixture
def trusting(codex, project):
    """Codex with our hooks installed and trusted."""
    stories.installed(project, codex)
    assert codex.trust_hooks() >= 3
    return codex


def joined(codex, *more: str) -> str:
    """The TUI's model joins and runs what else is told; the agent's id."""
    before = codex.model.count()
    steps = [shell("tt join --json"), *map(shell, more), say("joined")]
    codex.ask(codex.model.script(f"joins{before}", *steps), len(steps))
    return codex.model.since(before)[1].json["agent_id"]


def test_install_says_how_to_trust_and_what_the_sandbox_needs(codex, project):
    run = stories.installed(project, codex)
    assert "/hooks" in run.out
    assert "writable_roots" in run.out
    assert project.world.data in run.out
    assert "trusted_hash" not in stories.read(codex.config_file)


def test_with_the_data_directory_allowed_the_sandbox_lets_tt_work(codex, project, model):
    stories.installed(project, codex, "--allow-data-dir")
    codex.exec(model.script("join", shell("tt join --json"), say("done")), "--sandbox", "workspace-write", full=False)
    assert model.mains()[1].json["status"] == "joined"


def test_untrusted_hooks_do_nothing_and_nothing_hangs(codex, project, model):
    stories.installed(project, codex)
    done = codex.exec("hello").ok()
    shown = "\n".join(item.text for item in model.mains()[0].items if item.role != "system")
    assert "this repository has a bus" not in shown  # the skill is listed, and that is all
    assert done.seconds < TURN


def test_board_and_guard_work_and_no_turn_hangs(trusting, world, project, model):
    trusting.tui()
    me = joined(trusting)
    before = model.count()
    sent = stories.sends(project.peer(trusting), me, "no hurry", "--no-wake")
    shown = trusting.ask("next prompt").new_text
    (envelope,) = stories.envelopes(shown)
    assert "  no hurry" in envelope.splitlines()
    assert stories.received(world, me, sent["event_seq"])
    before = model.count()
    trusting.ask(model.script("take", shell("tt try --json"), say("I am done")), 3)
    assert owner(world) == me
    assert len(model.saying(GUARD, before)) == 1
    assert model.count() == before + 3, model.told()
    took = model.mains()[-1].at - model.since(before)[0].at
    assert took < TURN


def test_an_idle_codex_is_woken_through_its_queue(trusting, world, project, model):
    trusting.tui()
    me = joined(trusting)
    carl = project.peer(trusting)
    taken = []
    for number in range(3):
        before = model.count()
        sent = stories.sends(carl, me, f"wake up {number}")
        assert sent["delivery_transport"] == "codex_queue", sent
        assert sent["delivery_state"] == "queued", sent
        request = model.wait_text(f"wake up {number}", after=before)
        assert stories.envelopes(request.new_text)
        taken.append(stories.woken_after(sent, request))
        wait_for(lambda sent=sent: stories.received(world, me, sent["event_seq"]), 5, "a receipt by the prompt")
        model.quiet(1)
        assert model.count() == before + 1, model.told()
    stories.told("commit → turn by codex queue", taken)


def test_mail_is_not_swallowed_by_a_background_wait(trusting, world, project, model):
    """An ended background command wakes no Codex: what its wait printed is not yet received."""
    trusting.tui()
    me = joined(trusting)
    carl = project.peer(trusting)
    assert carl.tt("try").ok().json["status"] == "your_turn"
    waits = model.script("waits", shell("tt wait --json", yield_time_ms=1000), say("waiting"))
    trusting.ask(waits, 2)
    wait_for(lambda: stories.held(world, me, "wait"), what="a live wait")
    before = model.count()
    sent = stories.sends(carl, me, "do not lose me")
    request = model.wait_text("do not lose me", after=before)
    assert stories.envelopes(request.new_text)
    model.quiet(1)
    wait_for(lambda: stories.received(world, me, sent["event_seq"]), 5, "a receipt")
    assert len(model.saying("do not lose me", before)) == 1, model.told()


def test_an_unknown_thread_is_a_definite_failure(codex, world, project):
    ghost = world.agent("ghost", project.path, "codex", str(uuid.uuid4()), **project.around(codex))
    ghost.tt("join").ok()
    sent = stories.sends(project.peer(codex), ghost.id, "anybody?")
    assert sent["delivery_state"] == "failed", sent
    assert sent["reason"] == "codex_thread_not_found", sent
    assert sent["delivery_status"] == "unreachable", sent


def test_codex_inside_claude_is_codex_for_hooks_and_shell(claude, trusting, world, project, model):
    stories.installed(project, claude)
    inner = model.script("inner", shell("tt join --json"), say("inner done"))
    outer = model.script("outer", bash("tt join --json"), bash(trusting.exec_line(inner)), say("outer done"))
    claude.headless(outer).ok()
    asked = [request for request in model.mains() if request.path.endswith("/responses")]
    assert asked[-1].json["agent_id"].startswith("codex:")
    assert asked[-1].json["agent_id"] in asked[0].text  # its SessionStart hook said the same
    kinds = [row["id"].partition(":")[0] for row in world.rows("SELECT id FROM agents WHERE harness IS NOT NULL")]
    assert sorted(kinds) == ["claude", "claude", "codex"]  # bob is the other Claude


def test_hooks_of_user_and_project_run_twice_but_show_mail_once(trusting, world, project, model):
    """Codex runs identical registrations of both places; ours must not mind."""
    world.write(project.path, ".codex/hooks.json", stories.read(trusting.hooks_file))
    trusting.trust_hooks()
    trusting.tui()
    me = joined(trusting)
    stories.sends(project.peer(trusting), me, "once please", "--no-wake")
    assert trusting.ask("next").new_text.count("once please") == 1
