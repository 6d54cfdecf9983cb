"""Sessions that end under a blocked wait, hooks that are reached by odd paths, submissions from odd terminals."""

from __future__ import annotations

import json
import os
import sys

from bus.deliver import native
from tests.kit.world import ROOT, wait_for

THREAD = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"


def test_a_wait_of_a_session_that_ended_joins_nobody_again(scene):
    """An old listener once brought an ended session back."""
    bob, carl = scene.session(), scene.session("carl")
    for one in (carl, bob):
        one.agent.tt("join").ok()
    carl.agent.tt("try").ok()
    bob.agent.tt("inbox").ok()
    wait = bob.agent.start("wait")
    wait_for(lambda: bob.armed("wait"), what="a wait")
    bob.end().ok()
    run = wait.wait()
    assert (run.code, run.out) == (1, "")
    assert run.error["error"] in ("unknown_member", "session_ended")
    (left,) = scene.world.rows("SELECT left_why FROM members WHERE agent = ? AND room > 0", bob.id)
    assert left["left_why"] == "session_ended"
    assert bob.row()["ended_at"]
    bob.agent.tt("wait", "--timeout", "1s").failed("session_ended", 1)
    assert bob.row()["ended_at"]


def test_a_hook_works_through_a_link_and_a_path_with_blanks(scene):
    """A server whose entry check compared texts ended at once, without a word."""
    bob = scene.session(begin=False)
    place = os.path.join(scene.world.folder("with a blank"), "our package")
    os.symlink(ROOT, place)
    argv = [sys.executable, "-I", "-S", os.path.join(place, "hooks", "run.py"), "session", "--harness", "claude"]
    run = bob.agent.run(argv, input=json.dumps(bob.payload("SessionStart", source="startup"))).wait().ok()
    assert bob.id in run.out


def test_a_submission_to_codex_meets_no_wrapper_of_the_terminal(tmp_path, monkeypatch):
    """The wrapper put hooks of its own into the call, and every wake failed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "codex"
    program.write_text(f"#!/bin/sh\nenv >{tmp_path}/env\n")
    program.chmod(0o755)
    path = f"{folder}:/usr/bin:/bin"
    for name, value in (("PATH", path), ("CMUX_SURFACE_ID", "surface:1"), ("CMUX_SOCKET_PATH", "/s"), ("KEPT", "1")):
        monkeypatch.setenv(name, value)
    assert native.codex(THREAD, "hello") == ("sent", None)
    told = (tmp_path / "env").read_text().splitlines()
    assert f"PATH={path}" in told
    assert "KEPT=1" in told
    assert not [line for line in told if line.startswith("CMUX_")]
