"""Stop: who holds the turn is held once, never twice, never a sub-agent; the open turn is closed."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.hooks.kit import HANDOFF, Session, command, dump
from tests.kit.world import wait_for


@pytest.fixture
def bob(scene):
    """A session that holds the turn."""
    made = scene.session()
    made.agent.tt("join").ok()
    made.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    made.submit()
    return made


def let_go(run) -> None:
    assert (run.code, run.out, run.err) == (0, "", ""), repr(run)


def blocked(run, *words: str) -> None:
    assert (run.code, run.out) == (2, ""), repr(run)
    assert run.err.count("\n") == 1
    for word in words:
        assert word in run.err


def test_it_blocks_once_and_says_the_ways_out(scene, bob):
    before = dump(scene.world.bus())
    blocked(bob.stop(), bob.id, "turn 1", scene.repo, "tt release", "tt pass")
    assert bob.mark() == "open"
    let_go(bob.stop(stop_hook_active=True))
    assert bob.mark() == "closed"
    let_go(bob.stop(stop_hook_active=True))
    assert dump(scene.world.bus()) == before


def test_once_in_each_prompt_also_in_one_that_a_rewake_started(bob):
    """There `stop_hook_active` is true from the beginning."""
    blocked(bob.stop())
    let_go(bob.stop(stop_hook_active=True))
    bob.submit("<task-notification>a wake</task-notification>")
    blocked(bob.stop(stop_hook_active=True))
    let_go(bob.stop(stop_hook_active=True))


@pytest.mark.parametrize("prompt", ["x/../y z", "ü", "p" * 300, "-", "a\nb"])
def test_whatever_a_client_calls_its_prompts_it_never_blocks_twice(bob, prompt):
    blocked(bob.stop(prompt_id=prompt))
    let_go(bob.stop(prompt_id=prompt, stop_hook_active=True))
    blocked(bob.stop(prompt_id=prompt + "2"))


def test_without_a_prompt_id_the_clients_own_word_counts(bob):
    blocked(bob.stop(prompt_id=None))
    let_go(bob.stop(prompt_id=None, stop_hook_active=True))


def test_never_a_subagent(bob):
    for more in ({"agent_id": "a86f"}, {"subagentType": "explore"}, {"hook_event_name": "SubagentStop"}):
        let_go(bob.stop(**more))
    assert bob.mark() == "open"


def test_nobody_who_holds_nothing(scene, bob):
    carl = scene.session("carl")
    carl.submit()
    let_go(carl.stop())
    assert carl.mark() == "closed"
    blocked(bob.stop())
    bob.agent.tt("release", *HANDOFF).ok()
    let_go(bob.stop(prompt_id="another"))


def test_a_reservation_blocks_too(scene, bob):
    carl = scene.session("carl")
    carl.agent.tt("join").ok()
    rewake = carl.rewake()
    bob.agent.tt("pass", "--to", carl.id, *HANDOFF).ok()
    rewake.wait()
    blocked(carl.stop(), carl.id, scene.repo, "reserved", "tt try", "tt standby")
    let_go(carl.stop(stop_hook_active=True))


def test_an_expired_lease_holds_nobody(scene):
    scene.world.limit(LEASE=1500)
    bob = scene.session()
    bob.agent.tt("join").ok()
    bob.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    (room,) = scene.world.rows("SELECT * FROM rooms WHERE owner = ?", bob.id)
    os.kill(room["guardian_pid"], signal.SIGKILL)
    (room,) = scene.world.rows("SELECT * FROM rooms WHERE owner = ?", bob.id)
    wait_for(lambda: time.time() * 1000 > room["lease_until"])
    let_go(bob.stop())


def test_an_ended_session_is_let_go(bob):
    bob.end().ok()
    let_go(bob.stop())


def test_the_shared_command_tells_the_dialect_from_the_payload(scene, bob):
    """One command stands in Claude's settings and in Grok's, so that it runs once there."""
    argv = command("stop-guard")
    blocked(bob.agent.run(argv, input=json.dumps(bob.payload("Stop"))).wait())
    grok = Session(scene.world, "grok", scene.repo, harness="grok")
    grok.begin().ok()
    grok.agent.tt("join").ok()
    bob.agent.tt("pass", "--to", grok.id, "--operator-requested", *HANDOFF)
    if not scene.world.rows("SELECT 1 FROM rooms WHERE reserved_for = ?", grok.id):
        bob.agent.tt("release", *HANDOFF)
        grok.agent.tt("try").ok()
    told = {"hookEventName": "stop", "sessionId": grok.key, "workspaceRoot": scene.repo}
    env = {"GROK_HOOK_EVENT": "stop"}

    def stop(**more):
        return grok.agent.run(argv, env=env, input=json.dumps(told | more)).wait()

    for reason in ("error", "user_exit", "interrupted"):
        let_go(stop(reason=reason))
    blocked(stop(reason="end_turn"), grok.id)
    let_go(stop(reason="end_turn", stopHookActive=True))


def test_what_cannot_be_noted_is_not_done_again(scene, bob):
    folder = os.path.dirname(bob.mark_file())
    os.remove(bob.mark_file())
    os.mkdir(bob.mark_file())
    blocked(bob.stop())
    let_go(bob.stop(stop_hook_active=True))
    os.rmdir(bob.mark_file())
    assert all(not name.startswith("turn.") for name in os.listdir(folder))


@pytest.mark.parametrize(
    ("event", "more"), [("StopFailure", {}), ("Notification", {"notification_type": "idle_prompt"})]
)
def test_what_ends_a_turn_without_a_stop_closes_it(scene, event, more):
    bob = scene.session()
    bob.submit()
    bob.hook("publish", event, **more).ok()
    assert bob.mark() == "closed"


def test_publish_closes_the_turn_only_where_no_guard_does(scene):
    bob = scene.session()
    bob.submit()
    bob.hook("publish", "Stop").ok()
    assert bob.mark() == "open"
    bob.hook("publish", "Stop", "--no-guard").ok()
    assert bob.mark() == "closed"
