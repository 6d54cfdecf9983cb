"""Nobody is blocked by accident: whatever a hook is given or finds, it exits 0, silently and soon."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time

import pytest

from bus.store import schema
from tests.hooks.kit import RUN, SLOW, Session, command, dump, shell
from tests.kit.world import ROOT, tt_command, wait_for

HOOKS = ("publish", "subagent-stop", "board", "stop-guard", "rewake", "inbox", "session")
EVENTS = {
    "publish": "Stop",
    "subagent-stop": "SubagentStop",
    "board": "UserPromptSubmit",
    "stop-guard": "Stop",
    "rewake": "Stop",
    "inbox": "PostToolUse",
    "session": "SessionStart",
}
# Also where hooks for it may be slow: a machine that is busy with other tests.
BUDGET = 5.0
ALONE = {"CLAUDE_CODE_SESSION_ATTENDED": "0"}  # a rewake that would block returns


def silent(run, began: float | None = None) -> None:
    assert (run.code, run.out, run.err) == (0, "", ""), repr(run)
    if began is not None:
        assert time.monotonic() - began < BUDGET, repr(run)


def every(session, data: bytes | None = None, *, env=None, words=(), hooks=HOOKS) -> None:
    """Run all hooks at once; each must be silent."""
    began = time.monotonic()
    procs = []
    for name in hooks:
        raw = json.dumps(payload(session, name)).encode() if data is None else data
        procs.append(session.agent.run(command(name, "--harness", "claude", *words), env=env, input=raw))
    for proc in procs:
        silent(proc.wait(), began)


def payload(session, name: str) -> dict:
    more = {"prompt": "hello", "source": "startup", "tool_name": "Bash", "stop_hook_active": False}
    return session.payload(EVENTS[name], **more)


@pytest.fixture
def bob(scene):
    """A session with a turn, mail and presence: there is much that a hook could do."""
    made = scene.session()
    made.agent.tt("join").ok()
    made.agent.tt("wait", "--claim", "--timeout", "5s").ok()
    return made


GARBAGE = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"{",
    b"\x00" * 1000,
    b"\xff\xfe{}",
    b"[" * 200_000,
    b'{"a":' * 50_000,
    b'{"hook_event_name": "Nope"}',
    b'{"hook_event_name": 7, "session_id": [], "cwd": {}}',
    b'{"hook_event_name": "Stop", "session_id": "x", "cwd": "/nowhere/at/all"}',
    b'{"hook_event_name": "Stop", "session_id": "x", "cwd": "a\\u0000b"}',
    b'{"hook_event_name": "Stop", "session_id": "\\ud800", "cwd": "/\\ud800"}',
    b'{"hook_event_name": "Stop", "cwd": "/dev/null"}',
    b'{"hook_event_name": "Stop", "n": ' + b"9" * 10_000 + b"}",
]


def test_garbage(scene, bob):
    before = dump(scene.world.bus())
    for data in GARBAGE:
        every(bob, data, env=ALONE, hooks=HOOKS if SLOW else HOOKS[GARBAGE.index(data) % 7 :: 3])
    assert dump(scene.world.bus()) == before


def test_ten_megabytes(scene, bob):
    before = dump(scene.world.bus())
    big = json.dumps(bob.payload("Stop", prompt="x" * 10_000_000)).encode()
    every(bob, big)
    assert dump(scene.world.bus()) == before


@pytest.mark.parametrize("name", HOOKS)
def test_truncated_payloads(scene, bob, name):
    data = json.dumps(payload(bob, name)).encode()
    cuts = range(len(data)) if SLOW else sorted({0, 1, len(data) // 3, len(data) - 1})
    before = dump(scene.world.bus())
    argv = command(name, "--harness", "claude")
    for start in range(0, len(cuts), 8):
        procs = [bob.agent.run(argv, input=data[:cut]) for cut in cuts[start : start + 8]]
        for proc in procs:
            silent(proc.wait())
    assert dump(scene.world.bus()) == before


def test_a_stdin_that_hangs(scene, bob):
    """Whoever starts a hook may never close its stdin."""
    code = (
        "import os, subprocess, sys, time\n"
        "r, w = os.pipe(); began = time.monotonic()\n"
        "data = sys.argv[1].encode(); os.write(w, data)\n"
        "procs = [subprocess.Popen(words.split('\\x1f'), stdin=r) for words in sys.argv[2:]]\n"
        "codes = [proc.wait() for proc in procs]\n"
        "print(codes, time.monotonic() - began)\n"
    )
    lines = ["\x1f".join(command(name, "--harness", "claude")) for name in HOOKS]
    for data in ("", '{"hook_event_name": "Stop", '):
        run = bob.agent.run([sys.executable, "-c", code, data, *lines]).wait()
        codes, seconds = run.out.rsplit(" ", 1)
        assert codes == str([0] * len(HOOKS)), repr(run)
        assert float(seconds) < 1.5 + len(HOOKS) * 0.3, seconds  # they run side by side on few cores
        assert run.err == ""


def test_closed_streams(bob):
    for closed in ("0<&-", "1>&-", "0<&- 1>&- 2>&-"):
        for name in HOOKS:
            argv = command(name, "--harness", "claude")
            run = bob.agent.run(
                ["/bin/sh", "-c", f'exec {closed}; exec "$@"', "sh", *argv], env=ALONE, input=b"{}"
            ).wait()
            silent(run)


@pytest.mark.parametrize(
    "words", [("--frobnicate",), ("--harness",), ("--help",), ("a", "b", "c"), ("--x=y", "--"), ("-h",)]
)
def test_options_that_it_does_not_know(bob, words):
    bob.agent.tt("release", "--status", "x", "--next-action", "y").ok()
    hooks = [name for name in HOOKS if name not in ("session", "board")]
    every(bob, env=ALONE, words=words, hooks=hooks)


@pytest.mark.parametrize("name", ["", "nope", "../run", "__init__", "entry", "--help", "wire", "-"])
def test_hooks_that_it_does_not_know(bob, name):
    silent(bob.agent.run(command(name), input=json.dumps(bob.payload("Stop"))).wait())
    if name != "--help":  # a person asks for help
        silent(bob.agent.run([*tt_command(), "hook", name], input=json.dumps(bob.payload("Stop"))).wait())


def test_tt_hook_is_a_thin_door(bob):
    data = json.dumps(bob.payload("Stop"))
    run = bob.agent.run([*tt_command(), "hook", "stop-guard", "--harness", "claude", "--frobnicate"], input=data).wait()
    assert (run.code, run.out) == (2, "")
    assert bob.id in run.err
    silent(bob.agent.run([*tt_command(), "hook"], input=data).wait())


def test_a_missing_data_directory(world):
    bob = Session(world, "bob", world.repo())
    os.rmdir(world.data)
    every(bob)
    assert not os.path.exists(world.data)
    every(bob, env={"TALKING_STICK_DATA_DIR": "relative/path"})
    every(bob, env={"HOME": None, "TALKING_STICK_DATA_DIR": None, "USER": None})


def removed(directory) -> bool:
    shutil.rmtree(directory, ignore_errors=True)
    return not os.path.exists(directory)


def test_a_bus_that_is_gone(scene, bob):
    bus = scene.world.bus()
    # A guardian may ring there while it is being removed.
    wait_for(lambda: removed(bus), what="the end of the bus")
    every(bob)
    assert scene.world.bus_dirs() == []


def test_a_directory_that_is_gone(scene, bob):
    gone = scene.world.folder("gone")
    argv = ["/bin/sh", "-c", f'cd {gone} && rmdir {gone} && exec "$@"', "sh"]
    for name in HOOKS:
        data = {**payload(bob, name), "cwd": ""}
        silent(bob.agent.run([*argv, *command(name)], input=json.dumps(data), cwd=scene.repo).wait())
        os.makedirs(gone)


@pytest.mark.parametrize("how", ["writer", "exclusive"])
def test_a_locked_store(scene, bob, how):
    """Another program holds the database: a hook gives up within its 250 ms."""
    bob.agent.tt("release", "--status", "x", "--next-action", "y").ok()
    bus = scene.world.bus()
    bob.submit()
    bob.pretend()
    before = dump(bus)
    scene.world.write(scene.repo, "new.txt", "something to publish")
    con = sqlite3.connect(os.path.join(bus, "bus.db"), isolation_level=None, timeout=5)
    if how == "exclusive":
        con.execute("PRAGMA locking_mode = EXCLUSIVE")
    con.execute("BEGIN IMMEDIATE")
    con.execute("UPDATE rooms SET active_at = active_at")
    try:
        every(bob, env=ALONE, hooks=[name for name in HOOKS if name != "session"])
        if how == "exclusive":
            bob.held.release()
            every(bob, hooks=["session", "rewake"])
    finally:
        con.execute("ROLLBACK")
        con.close()
    assert dump(bus) == before


def version(bus: str, number: int) -> None:
    con = sqlite3.connect(os.path.join(bus, "bus.db"))
    con.execute(f"PRAGMA user_version = {number}")
    con.commit()
    con.close()


def test_a_newer_and_an_unknown_schema(scene, bob):
    bus = scene.world.bus()
    for number in (schema.VERSION + 1, 10_000):
        version(bus, number)
        before = dump(bus)
        every(bob)
        assert dump(bus) == before
    version(bus, schema.VERSION)


@pytest.mark.parametrize("damage", ["text", "zeros", "empty", "header", "directory"])
def test_a_corrupt_store(scene, bob, damage):
    room = scene.world.rows("SELECT guardian_pid FROM rooms WHERE owner = ?", bob.id)[0]
    os.kill(room["guardian_pid"], 9)  # else it would write its log over our damage
    bus = scene.world.bus()
    path = os.path.join(bus, "bus.db")
    with open(path, "rb") as file:
        head = file.read(100)
    for name in os.listdir(bus):
        if name.startswith("bus.db"):
            os.remove(os.path.join(bus, name))
    data = {
        "text": b"this is no database\n" * 100,
        "zeros": b"\0" * 8192,
        "empty": b"",
        "header": head + os.urandom(8000),
    }.get(damage)
    if data is None:
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(data)
    every(bob)
    shutil.rmtree(bus)


def test_a_read_only_data_directory(scene, bob):
    bob.agent.tt("release", "--status", "x", "--next-action", "y").ok()
    prefix: list[str] = []
    if os.getuid() == 0:  # the superuser may write anywhere, unless it gives that up
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("as root this needs setpriv (util-linux)")
        prefix = [setpriv, "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all"]
    before = dump(scene.world.bus())
    folders = [folder for folder, _, _ in os.walk(scene.world.data)]
    files = [os.path.join(folder, name) for folder, _, names in os.walk(scene.world.data) for name in names]
    for path in filter(os.path.exists, files):
        os.chmod(path, 0o400)
    for folder in folders:
        os.chmod(folder, 0o500)
    try:
        for name in HOOKS:
            argv = [*prefix, *command(name, "--harness", "claude")]
            run = bob.agent.run(argv, env=ALONE, input=json.dumps(payload(bob, name))).wait()
            assert run.code == 0, repr(run)
            assert run.err == ""
            assert run.out == "" or name == "board"
    finally:
        for folder in folders:
            os.chmod(folder, 0o700)
        for path in filter(os.path.exists, files):  # the last guardian took the log with it
            os.chmod(path, 0o600)
    assert dump(scene.world.bus()) == before


@pytest.mark.parametrize("missing", ["everything", "entry", "a module", "bus"])
def test_a_package_that_is_removed_or_half_installed(scene, bob, tmp_path, missing):
    """Python itself exits 2 when its program is missing, and 2 blocks prompts and tools."""
    copy = tmp_path / "copy"
    for name in ("bus", "hooks"):
        shutil.copytree(os.path.join(ROOT, name), copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    run = str(copy / "hooks" / "run.py")
    data = json.dumps(bob.payload("Stop"))
    assert bob.agent.run(shell("stop-guard", "--harness", "claude", run=run), input=data).wait().code == 2
    if missing == "everything":
        shutil.rmtree(copy)
    elif missing == "bus":
        shutil.rmtree(copy / "bus")
    else:
        (copy / "hooks" / ("entry.py" if missing == "entry" else "stop_guard.py")).unlink()
    for name in ("stop-guard",) if missing == "a module" else HOOKS:
        silent(bob.agent.run(shell(name, "--harness", "claude", run=run), input=json.dumps(payload(bob, name))).wait())


def test_what_went_wrong_is_one_bounded_line_in_the_log(scene, bob):
    bus = scene.world.bus()
    version(bus, 10_000)
    for _ in range(2):
        every(bob, hooks=["stop-guard"])
    version(bus, schema.VERSION)
    path = os.path.join(scene.world.data, "hooks.log")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert len(lines) == 2
    assert all(" stop-guard BusError: " in line and len(line.encode()) <= 500 for line in lines)
    with open(path, "a", encoding="utf-8") as file:
        file.write("x" * 100_000)
    version(bus, 10_000)
    every(bob, hooks=["stop-guard"])
    version(bus, schema.VERSION)
    assert os.path.getsize(path) < 1000
    assert os.stat(path).st_mode & 0o077 == 0


def test_a_hook_loads_little(bob):
    """Heavy modules would cost every prompt of every session."""
    code = (
        f"import sys; sys.argv = [{RUN!r}, 'board', '--harness', 'claude']\n"
        "import os; real = os._exit\n"
        "told = lambda: (sys.__stderr__.write(' '.join(sys.modules)), sys.__stderr__.flush())\n"
        "os._exit = lambda code: (told(), real(code))\n"
        f"exec(compile(open({RUN!r}).read(), {RUN!r}, 'exec'), {{'__file__': {RUN!r}, '__name__': '__main__'}})\n"
    )
    data = json.dumps(bob.payload("UserPromptSubmit", prompt="x"))
    run = bob.agent.run([sys.executable, "-I", "-S", "-W", "ignore", "-c", code], input=data).wait()
    loaded = set(run.err.split())
    assert "hooks.board" in loaded, repr(run)
    heavy = {"watchdog", "psutil", "filelock", "click", "orjson", "prompt_toolkit", "subprocess", "logging", "pathlib"}
    assert not loaded & (heavy | {"dataclasses", "typing", "uuid", "tempfile", "shutil", "asyncio", "threading"})
