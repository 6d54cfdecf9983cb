"""Lock files: real processes hold, probe and die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bus import locks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOLD = """
import sys
from bus import locks
mine = locks.hold(sys.argv[1])
print(bool(mine), flush=True)
sys.stdin.read()
"""
PROBE = """
import sys, time
from bus import locks
print("go", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    locks.held(sys.argv[1])
"""
TAKE = """
import sys, time
from bus import locks
print("go", flush=True)
taken = failed = 0
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    got = locks.hold(sys.argv[1])
    if got: taken += 1; got.release()
    else: failed += 1
print(taken, failed)
"""
RACE = """
import sys
from bus import locks
print("go", flush=True)
sys.stdin.readline()
print(bool(locks.hold(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def take(path):
    """Hold a lock that must be free."""
    mine = locks.hold(str(path))
    assert mine
    return mine


@pytest.fixture
def start():
    """Start `python -c code arguments`; afterwards none of them runs."""
    children = []

    def run(code, *arguments, **options):
        child = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": ROOT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()
        child.communicate()


def test_hold_and_release(tmp_path):
    path = str(tmp_path / "locks" / "agent" / "wait")
    assert not locks.held(path)
    first = locks.hold(path)
    assert first
    assert locks.held(path)
    assert locks.hold(path) is None
    first.release()
    first.release()
    assert not locks.held(path)
    with take(path):
        assert locks.held(path)
    assert not locks.held(path)
    assert os.path.exists(path)


def test_files_are_private_all_the_way_down(tmp_path):
    old = os.umask(0)
    try:
        with take(tmp_path / "a" / "b" / "c"):
            pass
    finally:
        os.umask(old)
    modes = [os.stat(tmp_path / name).st_mode & 0o777 for name in ("a", "a/b", "a/b/c")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_probe_makes_nothing(tmp_path):
    assert not locks.held(str(tmp_path / "none" / "wait"))
    (tmp_path / "file").touch()
    assert not locks.held(str(tmp_path / "file" / "wait"))
    assert sorted(os.listdir(tmp_path)) == ["file"]


def test_what_cannot_be_found_out_counts_as_held(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "open", refuse)
    assert locks.held(str(tmp_path / "x"))


def test_no_directory_can_be_made_there(tmp_path):
    with pytest.raises(OSError, match="none"):
        locks.make_private("/proc/none/deep/er")
    with pytest.raises(FileNotFoundError):
        locks.make_private("")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        locks.make_private(str(tmp_path / "file"))
    locks.make_private(str(tmp_path / "x" / "y") + "/")
    locks.make_private(str(tmp_path / "x" / "y"))


def test_hold_says_why_it_cannot_make_the_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        locks.hold(str(tmp_path / "file" / "wait"))


def test_a_bare_name_is_a_file_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with take("bare"):
        assert locks.held("bare")


def test_kill_frees_it_at_once(tmp_path, start):
    path = str(tmp_path / "lock")
    holder = start(HOLD, path)
    assert holder.stdout.readline() == "True\n"
    assert locks.held(path)
    assert locks.hold(path) is None
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not locks.held(path)
    take(path).release()


def test_a_stopped_holder_still_holds(tmp_path, start):
    path = str(tmp_path / "lock")
    holder = start(HOLD, path)
    holder.stdout.readline()
    holder.send_signal(signal.SIGSTOP)
    assert locks.held(path)
    assert locks.hold(path) is None


def test_a_real_holder_is_told_at_once(tmp_path):
    path = str(tmp_path / "lock")
    with take(path):
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            assert locks.hold(path) is None
            times.append(time.perf_counter() - begin)
    assert min(times) < locks._PATIENCE / 1000 / 10


def test_probers_in_the_way_for_too_long_count_as_a_holder(tmp_path, monkeypatch):
    import fcntl

    monkeypatch.setattr(locks, "_PATIENCE", 20)
    path = str(tmp_path / "lock")
    take(path).release()
    stuck = os.open(path, os.O_RDONLY)
    fcntl.flock(stuck, fcntl.LOCK_SH)
    assert locks.hold(path) is None
    os.close(stuck)
    take(path).release()


def test_probers_never_make_hold_fail(tmp_path, start):
    path = str(tmp_path / "lock")
    probers = [start(PROBE, path, "2") for _ in range(4)]
    for prober in probers:
        prober.stdout.readline()
    taker = start(TAKE, path, "1.5")
    taker.stdout.readline()
    taken, failed = map(int, taker.stdout.readline().split())
    assert failed == 0
    assert taken > 10


def test_a_held_lock_is_seen_by_every_probe(tmp_path, start):
    path = str(tmp_path / "lock")
    with take(path):
        prober = start(PROBE, path, "0.5")
        prober.stdout.readline()
        answers = {locks.held(path) for _ in range(5000)}
    assert answers == {True}


def test_of_many_takers_exactly_one_wins(tmp_path, start):
    for turn in range(5):
        path = str(tmp_path / f"lock{turn}" / "x")
        takers = [start(RACE, path) for _ in range(6)]
        for taker in takers:
            taker.stdout.readline()
        for taker in takers:
            taker.stdin.write("\n")
            taker.stdin.flush()
        answers = [taker.stdout.readline() for taker in takers]
        assert sorted(answers) == ["False\n"] * 5 + ["True\n"]
        for taker in takers:
            taker.kill()
            taker.wait()


def test_it_goes_across_exec_only_where_asked(tmp_path, start):
    code = (
        "import os, sys; from bus import locks\n"
        "h = locks.hold(sys.argv[1], inheritable=sys.argv[2] == 'yes')\n"
        "os.execvp('sh', ['sh', '-c', 'echo there; read line'])"
    )
    for answer in ("yes", "no"):
        path = str(tmp_path / answer)
        child = start(code, path, answer)
        assert child.stdout.readline() == "there\n"
        assert locks.held(path) is (answer == "yes")
        child.kill()
        child.wait()
        assert not locks.held(path)


def test_release_frees_it_even_where_a_child_has_the_descriptor(tmp_path, start):
    path = str(tmp_path / "lock")
    mine = take(path)
    child = start("print('up', flush=True); input()", pass_fds=(mine.fd,))
    child.stdout.readline()
    mine.release()
    assert not locks.held(path)


def test_a_lock_file_replaced_in_between_gives_no_second_life(tmp_path, monkeypatch):
    path = str(tmp_path / "lock")
    real = locks._take
    replaced: list[bool] = []

    def take_late(fd, give_up):
        if not replaced:  # another process removed the directory just before
            os.unlink(path)
            replaced.append(True)
        return real(fd, give_up)

    monkeypatch.setattr(locks, "_take", take_late)
    with take(path) as mine:
        assert os.stat(path).st_ino == os.fstat(mine.fd).st_ino
        assert locks.held(path)


def test_nothing_leaks(tmp_path):
    path = str(tmp_path / "lock")
    before = len(os.listdir("/proc/self/fd"))
    with take(path):
        for _ in range(20):
            assert locks.hold(path) is None
            assert locks.held(path)
    assert len(os.listdir("/proc/self/fd")) == before
