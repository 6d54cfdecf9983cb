"""Help is everywhere and acts on nothing; what isn't understood is a usage error with exit 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tt import table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEVELS = [(), *((group,) for group in table.GROUPS), *(command.words for command in table.COMMANDS)]


@pytest.fixture
def tt(tmp_path):
    data = tmp_path / "data"
    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    work.mkdir()

    def run(*argv, **env):
        clean = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "TALKING_STICK_DATA_DIR": str(data),
            "PYTHONPATH": ROOT,
            "PYTHONDONTWRITEBYTECODE": "1",
            **env,
        }
        command = [sys.executable, "-m", "tt", *argv]
        done = subprocess.run(
            command, env=clean, cwd=work, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
        )
        assert "Traceback" not in done.stdout + done.stderr
        assert not data.exists()
        assert os.listdir(work) == []
        assert os.listdir(tmp_path / "home") == []
        return done

    return run


@pytest.mark.parametrize("words", LEVELS, ids=" ".join)
def test_every_level_has_help_with_an_example(tt, words):
    done = tt(*words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: tt " + " ".join(words))
    assert "Example:\n" in done.stdout
    example = done.stdout.partition("Example:\n")[2]
    assert "tt" in example
    assert max(len(line) for line in done.stdout.splitlines()) <= 100


def test_short_help_is_the_same(tt):
    assert tt("wait", "-h").stdout == tt("wait", "--help").stdout
    assert tt("-h").stdout == tt("--help").stdout


def test_help_wins_over_everything_that_would_act(tt):
    for argv in (
        ["join", "--force-new", "--help"],
        ["release", "--help", "--status", "x"],
        ["try", "--json", "-h"],
    ):
        done = tt(*argv)
        assert (done.returncode, done.stderr) == (0, "")


def test_root_help_names_every_command_and_loads_none(tt):
    shown = tt("--help").stdout
    for command in table.COMMANDS:
        assert command.words[0] in shown
    code = "import sys\nfrom tt.main import main\nmain(['--help'])\nprint(*sys.modules)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=30)
    modules = done.stdout.splitlines()[-1].split()
    assert "click" in modules
    assert not [name for name in modules if name.startswith(("tt.commands", "bus.operations", "monitor"))]


def test_version(tt):
    from tt import __version__

    assert tt("--version").stdout == f"tt {__version__}\n"


WRONG = [
    ["nonsense"],
    ["wiat"],
    ["msg"],
    ["msg", "snd"],
    [],
    ["wait", "--bogus"],
    ["wait", "-x"],
    ["wait", "--timeout"],
    ["wait", "--park=yes"],
    ["try", "a", "b"],
    ["try", "--", "a", "b"],
    ["health", "surplus"],
    ["msg", "send"],
    ["msg", "reply"],
    ["kick"],
    ["release", "--path", "."],
    ["--path", ".", "pass"],
    ["assign"],
    ["completion", "tcsh"],
    ["completion"],
    ["config", "set", "key"],
    ["--bogus"],
    ["events", "--wait", "--follow"],
    ["whoami", "--explain=1"],
]


@pytest.mark.parametrize("argv", WRONG, ids=" ".join)
def test_misuse_is_a_usage_error_in_text(tt, argv):
    done = tt("--text", *argv)
    assert (done.returncode, done.stdout) == (2, "")
    first, *rest = done.stderr.splitlines()
    assert first.startswith("tt: ")
    assert all(line.startswith("hint: tt") for line in rest)
    assert rest


@pytest.mark.parametrize("argv", WRONG, ids=" ".join)
def test_misuse_is_an_object_in_json(tt, argv):
    for done in (tt("--json", *argv), tt(*argv, TT_HARNESS_EXPORT="1")):
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        shown = json.loads(line)
        assert shown["error"] == "usage"
        assert shown["message"]
        assert shown["hint"].startswith("tt")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["wait", "--timeout", "soon"], "invalid_input"),
        (["wait", "--park", "--claim"], "invalid_wait_mode"),
        (["try", "--after", "x"], "invalid_cursor"),
        (["standby", "--wake", "x"], "invalid_standby_transport"),
        (["msg", "send", "room"], "invalid_body"),
        (["msg", "send", "room", "a", "--stdin"], "invalid_body"),
        (["release"], "invalid_handoff"),
        (["release", "--stdin"], "invalid_handoff"),
        (["schema", "nonsense"], "invalid_input"),
    ],
)
def test_bad_values_are_errors_with_their_own_code(tt, argv, code):
    pytest.importorskip("bus.operations.turns")
    pytest.importorskip("bus.operations.messages")
    done = tt(*argv, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"] == code


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(tt, shell):
    done = tt("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_TT_COMPLETE" in done.stdout


def test_completion_offers_words_options_and_choices_and_acts_on_nothing(tt):
    def offered(line):
        words = line.split(" ")
        env = {"_TT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        return [entry.split(",")[1] for entry in tt(**env).stdout.splitlines()]

    assert "wait" in offered("tt w")
    assert offered("tt msg s") == ["send"]
    assert "--timeout" in offered("tt wait --t")
    assert offered("tt standby --wake m") == ["manual"]


def test_schema_describes_all_and_one(tt):
    whole = json.loads(tt("schema", "--json").stdout)
    assert whole["status"] == "schema"
    assert "your_turn" in whole["commands"]["wait"]
    one = json.loads(tt("schema", "msg", "send", "--json").stdout)
    assert list(one["commands"]) == ["msg send"]
    assert tt("schema", "--text").returncode == 0
