"""SessionStart and SessionEnd: one agent per client process, also across `/clear`; tombstones; presence."""

from __future__ import annotations

import json
import os

import pytest

from bus.store import db
from tests.hooks.kit import HANDOFF, Session, context, dump
from tests.kit.world import wait_for


def test_a_session_is_told_in_two_lines_how_the_bus_works(scene):
    bob = scene.session(begin=False)
    text = context(bob.begin().ok())
    assert text.count("\n") == 1
    assert bob.id in text
    assert "wakes this session by itself" in text
    assert bob.row()["anchor"].split("/")[1] == str(bob.agent.client.pid)


def test_an_unattended_session_is_not_promised_a_wake(scene):
    bob = scene.session(begin=False)
    text = context(bob.hook("session", "SessionStart", source="startup", env={"CLAUDE_CODE_SESSION_ATTENDED": "0"}))
    assert "Nothing wakes this session" in text


def test_a_session_with_presence_is_reached_by_id_without_joining(scene):
    bob = scene.session()
    scene.says(bob, "hello")
    assert not scene.world.rows("SELECT 1 FROM members WHERE agent = ? AND room > 0", bob.id)
    assert "hello" in bob.submit()


def test_hooks_join_no_room_and_make_no_bus(world):
    repo = world.repo()
    bob = Session(world, "bob", repo)
    for name, event in (("session", "SessionStart"), ("publish", "Stop"), ("board", "UserPromptSubmit")):
        assert bob.hook(name, event, source="startup", prompt="x").ok().out == ""
    assert bob.hook("rewake", "SessionStart", source="startup").ok().err == ""
    assert os.listdir(world.data) == []


@pytest.mark.parametrize("source", ["startup", "resume", "compact", "something-new"])
def test_the_same_session_keeps_its_agent(scene, source):
    bob = scene.session()
    before = bob.row()
    bob.begin(source).ok()
    after = bob.row()
    assert (after["id"], after["generation"]) == (before["id"], before["generation"])


def test_clear_keeps_the_agent_and_voids_what_it_was_woken_for(scene):
    bob = scene.session()
    agent = bob.id
    rewake = bob.rewake("SessionStart", source="startup")
    scene.says(bob, "read me")
    assert "read me" in rewake.wait().err
    assert bob.unread()
    old = bob.key
    bob.clear()
    assert (bob.id, bob.row()["generation"]) == (agent, 2)
    states = {row["key"]: row["state"] for row in scene.world.rows("SELECT * FROM sessions")}
    assert (states[f"harness:{old}"], states[f"harness:{bob.key}"]) == ("cleared", "live")
    assert "read me" in bob.rewake_now()


def test_clear_surrenders_the_turn_with_a_recovery_handoff(scene):
    bob, carl = scene.session(), scene.session("carl")
    for one in (bob, carl):
        one.agent.tt("join").ok()
    bob.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    waiting = carl.agent.start("wait")
    wait_for(lambda: carl.armed("wait"), what="a wait")
    bob.clear()
    result = waiting.wait().ok().json
    assert result["status"] == "your_turn"
    assert result["handoff"]["recovery"]["agent_id"] == bob.id
    assert result["handoff"]["recovery"]["reason"] == "cleared"
    assert bob.agent.tt("release", *HANDOFF).code == 1


def test_both_hooks_of_a_clear_at_once_find_one_agent(scene):
    """`session`, `publish` and `rewake` of one SessionStart run side by side."""
    for _ in range(3):
        bob = scene.session("bob")
        agent = bob.id
        bob.end("clear")
        bob.key = bob.key[:-4] + "beef"
        bob.agent.env["CLAUDE_CODE_SESSION_ID"] = bob.key
        names = ("rewake", "publish", "session", "publish")
        procs = [bob.start(name, "SessionStart", source="clear") for name in names]
        for name, proc in zip(names, procs, strict=True):
            if name != "rewake":
                proc.wait().ok()
        assert (bob.id, bob.row()["generation"]) == (agent, 2)
        live = scene.world.rows("SELECT key FROM sessions WHERE agent = ? AND state = 'live'", agent)
        assert [row["key"] for row in live] == [f"harness:{bob.key}"]
        procs[0].kill()


@pytest.mark.parametrize("first", ["publish", "rewake"])
def test_whichever_hook_of_a_clear_is_first_keeps_the_agent(scene, first):
    bob = scene.session()
    agent = bob.id
    bob.end("clear")
    bob.key = bob.key[:-4] + "beef"
    bob.agent.env["CLAUDE_CODE_SESSION_ID"] = bob.key
    proc = bob.rewake("SessionStart", source="clear") if first == "rewake" else None
    if proc is None:
        bob.hook("publish", "SessionStart", source="clear").ok()
    bob.begin("clear").ok()
    assert (bob.id, bob.row()["generation"]) == (agent, 2)


def test_a_name_given_in_the_same_client_is_not_the_predecessor(scene):
    bob = scene.session()
    agent = bob.id
    bob.agent.tt("msg", "send", "--agent", "claude:other", "bus", "hi").ok()
    bob.clear()
    assert bob.id == agent


def test_a_session_that_ended_answers_no_late_command(scene):
    bob = scene.session()
    bob.agent.tt("join").ok()
    assert bob.end("prompt_input_exit").ok().out == ""
    assert bob.row()["ended_at"]
    left = scene.world.rows("SELECT left_why FROM members WHERE agent = ? AND room > 0", bob.id)
    assert [row["left_why"] for row in left] == ["session_ended"]
    bob.agent.tt("inbox").failed("session_ended", 1)
    for name, event in (("publish", "Stop"), ("board", "UserPromptSubmit"), ("rewake", "Stop")):
        assert bob.hook(name, event, prompt="x").ok().out == ""
    assert bob.row()["ended_at"]


def test_a_publish_that_is_overtaken_by_the_end_revives_nothing(scene):
    """Stop's publish is async: it looks at git while the user leaves."""
    bob = scene.session()
    slow = scene.world.folder("bin")
    scene.world.write(slow, "git", '#!/bin/sh\nsleep 1\nexec /usr/bin/git "$@"\n')
    os.chmod(os.path.join(slow, "git"), 0o755)
    late = bob.start("publish", "Stop", env={"PATH": f"{slow}:{bob.agent.env['PATH']}"})
    wait_for(lambda: os.listdir(f"/proc/{late.pid}/task") and _has_child(late.pid), what="its git")
    bob.end().ok()
    late.wait().ok()
    assert bob.row()["ended_at"]
    bob.agent.tt("inbox").failed("session_ended", 1)


def _has_child(pid: int) -> bool:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return bool(file.read().split())


def test_resume_lifts_the_tombstone_and_the_mail_is_due_again(scene):
    bob = scene.session()
    agent = bob.id
    rewake = bob.rewake()
    scene.says(bob, "offered, never seen")
    rewake.wait()
    bob.end().ok()
    bob.begin("resume").ok()
    assert (bob.id, bob.row()["ended_at"], bob.row()["generation"]) == (agent, None, 2)
    assert "offered, never seen" in bob.rewake_now()
    assert bob.agent.tt("inbox").ok().json["events"][0]["text"] == "offered, never seen"


def test_a_resume_after_a_killed_client_offers_the_mail_again(scene):
    bob = scene.session()
    rewake = bob.rewake()
    scene.says(bob, "nobody saw this")
    rewake.wait()
    bob.agent.die()
    again = Session(scene.world, "bob again", scene.repo)
    again.take_over(bob)
    again.begin("resume").ok()
    assert (again.id, again.row()["generation"]) == (bob.id, 2)
    assert "nobody saw this" in again.rewake_now()


def test_a_stale_endpoint_does_not_outlive_its_process(scene):
    bob = scene.session(CMUX_SURFACE_ID="surface:9")
    assert "surface:9" in bob.row()["endpoints"]
    bob.agent.die()
    again = Session(scene.world, "bob again", scene.repo)
    again.take_over(bob)
    again.begin("resume").ok()
    assert again.row()["endpoints"] is None


def test_two_terminals_never_share_an_agent(scene):
    bob = scene.session()
    twin = Session(scene.world, "twin", scene.repo)
    twin.take_over(bob)
    twin.begin("resume").ok()
    ids = {row["id"] for row in scene.world.rows("SELECT id FROM agents WHERE kind = 'harness'")}
    assert len(ids) == 2


def test_the_end_of_another_process_ends_nothing(scene):
    bob = scene.session()
    stranger = Session(scene.world, "stranger", scene.repo)
    stranger.take_over(bob)
    before = dump(scene.world.bus())
    stranger.end().ok()
    assert dump(scene.world.bus()) == before


def test_clear_at_the_end_changes_nothing(scene):
    bob = scene.session()
    before = dump(scene.world.bus())
    assert bob.end("clear").ok().out == ""
    assert dump(scene.world.bus()) == before


def test_a_turn_held_at_the_end_goes_on(scene):
    bob = scene.session()
    bob.agent.tt("join").ok()
    bob.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    bob.end().ok()
    room = scene.world.rows("SELECT * FROM rooms WHERE id > 0")[0]
    assert (room["state"], room["owner"]) == ("idle", None)
    found = scene.world.rows("SELECT body FROM events WHERE type = 'handoff' ORDER BY seq DESC LIMIT 1")[0]
    assert json.loads(found["body"])["handoff"]["recovery"]["reason"] == "session_ended"


@pytest.mark.parametrize("how", ["end", "clear"])
def test_who_can_be_woken_is_told_of_the_turn(scene, how):
    """A peer that only a rewake reaches never looks by itself: the turn of a session that quit lay there for ever."""
    bob, eve = scene.session("bob"), scene.session("eve")
    for one in (bob, eve):
        one.agent.tt("join").ok()
    eve.pretend()
    with db.open_bus(scene.world.bus()) as bus:  # the person looked long ago: it is not waited for
        bus.con.execute("UPDATE agents SET last_seen = last_seen - 600000 WHERE kind = 'person'")
    bob.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    if how == "end":
        bob.end().ok()
    else:
        bob.clear()
    room = scene.world.rows("SELECT * FROM rooms WHERE id > 0")[0]
    assert (room["state"], room["reserved_for"]) == ("reserved", eve.id)
    found = scene.world.rows("SELECT seq FROM mail WHERE box = ? AND wake = 2 AND received_at IS NULL", eve.id)
    assert len(found) == 1


def test_a_compaction_leaves_an_open_turn_open(scene):
    bob = scene.session()
    bob.submit()
    bob.begin("compact").ok()
    assert bob.mark() == "open"
    bob.begin("startup").ok()  # a second hook of the same start comes late
    assert bob.mark() == "open"


def test_grok_sessions_are_recorded_once(scene):
    ann = Session(scene.world, "grok", scene.repo, harness="grok")
    for event in ("SessionStart", "UserPromptSubmit", "UserPromptSubmit"):
        run = ann.hook("session", event, source="startup", env={"GROK_HOOK_EVENT": "session_start"}).ok()
        assert run.out == ""
    with open(os.path.join(scene.world.data, "grok-sessions.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [line["session_id"] for line in lines] == [ann.key]


def test_grok_running_claudes_settings_records_nothing(scene):
    bob = Session(scene.world, "grok", scene.repo)
    before = dump(scene.world.bus())
    for name in ("session", "publish", "board", "rewake", "stop-guard", "inbox", "subagent-stop"):
        for event in ("SessionStart", "Stop", "UserPromptSubmit"):
            run = bob.hook(name, event, source="startup", prompt="x", env={"GROK_HOOK_EVENT": "stop"})
            assert (run.code, run.out, run.err) == (0, "", "")
    assert dump(scene.world.bus()) == before
