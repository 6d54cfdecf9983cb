"""Isolation: nothing in this suite can see or touch the developer's own world.

At the start of every pytest process (xdist workers too), before any test module is imported:
home, XDG and data directories become a scratch folder, the variables of harnesses, terminals
and git disappear, and sockets refuse to leave this machine. At the end the session fails if
the real data directory changed. `tests/meta/test_isolation.py` proves all of it.

Stands alone (imports nothing of ours), so that a scratch run can load it with `-p`.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import shutil
import socket
import tempfile

import pytest

# Anything that says "a harness, a terminal or a git command started me", or that is a credential.
FOREIGN = (
    "CLAUDE",
    "CODEX",
    "OPENCODE",
    "GROK",
    "GEMINI",
    "ANTIGRAVITY",
    "CMUX",
    "TT_",
    "HANDS_",
    "TALKING_STICK",
    "GIT_",
    "XDG_",
    "ITERM_",
    "KITTY_",
    "WEZTERM_",
    "TMUX",
    "ZELLIJ",
    "STY",
    "TERM_SESSION_ID",
    "TERM_PROGRAM",
    "WINDOWID",
    "AI_AGENT",
    "ANTHROPIC_",
    "OPENAI_",
    "XAI_",
    "GOOGLE_API_KEY",
)
KEPT = ("TT_TEST_CLIENTS",)  # told to this suite by whoever runs it: where the real clients are
REAL_HOME = "TESTS_REAL_HOME"  # the home before isolation, handed on to xdist workers

_scratch: list[str] = []


def foreign(name: str) -> bool:
    """Must this variable go?"""
    return name.startswith(FOREIGN) and name not in KEPT


def isolate(scratch: str) -> None:
    """Point this process and its children at a scratch folder."""
    os.environ.setdefault(REAL_HOME, os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    for name in [name for name in os.environ if foreign(name)]:
        del os.environ[name]
    places = {
        "HOME": "home",
        "XDG_DATA_HOME": "home/.local/share",
        "XDG_STATE_HOME": "home/.local/state",
        "XDG_CONFIG_HOME": "home/.config",
        "XDG_CACHE_HOME": "home/.cache",
        "TALKING_STICK_DATA_DIR": "data",
    }
    for name, below in places.items():
        os.environ[name] = os.path.join(scratch, below)
        os.makedirs(os.environ[name], mode=0o700, exist_ok=True)
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    os.environ["GIT_CONFIG_NOSYSTEM"] = "1"


def loopback(address: object) -> bool:
    """Is this a local socket, or a host on this machine?"""
    if not isinstance(address, tuple):
        return True  # the path of a Unix socket
    host = str(address[0])
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def close_network() -> None:
    """Refuse connections and name look-ups beyond this machine, by an error a test cannot overlook."""

    def guarded(real):
        def call(self, address):
            if not loopback(address):
                message = f"the test suite has no network: {address!r}"
                raise RuntimeError(message)
            return real(self, address)

        return call

    def looked_up(host, *arguments, **named):
        if host is not None and not loopback((os.fsdecode(host),)):
            message = f"the test suite has no network: {host!r}"
            raise RuntimeError(message)
        return real_look_up(host, *arguments, **named)

    real_look_up = socket.getaddrinfo
    socket.socket.connect = guarded(socket.socket.connect)  # type: ignore[method-assign]
    socket.socket.connect_ex = guarded(socket.socket.connect_ex)  # type: ignore[method-assign]
    socket.getaddrinfo = looked_up


def snapshot() -> dict[str, tuple[int, int]]:
    """Every file of the real data directories, by size and time of change."""
    homes = {os.environ[REAL_HOME], pwd.getpwuid(os.getuid()).pw_dir}
    seen = {}
    for home in homes:
        for folder, _, names in os.walk(os.path.join(home, ".local/share/talking-stick")):
            for path in [folder, *(os.path.join(folder, name) for name in names)]:
                try:
                    entry = os.lstat(path)
                except FileNotFoundError:
                    continue
                seen[path] = (entry.st_size, entry.st_mtime_ns)
    return seen


def pytest_configure(config) -> None:
    """Isolate before collection: modules read the environment when they are imported."""
    if not _scratch:
        _scratch.append(tempfile.mkdtemp(prefix="tt-tests-"))
        isolate(_scratch[0])
        close_network()


def pytest_unconfigure(config) -> None:
    """Leave nothing behind."""
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def isolation():
    """Fail the session if the real data directory changed while it ran. Gives the scratch folder."""
    before = snapshot()
    yield _scratch[0]
    after = snapshot()
    changed = sorted({path for path in before.keys() | after.keys() if before.get(path) != after.get(path)})
    if changed:
        pytest.fail(f"the real data directory changed during the tests: {changed[:10]}")
