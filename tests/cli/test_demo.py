"""`tt demo` for real: it tells the truth, whoever runs it, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.kit.procs import holding, wait_for
from tests.kit.world import ROOT
from tt import demo
from tt.demo_world import Failed

HANG = 30  # seconds; it takes about six

INSIDE_A_HARNESS = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SESSION_ID": "of-the-caller",
    "CODEX_THREAD_ID": "of-the-caller",
    "TT_STATION": "elsewhere",
    "GIT_DIR": "/nowhere",
    "TALKING_STICK_DATA_DIR": "/nowhere",
    "PYTHONPATH": ROOT,
}


@pytest.fixture
def start(tmp_path):
    """Start `tt demo` with a temp folder of its own; afterwards nothing of it is there any more."""
    temp = tmp_path / "temp"
    temp.mkdir()

    def run(*words, **env):
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(temp), "PYTHONPATH": ROOT}
        return subprocess.Popen(
            [sys.executable, "-m", "tt", "demo", *words],
            env=clean | env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    yield run
    assert os.listdir(temp) == []
    assert holding(str(temp)) == []


@pytest.mark.slow
def test_the_story_comes_true(start):
    demo_run = start("--text")
    out, err = demo_run.communicate(timeout=HANG)
    assert (demo_run.returncode, err) == (0, ""), out
    assert out.count("✓") == 14
    assert "✗" not in out
    assert "nobody polls" in out
    assert "10 s in earnest" in out
    assert max(map(len, out.splitlines())) <= 120
    assert "\x1b" not in out


@pytest.mark.slow
def test_as_one_object_also_inside_a_harness(start):
    demo_run = start(**INSIDE_A_HARNESS)
    out, err = demo_run.communicate(timeout=HANG)
    assert (demo_run.returncode, err) == (0, ""), out
    told = json.loads(out)
    assert told["status"] == "ok"
    assert all(step["ok"] and step["detail"] for step in told["steps"])
    assert [set(step) for step in told["steps"]] == [{"step", "ok", "ms", "detail"}] * 14
    assert sum(step["ms"] is not None for step in told["steps"]) == 5


def test_without_git_it_says_so_and_fails(start, tmp_path):
    demo_run = start("--json", PATH=str(tmp_path))
    out, _ = demo_run.communicate(timeout=HANG)
    told = json.loads(out)
    assert demo_run.returncode == 1
    assert told["status"] == "failed"
    first, last = told["steps"]
    assert (first["ok"], first["detail"]) == (False, "git is not on the PATH")
    assert last["ok"]


@pytest.mark.slow
def test_a_command_that_dies_in_the_middle_ends_the_story(start):
    demo_run = start("--text", TT_TEST_CRASH="after_grant_commit")
    out, _ = demo_run.communicate(timeout=HANG)
    assert demo_run.returncode == 1
    assert "✗ ann runs `tt try`" in out
    assert "Failed after 4 checked steps" in out


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_it_still_cleans_up(start, tmp_path, number):
    demo_run = start("--text")
    heard = ""
    while "blocks" not in heard:  # commands, a guardian and a blocked wait are there by now
        line = demo_run.stdout.readline()
        assert line, heard
        heard += line
    demo_run.send_signal(number)
    out, err = demo_run.communicate(timeout=HANG)
    assert demo_run.returncode == 128 + number
    assert "nothing is left behind" in out
    assert "Traceback" not in err


@pytest.mark.slow
def test_killed_it_takes_its_processes_along(start, tmp_path):
    demo_run = start("--text")
    heard = ""
    while "guarded by" not in heard:
        heard += demo_run.stdout.readline()
    demo_run.kill()
    demo_run.communicate(timeout=HANG)
    (scratch,) = (tmp_path / "temp").iterdir()
    wait_for(lambda: not holding(str(scratch)), HANG, "the end of its clients and guardian")
    subprocess.run(["rm", "-r", scratch], check=True)  # only a folder is left, which nobody could remove


def test_a_step_that_finds_something_else_fails():
    told = demo.Telling({"json": True, "text": False})
    assert not told.one("a step", lambda: demo.must([], "it is not so", {"seen": 1}))
    assert told.steps == [{"step": "a step", "ok": False, "ms": None, "detail": "it is not so: {'seen': 1}"}]


def test_the_first_failure_ends_the_story():
    told = demo.Telling({"json": True, "text": False})

    def fail():
        raise Failed("no")

    told.all([("heading", None), ("one", lambda: demo.Found("good")), ("two", fail), ("three", fail)])
    assert [(step["step"], step["ok"]) for step in told.steps] == [("one", True), ("two", False)]
