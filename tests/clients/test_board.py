"""What the model is shown beside a prompt: mail and collisions once, and nothing when nothing is new."""

from __future__ import annotations

from tests.clients import stories
from tests.clients.model import bash, say
from tests.kit.procs import wait_for

CONTEXT = "UserPromptSubmit hook additional context"


def changes_a_file(client, model, name: str):
    """The model appends to a file; the turn is over and published afterwards."""
    before = model.count()
    client.ask(model.script(f"edit{before}", bash(f"echo {client.name} >> {name}"), say("edited")), 2)
    has = '%"' + name + '"%'
    wait_for(
        lambda: client.world.rows(
            "SELECT 1 FROM agents WHERE presence LIKE ? AND anchor LIKE ?", has, f"%/{client.pid}/%"
        ),
        what="the published change",
    )


def test_the_session_is_told_once_how_the_bus_works_here(claude, world, project, model):
    stories.installed(project, claude)
    claude.interactive(bypass=True)
    me = stories.agent_of(world, claude)
    assert me in claude.ask("hello").new_text
    assert "talking-stick" not in claude.ask("hello again").new_text


def test_a_peer_that_changed_the_same_file_is_shown_once(claude, another, world, project, model):
    peer = another(world.worktree(project.path, "beta"), "peer")
    for client in (claude, peer):
        stories.installed(project, client)
        client.interactive(bypass=True)
        changes_a_file(client, model, "README.md")
    other = stories.agent_of(world, peer)
    shown = claude.ask("what now?").new_text
    assert CONTEXT in shown
    assert "README.md" in shown
    assert other in shown
    assert CONTEXT not in claude.ask("and now?").new_text
    changes_a_file(peer, model, "other.txt")
    assert CONTEXT not in claude.ask("still nothing for you").new_text


def test_mail_that_wakes_nobody_is_shown_whole_with_the_next_prompt_and_received(claude, world, project, model):
    stories.installed(project, claude)
    claude.interactive(bypass=True)
    me = stories.agent_of(world, claude)
    claude.ask("hello")
    before = model.count()
    sent = stories.sends(project.bob, me, "no hurry", "--no-wake")
    model.quiet(1)
    assert model.count() == before
    shown = claude.ask("next prompt")
    (envelope,) = stories.envelopes(shown.new_text)
    assert "  no hurry" in envelope.splitlines()
    assert stories.received(world, me, sent["event_seq"])
    assert CONTEXT not in claude.ask("one more").new_text


def test_a_silent_board_writes_nothing_to_the_store(claude, world, project):
    stories.installed(project, claude)
    claude.interactive(bypass=True)
    claude.ask("hello")
    marks = "SELECT id, marks FROM agents ORDER BY id"
    before = [tuple(row) for row in world.rows(marks)]
    claude.ask("nothing is new")
    assert [tuple(row) for row in world.rows(marks)] == before


def test_without_a_bus_here_no_hook_says_anything(claude, another, world, project, model):
    elsewhere = another(world.folder("elsewhere"), "stranger")
    stories.installed(project, elsewhere)
    elsewhere.headless("hello").ok()
    assert "this repository has a bus" not in model.mains()[-1].new_text  # the skill is listed, and that is all
    assert "[talking-stick] room" not in model.mains()[-1].new_text
    assert len(world.bus_dirs()) == 1
