"""The kit itself: real ancestry, streams, deaths, and that nothing outlives a world."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys

import psutil
import pytest

from tests.kit.procs import gone, holding
from tests.kit.world import ROOT, World, store, wait_for

ENV = [sys.executable, "-I", "-c", "import json, os; print(json.dumps([os.getppid(), dict(os.environ)]))"]
FOREVER = [sys.executable, "-I", "-c", "import signal; print('{\"a\": 1}', flush=True); signal.pause()"]


@pytest.fixture
def made(tmp_path):
    world = World(tmp_path, limits={"GONE_GRACE": 300})
    yield world
    world.close()


def ancestry(pid: int) -> list[int]:
    return [process.pid for process in psutil.Process(pid).parents()]


def test_a_command_is_a_child_of_its_client(made):
    agent = made.agent("ann", made.repo())
    parent, env = agent.run(ENV).wait().ok().json
    assert parent == agent.client.pid
    assert psutil.Process(parent).name() == "claude"
    assert env["CLAUDE_PID"] == str(parent)
    assert env["TT_TEST_GONE_GRACE"] == "300"
    assert env["HOME"].startswith(made.top)


def test_a_person_has_no_ancestor_of_ours(made):
    person = made.person("bob", made.repo())
    _, env = person.run(ENV).wait().ok().json
    assert env["USER"] == "bob"
    assert not any(name.startswith(("CLAUDE", "CODEX")) for name in env)
    proc = person.run(FOREVER)
    assert proc.line() == {"a": 1}
    assert person.client.pid in ancestry(proc.pid)
    assert os.getpid() not in ancestry(proc.pid)


def test_a_death_leaves_commands_running_and_new_ones_possible(made):
    agent = made.agent("ann", made.repo(), harness="codex")
    proc = agent.run(FOREVER)
    proc.line()
    agent.die()
    assert gone(agent.client.pid)
    assert proc.running
    assert agent.run(ENV).wait().ok().json[0] == os.getpid()
    proc.kill()
    assert proc.wait().code is None


def test_exit_codes_signals_and_streams_arrive(made):
    agent = made.agent("ann", made.repo())
    code = 'import sys; sys.stderr.write(\'{"error": "x"}\\n\'); sys.stdout.write(sys.stdin.read()); sys.exit(1)'
    run = agent.run([sys.executable, "-c", code], input="1\n2\n" + "0\n" * 100_000).wait()
    assert (run.code, run.json[:2], len(run.json)) == (1, [1, 2], 100_002)
    assert run.failed("x").error == {"error": "x"}
    proc = agent.run(FOREVER)
    proc.line()
    proc.stop()
    proc.cont()
    proc.signal(signal.SIGTERM)
    assert proc.wait().code == -signal.SIGTERM


def test_a_child_that_keeps_the_streams_is_noticed(made):
    agent = made.agent("ann", made.repo())
    code = "import os, signal\nif os.fork() == 0: signal.pause()"
    with pytest.raises(AssertionError, match="kept our streams"):
        agent.run([sys.executable, "-c", code]).wait()


def test_nothing_outlives_a_world(tmp_path):
    world = World(tmp_path)
    agent = world.agent("ann", world.repo())
    agent.run(FOREVER).line()
    detached = "import os, signal\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  signal.pause()"
    agent.run([sys.executable, "-c", f"for n in 0, 1, 2: os = __import__('os'); os.close(n)\n{detached}"]).wait()
    wait_for(lambda: len(holding(world.data)) >= 3, what="the detached one")  # its second fork may be on its way
    world.close()
    assert not [pid for pid in holding(world.data) if not gone(pid)]


def test_worktrees_share_the_common_dir(made):
    repo = made.repo()
    for path in (made.worktree(repo, "one"), made.worktree(repo, "two", nested=True)):
        common = made.git(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
        assert common == os.path.join(repo, ".git")


def test_a_client_ends_with_the_test_run(tmp_path):
    """A killed pytest must not leave clients behind: the socket closes, the client and its children end."""
    code = (
        "import sys, json, os; sys.path.insert(0, sys.argv[1])\n"
        "from tests.kit.world import World\n"
        "a = World(sys.argv[2]).person('ann', sys.argv[2])\n"
        "p = a.run(['sleep', '60']); print(json.dumps([a.client.pid, p.pid]), flush=True); os._exit(0)"
    )

    words = [sys.executable, "-c", code, ROOT, str(tmp_path)]
    pids = json.loads(subprocess.run(words, capture_output=True, text=True, timeout=20).stdout)
    wait_for(lambda: all(gone(pid) for pid in pids))


def test_the_store_is_read_only_also_after_every_writer_died(made):
    bus_dir = os.path.join(made.data, "buses", "repo-1")
    os.makedirs(bus_dir)
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA journal_mode=WAL'); c.execute('CREATE TABLE t (a)')\n"
        "c.execute('INSERT INTO t VALUES (7)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, os.path.join(bus_dir, "bus.db")], check=True, timeout=20)
    assert made.bus_dirs() == [bus_dir]
    assert made.rows("SELECT a FROM t")[0]["a"] == 7
    with store(bus_dir) as con, pytest.raises(sqlite3.OperationalError, match="readonly"):
        con.execute("INSERT INTO t VALUES (8)")
