"""What holds with the real clients before any hook is installed; and that the rig itself is sound."""

from __future__ import annotations

import os
import time

import pytest

from tests.clients import stories
from tests.clients.model import bash, hold, say, shell
from tests.kit.procs import gone, wait_for
from tests.processes.stories import guardians, owner


def pid_of(answer) -> int:
    return int(answer["process_metadata"]["anchor"].split("/")[1])


def test_a_headless_run_shows_the_scripted_answer(claude, model):
    done = claude.headless(model.script("hello", say("words of the script"))).ok()
    assert done.out.strip() == "words of the script"
    assert model.count() == 1
    print(f"{done.seconds:.2f} s")


@pytest.mark.parametrize("bypass", [False, True])
def test_an_interactive_session_answers_compacts_clears_and_exits(claude, model, world, bypass):
    claude.interactive(bypass=bypass)
    assert claude.registered()["messagingSocketPath"].startswith(world.top)
    first = claude.session
    assert "one prompt" in claude.ask("one prompt").new_text
    claude.compact()
    assert claude.session == first
    claude.clear()
    assert claude.session != first
    assert "another prompt" in claude.ask("another prompt").new_text
    assert "one prompt" not in model.mains()[-1].text
    claude.exit()


def test_a_held_answer_keeps_the_turn_open(claude, model):
    claude.interactive(bypass=True)
    claude.type(model.script("slow", [hold("go"), say("at last")]))
    model.wait_count(1)
    wait_for(lambda: claude.status == "busy", what="a busy client")
    model.let("go")
    claude.terminal.wait("at last")


def test_claudes_commands_are_that_session_and_its_process(claude, model):
    prompt = model.script("join", bash("tt join --json"), bash("tt whoami --json"), say("done"))
    proc = claude.headless_started(prompt, bypass=True)
    proc.wait(60).ok()
    join, who = model.mains()[1].json, model.mains()[2].json
    assert join["status"] == "joined"
    assert who["agent_id"] == join["agent_id"]
    assert who["agent_id"].startswith("claude:")
    assert who["person"] is False
    assert who["process_metadata"]["verified"] is True
    assert pid_of(who) == proc.pid


def test_a_background_wait_wakes_the_idle_session_once(claude, model, world, project):
    claude.settings(permissions=stories.ALLOW)
    claude.interactive()
    me = stories.joins(claude)
    project.busy()
    taken = []
    for number in range(3):
        output = stories.output_file(world, stories.waits(claude))
        before = model.count()
        sent = stories.sends(project.bob, me, f"hello number {number}")
        assert (sent["delivery_status"], sent["delivery_transport"]) == ("receiver", "wait")
        wake = model.wait_next(before)
        taken.append(stories.woken_after(sent, wake))
        assert output in wake.new_text
        assert "completed (exit code 0)" in wake.new_text
        assert f"hello number {number}" in stories.read(output)
        assert stories.unread(world, me) == []
        model.quiet(1)
        assert model.count() == before + 1
    assert stories.waits(claude)
    claude.exit()
    wait_for(lambda: not stories.listener(world), 5, "the end of the wait")
    stories.told("commit → turn by a background wait", taken)


def test_the_end_of_the_client_ends_its_wait_and_marks_nothing(claude, world, project):
    claude.interactive(bypass=True)
    me = stories.joins(claude)
    project.busy()
    waiting = stories.waits(claude)
    print(f"status while a background command runs: {claude.status}")
    output = stories.output_file(world, waiting)
    claude.kill9()
    wait_for(lambda: gone(waiting), 5, "the end of the wait")
    assert stories.read(output) == ""
    sent = stories.sends(project.bob, me, "anybody there?")
    assert stories.unread(world, me) == [sent["event_seq"]]


def test_a_guardian_outlives_the_tool_call_and_gives_the_turn_back_after_the_client(claude, world):
    world.limit(GONE_GRACE=1500)
    claude.interactive(bypass=True)
    me = stories.joins(claude, "tt try --json")
    assert owner(world) == me
    (guardian,) = guardians(world)
    claude.ask("another turn")
    assert guardians(world) == [guardian]
    claude.kill9()
    began = time.monotonic()
    wait_for(lambda: owner(world) is None, 8, "a surrendered turn")
    print(f"surrendered {time.monotonic() - began:.2f} s after the client's end, with a grace of 1.5 s")
    wait_for(lambda: gone(guardian), 2, "the end of the guardian")
    print(world.rows("SELECT type FROM events ORDER BY seq")[-1]["type"])


def test_codex_commands_are_that_thread(codex, model):
    prompt = model.script("who", shell("tt join --json"), shell("tt whoami --json"), say("done"))
    codex.exec(prompt).ok()
    join, who = model.mains()[1].json, model.mains()[2].json
    print(who)
    assert join["status"] == "joined"
    assert who["agent_id"] == join["agent_id"]
    assert who["agent_id"].startswith("codex:")
    assert who["person"] is False
    assert len(codex.threads()) == 1


def test_codex_started_inside_claude_is_codex(claude, codex, model):
    inner = model.script("inner", shell("env | grep -c ^CLAUDE; tt whoami --json"), say("inner done"))
    outer = model.script("outer", bash("tt whoami --json"), bash(codex.exec_line(inner)), say("outer done"))
    claude.headless(outer).ok()
    asked = [request for request in model.mains() if request.path.endswith("/responses")]
    who = asked[1].json
    variables = next(line for line in asked[1].results[0].splitlines() if line.isdigit())
    assert int(variables) > 3
    assert who["agent_id"].startswith("codex:")
    assert who["person"] is False
    assert model.mains()[1].json["agent_id"].startswith("claude:")


def test_codexs_tui_takes_queued_text_and_its_daemon_can_be_ended(codex, model):
    codex.tui()
    codex.ask("hello")
    (thread,) = codex.threads()
    before = model.count()
    queued = codex.queue(thread, "queued words").ok()
    took = model.wait_text("queued words", after=before)
    print(f"codex queue: {queued.seconds * 1000:.0f} ms")
    assert took.number
    assert codex.daemons()
    codex.quit()
    assert codex.daemons()
    codex.stop_daemon()
    assert not codex.daemons()


def test_the_network_is_closed_to_the_clients(claude, codex, model):
    ask = "curl -sS -m 5 http://192.0.2.1/ 2>&1; curl -sS -m 5 http://example.org/ 2>&1; echo over"
    claude.headless(model.script("net", bash(ask), say("done"))).ok()
    refused = model.mains()[1].results[0]
    if "not found" in refused:
        pytest.skip("curl is not installed")
    assert refused.count("127.0.0.1") == 2, refused
    assert os.path.isdir(claude.config)
