"""Presence, the sweep behind it, the delivery hook of Grok, `tt ack`, and what sub-agents cost."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from bus import envelope, limits, locks
from tests.hooks.kit import bodies, context, dump, heads, written
from tests.kit.world import wait_for

MISSED = "TT_TEST_CRASH"


def presence(session) -> dict:
    return json.loads(session.row()["presence"])


def test_presence_is_written_when_it_changed(scene):
    bob = scene.session()
    scene.world.write(scene.repo, "new.txt", "x")
    scene.world.write(scene.repo, ".claude/settings.local.json", "{}")
    assert bob.hook("publish", "Stop", permission_mode="acceptEdits").ok().out == ""
    told = presence(bob)
    assert (told["branch"], told["changed"]) == ("main", ["new.txt"])
    assert (told["permission_mode"], told["transcript"]) == ("acceptEdits", f"/nowhere/{bob.key}.jsonl")
    assert bob.row()["station"] == "expo"
    before = written(scene.world.bus())
    bob.hook("publish", "Stop", permission_mode="acceptEdits").ok()
    assert written(scene.world.bus()) == before
    os.remove(os.path.join(scene.repo, "new.txt"))
    bob.hook("publish", "Stop", permission_mode="acceptEdits").ok()
    assert presence(bob)["changed"] == []


def test_presence_is_refreshed_after_a_minute(scene):
    scene.world.limit(LAST_SEEN=300)
    bob = scene.session()
    seen = bob.row()["last_seen"]
    time.sleep(0.4)
    bob.hook("publish", "Stop").ok()
    assert bob.row()["last_seen"] > seen


def test_a_subagent_is_nobodys_presence(scene):
    bob = scene.session()
    before = dump(scene.world.bus())
    bob.hook("publish", "Stop", agent_id="a86f", permission_mode="plan").ok()
    assert dump(scene.world.bus()) == before


@pytest.mark.parametrize("point", ["after_commit", "before_bell"])
def test_the_mail_of_a_killed_sender_is_woken_by_publish(scene, point):
    bob, carl = scene.session(), scene.session("carl")
    rewake = bob.rewake()
    assert scene.ann.start("msg", "send", bob.id, "hello", env={MISSED: point}).wait().code == -9
    assert rewake.running
    carl.hook("publish", "Stop").ok()
    assert bodies(rewake.wait().err) == ["hello"]


def test_an_unguarded_lease_gets_a_guardian(scene):
    bob, carl = scene.session(), scene.session("carl")
    bob.agent.tt("join").ok()
    bob.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    (room,) = scene.world.rows("SELECT * FROM rooms WHERE owner = ?", bob.id)
    os.kill(room["guardian_pid"], signal.SIGKILL)
    lock = os.path.join(scene.world.bus(), "locks", "lease-" + room["lease_id"])
    wait_for(lambda: not locks.held(lock))
    carl.hook("publish", "Stop").ok()
    wait_for(lambda: locks.held(lock))


def test_codex_does_not_wait_for_publish(scene):
    bob = scene.session(harness="codex")
    slow = scene.world.folder("bin")
    scene.world.write(slow, "git", '#!/bin/sh\nsleep 1.5\nexec /usr/bin/git "$@"\n')
    os.chmod(os.path.join(slow, "git"), 0o755)
    scene.world.write(scene.repo, "new.txt", "x")
    began = time.monotonic()
    run = bob.hook("publish", "Stop", env={"PATH": f"{slow}:{bob.agent.env['PATH']}"}).ok()  # its streams are closed
    assert time.monotonic() - began < 1.4
    assert run.out == run.err == ""
    wait_for(lambda: "new.txt" in presence(bob).get("changed", []))
    assert bob.row()["anchor"].split("/")[1] == str(bob.agent.client.pid)


def test_a_session_end_publishes_nothing(scene):
    bob = scene.session()
    bob.end().ok()
    before = dump(scene.world.bus())
    bob.hook("publish", "SessionEnd", reason="other").ok()
    assert dump(scene.world.bus()) == before


# --- inbox and ack ---------------------------------------------------------------------


def grok(scene):
    return scene.session("grok", harness="grok")


def drains(session, event="PostToolUse", **more) -> str:
    return context(session.hook("inbox", event, prompt_id=None, **more).ok())


def test_the_inbox_hook_delivers_with_an_ack(scene):
    bob = grok(scene)
    assert drains(bob) == ""
    scene.says(bob, "hello")
    text = drains(bob)
    (token,) = envelope.tokens(text)
    assert heads(text)[0] == f"[talking-stick] room {scene.repo} · ack: tt ack {token} --json"
    assert bodies(text) == ["hello"]
    before = written(scene.world.bus())
    assert drains(bob) == ""  # offered, not acknowledged: not again at the next tool
    assert written(scene.world.bus()) == before
    told = bob.agent.tt("ack", token, "--json").ok().json
    assert (told["status"], len(told["event_seqs"])) == ("acknowledged", 1)
    assert bob.unread() == []
    assert bob.agent.tt("ack", token, "--json").ok().json == told | {"status": "already_acknowledged"}


def test_what_nobody_acknowledged_is_offered_again_after_a_while(scene):
    scene.world.limit(REOFFER=400)
    bob = grok(scene)
    scene.says(bob, "hello")
    first = drains(bob)
    time.sleep(0.5)
    again = drains(bob)
    assert bodies(again) == bodies(first) == ["hello"]
    bob.agent.tt("ack", envelope.tokens(first)[0]).ok()  # the late ack of the first counts
    assert bob.unread() == []


def test_a_stop_delivers_only_at_the_end_of_a_turn(scene):
    bob = grok(scene)
    scene.says(bob, "hello")
    for reason in ("error", "user_exit"):
        assert drains(bob, "Stop", reason=reason) == ""
    assert drains(bob, "Stop", reason="end_turn", agent_id="sub") == ""
    assert bodies(drains(bob, "Stop", reason="end_turn")) == ["hello"]


def test_more_than_a_hook_may_say_comes_after_the_ack(scene):
    bob = grok(scene)
    for number in range(3):
        scene.says(bob, f"{number}" * 3000)
    text = drains(bob)
    assert len(text.encode()) <= limits.HOOK_BYTES
    assert [body[0] for body in bodies(text)] == ["0", "1"]
    bob.agent.tt("ack", envelope.tokens(text)[0]).ok()
    assert [body[0] for body in bodies(drains(bob))] == ["2"]


def test_one_event_too_large_is_a_line(scene):
    bob = grok(scene)
    scene.says(bob, "x" * 9000)
    assert drains(bob) == f"[talking-stick] human:ann wrote to you in {scene.repo}: read it with `tt wait --json`"
    assert drains(bob) == ""


def test_acks_are_bound_to_their_agent(scene):
    bob, carl = grok(scene), scene.session("carl")
    scene.says(bob, "hello")
    token = envelope.tokens(drains(bob))[0]
    before = dump(scene.world.bus())
    carl.agent.tt("ack", token).failed("foreign_ack_token", 1)
    carl.agent.tt("ack", "0" * 24).failed("unknown_ack_token", 1)
    assert dump(scene.world.bus()) == before
    assert bob.unread()


def test_an_ack_leaves_other_open_wakes_as_they_are(scene):
    bob = scene.session()
    scene.says(bob, "first")
    bob.rewake_now()
    scene.says(bob, "now", "--interrupt")
    text = bob.rewake_now()
    assert bodies(text) == ["first", "now"]
    bob.agent.tt("ack", envelope.tokens(text)[0]).ok()
    assert bob.unread() == []


# --- sub-agents --------------------------------------------------------------------------


def transcript(scene, *records, kind="reviewer") -> str:
    path = scene.world.write(
        scene.world.top, "sub/agent-a1.jsonl", "".join(json.dumps(record) + "\n" for record in records)
    )
    if kind:
        scene.world.write(scene.world.top, "sub/agent-a1.meta.json", json.dumps({"agentType": kind}))
    return path


def said(message: str, tokens) -> dict:
    return {"type": "assistant", "message": {"id": message, "usage": {"output_tokens": tokens}}}


def samples(scene) -> list[tuple]:
    return [tuple(row) for row in scene.world.rows("SELECT agent, type, tokens FROM usage")]


def test_a_subagent_is_charged_once_per_message(scene):
    bob = scene.session()
    path = transcript(
        scene,
        said("m1", 3),
        said("m1", 7),  # one record for each block, the last one has the final figure
        said("m2", 10),
        {"type": "user", "message": {"id": "m2", "content": '"usage"'}},
        said("m3", "many"),
        said("m4", -5),
    )
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"usage": \n[]\n"usage"\n')
    run = bob.hook("subagent-stop", "SubagentStop", agent_id="a1", agent_type="x", agent_transcript_path=path)
    assert (run.code, run.out) == (0, "")
    assert samples(scene) == [(bob.id, "reviewer", 17)]
    other = transcript(scene, said("m1", 1), kind=None)
    os.remove(other.replace(".jsonl", ".meta.json"))
    bob.hook("subagent-stop", "SubagentStop", agent_id="a1", agent_type="explore", agent_transcript_path=other)
    assert samples(scene)[1:] == [(bob.id, "explore", 1)]


@pytest.mark.parametrize("path", ["", "/nowhere/x.jsonl", "/dev/null", "/"])
def test_a_transcript_that_cannot_be_read_costs_nothing(scene, path):
    bob = scene.session()
    run = bob.hook("subagent-stop", "SubagentStop", agent_id="a1", agent_transcript_path=path)
    assert (run.code, run.out, run.err) == (0, "", "")
    assert samples(scene) == []
