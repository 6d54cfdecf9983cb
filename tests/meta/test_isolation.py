"""The guard of tests/kit/guard.py, seen from inside a run and around whole scratch runs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.kit import guard
from tests.kit.world import ROOT

DIRT = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SESSION_ID": "real",
    "CODEX_THREAD_ID": "real",
    "OPENCODE": "1",
    "GROK_SESSION_ID": "real",
    "GEMINI_CLI": "1",
    "ANTIGRAVITY_AGENT": "1",
    "CMUX_TAB_ID": "1",
    "TT_STATION": "real",
    "HANDS_ID": "real",
    "ITERM_SESSION_ID": "1",
    "KITTY_WINDOW_ID": "1",
    "WEZTERM_PANE": "1",
    "TMUX_PANE": "1",
    "STY": "1",
    "GIT_DIR": "/real",
    "XDG_RUNTIME_DIR": "/real",
    "TALKING_STICK_DATA_DIR": "/real",
}


def scratch_run(tmp_path, body: str):
    """Run one scratch test under the guard, in a dirty environment; its home stands for the real one."""
    home = tmp_path / "real"
    (home / ".local/share/talking-stick").mkdir(parents=True)
    test = tmp_path / "run" / "test_scratch.py"
    test.parent.mkdir()
    test.write_text(f"import os, socket\nREAL = {str(home)!r}\ndef test_it(tmp_path):\n    {body}\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": ROOT, **DIRT}
    words = ["-m", "pytest", "-q", "-p", "tests.kit.guard", "-p", "no:cacheprovider", "-c", os.devnull, test]
    return subprocess.run(
        [sys.executable, *words], cwd=test.parent, env=env, capture_output=True, text=True, timeout=50
    )


def test_home_and_data_are_scratch(isolation):
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TALKING_STICK_DATA_DIR"):
        assert os.environ[name].startswith(isolation), name
    assert os.path.expanduser("~").startswith(isolation)


def test_no_foreign_variable_is_left():
    ours = {"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TALKING_STICK_DATA_DIR"}
    ours |= {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}
    assert {name for name in os.environ if guard.foreign(name)} == ours
    assert all(guard.foreign(name) for name in DIRT)


@pytest.mark.parametrize("address", [("192.0.2.1", 9), ("example.org", 80), ("2001:db8::1", 9, 0, 0)])
def test_connections_off_this_machine_are_refused(address):
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(RuntimeError, match="no network"):
        sock.connect(address)


def test_connections_on_this_machine_work():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def test_names_are_not_looked_up():
    with pytest.raises(RuntimeError, match="no network"):
        socket.getaddrinfo("example.org", 80)


def test_a_dirty_environment_is_cleaned(tmp_path):
    names = sorted(set(DIRT) - {"TALKING_STICK_DATA_DIR"})
    run = scratch_run(tmp_path, f"assert not [n for n in {names!r} if n in os.environ], os.environ")
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_test_that_touches_the_real_data_fails_the_session(tmp_path):
    run = scratch_run(tmp_path, "open(REAL + '/.local/share/talking-stick/x', 'w').close()")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "the real data directory changed" in run.stdout


def test_a_harmless_test_passes_under_the_guard(tmp_path):
    run = scratch_run(tmp_path, "open(os.path.expanduser('~/x'), 'w').close()")
    assert run.returncode == 0, run.stdout + run.stderr
