"""One path for every command: nothing after the commit changes the code, no traceback gets out."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import types

import pytest

from bus.errors import BusError
from bus.operations.outcome import Outcome
from tt import crashlog, main, output, run, text

ARGS = {"json": False, "text": False, "verbose": False, "agent": None, "path": None, "command": "try"}
JSON = {**ARGS, "json": True}
TEXT = {**ARGS, "text": True}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Stream:
    """A stdout that may be a terminal, or closed."""

    def __init__(self, *, tty=False, closed=False):
        self.buffer = io.BytesIO()
        self.tty = tty
        if closed:
            self.buffer.close()

    def flush(self):
        pass

    def isatty(self):
        return self.tty

    def text(self):
        return self.buffer.getvalue().decode()


@pytest.fixture
def stdout(monkeypatch):
    def use(**kind):
        stream = Stream(**kind)
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    monkeypatch.setattr(output, "silence", lambda: None)
    for name in ("NO_COLOR", "TT_HARNESS_EXPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return use


@pytest.fixture
def path_of_a_command(monkeypatch, stdout):
    """Everything around one operation, faked, with the order of steps written down."""
    import bus.deliver
    from bus.operations import enter, receive

    steps = []
    ctx = types.SimpleNamespace(bus="bus", env={"HOME": "/"}, caller=None, close=lambda: steps.append("close"))

    def step(name):
        def done(*_args, **_named):
            steps.append(name)
            if name in broken:
                raise broken[name]
            return []

        return done

    broken: dict[str, Exception] = {}
    monkeypatch.setattr(enter, "enter", lambda *_a, **_k: ctx)
    monkeypatch.setattr(bus.deliver, "carry_out", step("wake"))
    monkeypatch.setattr(receive, "settle", step("mark"))
    monkeypatch.setattr(bus.deliver, "after_write", step("sweep"))
    monkeypatch.setattr(crashlog, "write", lambda *_a: "/some/log")
    outcome = Outcome({"status": "sent"})

    def operate(_ctx):
        step("operate")()
        return outcome

    return types.SimpleNamespace(steps=steps, broken=broken, operate=operate, stdout=stdout)


def test_the_path_of_a_command(path_of_a_command):
    stream = path_of_a_command.stdout()
    assert run.write(JSON, path_of_a_command.operate) == 0
    assert path_of_a_command.steps == ["operate", "wake", "mark", "sweep", "close"]
    assert json.loads(stream.text()) == {"status": "sent"}


@pytest.mark.parametrize("name", ["wake", "mark", "sweep"])
@pytest.mark.parametrize("error", [BusError("store_busy", "busy"), RuntimeError("odd"), OSError(28, "full")])
def test_after_the_commit_nothing_changes_the_exit_code(path_of_a_command, name, error, capsys):
    stream = path_of_a_command.stdout()
    path_of_a_command.broken[name] = error
    assert run.write(JSON, path_of_a_command.operate) == 0
    assert path_of_a_command.steps == ["operate", "wake", "mark", "sweep", "close"]
    assert json.loads(stream.text()) == {"status": "sent"}
    assert "could not" in capsys.readouterr().err


def test_what_was_not_printed_is_not_marked(path_of_a_command, capsys):
    path_of_a_command.stdout(closed=True)
    assert run.write(JSON, path_of_a_command.operate) == 0
    assert path_of_a_command.steps == ["operate", "wake", "sweep", "close"]
    assert "not_printed" in capsys.readouterr().err


def test_a_result_whose_text_fails_is_shown_as_json(path_of_a_command, monkeypatch, capsys):
    stream = path_of_a_command.stdout()
    monkeypatch.setattr(text, "render", lambda *_a: 1 / 0)
    assert run.write(TEXT, path_of_a_command.operate) == 0
    assert path_of_a_command.steps == ["operate", "wake", "mark", "sweep", "close"]
    assert json.loads(stream.text()) == {"status": "sent"}
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_refusal_does_nothing_more(path_of_a_command):
    path_of_a_command.stdout()
    path_of_a_command.broken["operate"] = BusError("store_busy", "busy")
    with pytest.raises(BusError):
        run.write(JSON, path_of_a_command.operate)
    assert path_of_a_command.steps == ["operate", "close"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_held_back_until_the_end(path_of_a_command, number):
    path_of_a_command.stdout()
    before = signal.getsignal(number)

    def operate(ctx):
        os.kill(os.getpid(), number)
        return path_of_a_command.operate(ctx)

    assert run.write(JSON, operate) == 0
    assert path_of_a_command.steps == ["operate", "wake", "mark", "sweep", "close"]
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run.Hold():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def in_a_process(code, tmp_path, *, stdout=subprocess.PIPE):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TALKING_STICK_DATA_DIR": str(tmp_path / "data"),
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": ROOT,
    }
    start = "import sys, signal, os\nfrom tt import main, output\n"
    return subprocess.run(
        [sys.executable, "-c", start + code],
        env=env,
        cwd=tmp_path,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
    )


BROKEN = """
def broken(*_args):
    raise {error}
main.invoke = broken
sys.exit(main.main(["msg", "send", "claude", "a secret", "--json", "--thread=hidden"]))
"""


def test_an_unexpected_error_is_one_line_and_a_log(tmp_path):
    done = in_a_process(BROKEN.format(error="RuntimeError('odd')"), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    shown = json.loads(line)
    assert shown["error"] == "cli_error"
    assert shown["log"] in shown["message"]
    assert os.stat(shown["log"]).st_mode & 0o777 == 0o600
    with open(shown["log"]) as file:
        log = file.read()
    assert "Traceback" in log
    assert "call: tt msg send <6 characters> <8 characters> --json --thread" in log
    assert "secret" not in log
    assert "hidden" not in log


def test_endless_recursion_is_a_bounded_log(tmp_path):
    code = BROKEN.format(error="RuntimeError('x' * 1_000_000)")
    shown = json.loads(in_a_process(code, tmp_path).stderr)
    assert os.path.getsize(shown["log"]) < crashlog.MOST_BYTES + 100


def test_logs_are_few(tmp_path, monkeypatch):
    monkeypatch.setattr(crashlog, "_directories", lambda: [str(tmp_path)])
    paths = [crashlog.write(["try"], ValueError("x")) for _ in range(crashlog.MOST_FILES + 3)]
    assert len(os.listdir(tmp_path)) == crashlog.MOST_FILES
    assert os.path.exists(paths[-1])


def test_a_log_that_can_be_written_nowhere_is_no_second_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(crashlog, "_directories", lambda: [str(tmp_path / "file" / "log")])
    assert crashlog.write(["try"], ValueError("x")) is None


def test_interrupted_is_130_without_a_trace(tmp_path):
    done = in_a_process(BROKEN.format(error="KeyboardInterrupt"), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_reader_that_went_away_is_no_error(tmp_path):
    read, write = os.pipe()
    os.close(read)
    code = "sys.exit(main.main(['schema', '--json']))"
    done = in_a_process(code, tmp_path, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_expected_errors_are_1_and_usage_is_2(monkeypatch, capsys):
    for code, exit_code in (("store_busy", 1), ("usage", 2)):

        def refuse(*_args, code=code):
            raise BusError(code, "no")

        monkeypatch.setattr(main, "invoke", refuse)
        assert main.main(["try", "--json"]) == exit_code
        assert json.loads(capsys.readouterr().err)["error"] == code
