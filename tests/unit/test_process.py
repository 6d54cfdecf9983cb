"""Anchors, liveness, ancestry and exit watches, on real processes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading

import pytest

from bus import host, process

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINUX = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
NOBODY = 65534


@pytest.fixture
def child():
    """A process that waits until it is killed or its stdin ends."""
    started = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield started
    started.kill()
    started.communicate()


@pytest.fixture
def zombie():
    """A dead child that nobody has collected yet."""
    started = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    started.kill()
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    yield started
    started.communicate()


def run(code: str, **options) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": ROOT}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, timeout=20, **options
    )


def parts(anchor: str) -> list[str]:
    return anchor.split("/")


def with_host(anchor: str, machine=None, boot=None, namespace=None) -> str:
    """The anchor as another machine, boot or namespace would have written it."""
    where, pid, start = parts(anchor)
    old = where.split(".")
    new = [given or kept for given, kept in zip((machine, boot, namespace), old, strict=True)]
    return "/".join((".".join(new), pid, start))


def test_host_is_short_stable_and_shows_no_raw_machine_id():
    assert process.host() == process.host()
    assert "/" not in process.host()
    assert len(process.host().split(".")) == 3
    assert len(process.host()) < 60
    assert process.host().startswith(process.machine())
    raw = host.read("/etc/machine-id").decode().strip()
    assert not raw or raw[:10] not in process.host()
    if os.path.exists("/proc/self/ns/pid"):
        assert process.host() == run("from bus import process; print(process.host())").stdout.strip()


def test_anchor_of_a_living_process(child):
    anchor = process.anchor(child.pid)
    assert anchor is not None
    assert process.liveness(anchor) == "alive"
    assert process.anchor_pid(anchor) == child.pid
    assert process.anchor(child.pid) == anchor
    assert process.anchor_start(anchor) == parts(anchor)[2]
    assert process.join_anchor(child.pid, parts(anchor)[2]) == anchor


def test_killed_and_collected_is_gone(child):
    anchor = process.anchor(child.pid)
    child.kill()
    child.wait()
    assert process.liveness(anchor) == "gone"
    assert process.anchor(child.pid) is None
    assert process.look(child.pid) is None


def test_zombie_is_gone(zombie):
    anchor = process.join_anchor(zombie.pid, "1")
    assert process.liveness(anchor) == "gone"
    assert process.anchor(zombie.pid) is None
    assert process.look(zombie.pid) is None


@LINUX
def test_zombie_with_its_own_start_is_gone(child):
    anchor = process.anchor(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.liveness(anchor) == "gone"


@LINUX
@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="needs the number of exit")
def test_leader_that_left_its_threads_running_is_alive():
    number = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
    code = (
        "import ctypes, os, sys, threading\n"
        "def rest():\n"
        "    while b') Z' not in open('/proc/%d/stat' % os.getpid(), 'rb').read(): pass\n"
        "    os.write(1, b'left\\n'); os.read(0, 1); os._exit(0)\n"
        "threading.Thread(target=rest).start()\n"
        f"ctypes.CDLL(None).syscall({number}, 0)\n"
    )
    started = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        anchor = process.anchor(started.pid)
        assert started.stdout.readline() == b"left\n"
        assert process.liveness(anchor) == "alive"
        with process.ExitWatch(started.pid, parts(anchor)[2]) as watch:
            assert not watch.gone
    finally:
        started.kill()
        started.communicate()
    assert process.liveness(anchor) == "gone"


@LINUX
def test_reused_pid_is_gone_by_another_exact_start(child):
    where, pid, start = parts(process.anchor(child.pid))
    assert process.liveness(f"{where}/{pid}/{int(start) + 1}") == "gone"


def test_another_inexact_or_unreadable_start_proves_nothing(child):
    where, pid, _ = parts(process.anchor(child.pid))
    for start in ("~1700000000", "-", "Mon Jan  1", "x", "²"):
        assert process.liveness(f"{where}/{pid}/{start}") == "unknown"


def test_inexact_start_of_a_dead_process_is_gone_all_the_same(child):
    where, pid, _ = parts(process.anchor(child.pid))
    child.kill()
    child.wait()
    assert process.liveness(f"{where}/{pid}/~1700000000") == "gone"


@LINUX
def test_another_boot_of_the_same_machine_is_gone(child, monkeypatch):
    monkeypatch.setitem(host._cached, "host", "0123456789.aaaaaaaaaaaa.4026531836")
    anchor = process.anchor(child.pid)
    assert process.liveness(anchor) == "alive"
    assert process.liveness(with_host(anchor, boot="bbbbbbbbbbbb")) == "gone"


@pytest.mark.parametrize(
    "change",
    [
        {"machine": "ffffffffff"},
        {"namespace": "7"},
        {"machine": "ffffffffff", "boot": "bbbbbbbbbbbb"},
        {"boot": "bbbbbbbbbbbb", "namespace": "7"},
        {"boot": "-"},
        {"namespace": "-"},
        {"machine": "h123456789", "boot": "bbbbbbbbbbbb"},
    ],
)
def test_other_machine_or_namespace_or_missing_part_is_unknown(change, child, monkeypatch):
    monkeypatch.setitem(host._cached, "host", "0123456789.aaaaaaaaaaaa.4026531836")
    anchor = with_host(process.anchor(child.pid), **change)
    assert process.liveness(anchor) == "unknown"
    assert process.anchor_pid(anchor) is None


def test_a_host_name_proves_no_reboot(child, monkeypatch):
    monkeypatch.setitem(host._cached, "host", "h123456789.aaaaaaaaaaaa.4026531836")
    assert process.liveness(with_host(process.anchor(child.pid), boot="bbbbbbbbbbbb")) == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "//",
        "/1/2",
        "H/0/1",
        "H/-1/1",
        "H/x/1",
        "H/²/1",
        "H/1",
        "H/1/2/3",
        "H/99999999999/1",
        "H/4294967297/1",
    ],
)
def test_malformed_anchor_is_unknown_and_signals_nobody(text, monkeypatch):
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("probed"))
    text = text.replace("H", process.host())
    assert process.liveness(text) == "unknown"
    assert process.anchor_pid(text) is None
    assert process.anchor_start(text) is None


@pytest.mark.parametrize("pid", [0, -1, 1 << 31, 1 << 40])
def test_numbers_that_are_no_pid(pid):
    assert process.anchor(pid) is None
    assert process.look(pid) is None
    assert process.parent(pid) is None
    with pytest.raises(ProcessLookupError):
        process.ExitWatch(pid)


@LINUX
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to become somebody else")
def test_process_of_another_user_is_alive(child):
    anchor = process.anchor(child.pid)
    code = (
        "import os, sys; from bus import process\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        f"try: os.kill({child.pid}, 0)\n"
        "except PermissionError: print('EPERM')\n"
        f"print(process.liveness({anchor!r}), process.look({child.pid}).exe == '')"
    )
    assert run(code).stdout.split() == ["EPERM", "alive", "True"]


def test_eperm_with_an_unreadable_start_is_alive(child, monkeypatch):
    anchor = process.anchor(child.pid)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(process, "_start", lambda _: "-")
    assert process.liveness(anchor) == "alive"


@LINUX
def test_eperm_on_a_reused_pid_is_gone(child, monkeypatch):
    where, pid, start = parts(process.anchor(child.pid))

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert process.liveness(f"{where}/{pid}/{int(start) + 1}") == "gone"


def test_foreign_proc_proves_no_reused_pid(child, monkeypatch):
    where, pid, start = parts(process.anchor(child.pid))
    monkeypatch.setitem(host._cached, "proc", "foreign")
    assert process.liveness(f"{where}/{pid}/1{start}") == "unknown"
    assert parts(process.anchor(child.pid))[2] == "-"
    assert process.look(child.pid) is None
    assert process.ancestry(os.getpid()) == []


@LINUX
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root for a pid namespace")
def test_pid_namespace_without_its_own_proc():
    code = (
        "from bus import host, process; import os\n"
        "print(os.getpid(), host.proc_usable(), process.anchor(1).rsplit('/', 1)[1], process.host())"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": ROOT}
    command = ["unshare", "--pid", "--fork", sys.executable, "-S", "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20)
    if done.returncode:
        pytest.skip(done.stderr)
    pid, usable, start, where = done.stdout.split()
    assert (pid, usable, start) == ("1", "False", "-")
    assert where != process.host()


def test_without_proc_psutil_answers(child, zombie, monkeypatch):
    monkeypatch.setitem(host._cached, "proc", "")
    anchor = process.anchor(child.pid)
    assert parts(anchor)[2].startswith("~")
    assert process.liveness(anchor) == "alive"
    assert process.liveness(anchor + "9") == "unknown"
    assert process.liveness(process.join_anchor(zombie.pid, "~1")) == "gone"
    seen = process.look(child.pid)
    assert (seen.ppid, seen.argv[-1]) == (os.getpid(), "input()")
    assert process.parent(child.pid) == os.getpid()
    assert [one.pid for one in process.ancestry(child.pid)][:1] == [os.getpid()]
    child.kill()
    child.wait()
    assert process.liveness(anchor) == "gone"


def test_look_and_ancestry(child):
    seen = process.look(child.pid)
    assert seen.pid == child.pid
    assert seen.argv0 == sys.executable
    assert seen.argv[1:] == ("-I", "-S", "-c", "input()")
    assert os.path.basename(seen.exe).startswith("python")
    assert seen.session == os.getsid(child.pid)
    assert process.parent(child.pid) == os.getpid()
    above = process.ancestry(child.pid)
    assert [one.pid for one in above][:2] == [os.getpid(), os.getppid()]
    assert len(above) <= process.ANCESTORS
    assert process.parent(above[-1].pid) is None or len(above) == process.ANCESTORS
    assert [one.pid for one in process.ancestry(os.getpid())] == [one.pid for one in above[1:]]


@LINUX
def test_name_with_spaces_and_parentheses(tmp_path):
    program = tmp_path / "a) (Z 1"
    program.symlink_to(sys.executable)
    with subprocess.Popen([program, "-I", "-S", "-c", "print(flush=True); input()"], stdin=-1, stdout=-1) as started:
        started.stdout.readline()
        seen = process.look(started.pid)
        assert (seen.name, seen.ppid) == ("a) (Z 1", os.getpid())
        assert process.liveness(process.anchor(started.pid)) == "alive"
        started.stdin.close()


def test_ancestry_ends_where_processes_loop(monkeypatch):
    monkeypatch.setattr(process, "parent", lambda _: 5)
    monkeypatch.setattr(process, "look", lambda pid: process.Proc(pid, 11 - pid, "x"))
    assert [one.pid for one in process.ancestry(7)] == [5, 6]
    monkeypatch.setattr(process, "look", lambda pid: process.Proc(pid, pid + 1, "x"))
    assert len(process.ancestry(1)) == process.ANCESTORS


def readable(watch, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    return bool(poll.poll(timeout_ms))


@pytest.mark.parametrize("pidfd", [True, False])
def test_watch_sees_a_kill(pidfd, child, monkeypatch):
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    watch = process.ExitWatch(child.pid)
    assert (watch.gone, readable(watch, 0)) == (False, False)
    child.kill()
    assert (readable(watch, 10_000), watch.gone) == (True, True)
    watch.close()
    assert watch.gone


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfds")
def test_watch_leaves_a_child_to_its_parent(child):
    with process.ExitWatch(child.pid) as watch:
        child.kill()
        assert readable(watch, 10_000)
    assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize("pidfd", [True, False])
def test_watch_of_somebody_elses_child_that_dies_unwatched(pidfd, monkeypatch):
    code = "import subprocess; p = subprocess.Popen(['sleep', '100'])\nprint(p.pid, flush=True); p.wait(); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as started:
        pid = int(started.stdout.readline())
        if not pidfd:
            monkeypatch.delattr(os, "pidfd_open", raising=False)
        with process.ExitWatch(pid, process.anchor_start(process.anchor(pid))) as watch:
            os.kill(pid, signal.SIGKILL)
            assert readable(watch, 10_000)
        started.stdin.close()


@pytest.mark.parametrize("pidfd", [True, False])
def test_watch_of_the_dead_is_refused(pidfd, child, zombie, monkeypatch):
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    child.kill()
    child.wait()
    for pid in (child.pid, zombie.pid):
        with pytest.raises(ProcessLookupError):
            process.ExitWatch(pid)


@LINUX
def test_watch_of_a_reused_pid_is_refused_and_leaks_nothing(child):
    start = process.anchor_start(process.anchor(child.pid))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ProcessLookupError):
        process.ExitWatch(child.pid, str(int(start) + 1))
    assert len(os.listdir("/proc/self/fd")) == before
    with process.ExitWatch(child.pid, "~1") as watch:
        assert not watch.gone
    with process.ExitWatch(child.pid, start) as watch:
        assert not watch.gone


@LINUX
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfds")
def test_watch_of_a_thread_number_is_refused():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with pytest.raises(ProcessLookupError):
            process.ExitWatch(thread.native_id)
    finally:
        end.set()
        thread.join()


def test_closed_watch(child):
    watch = process.ExitWatch(child.pid)
    watch.close()
    watch.close()
    assert not watch.gone
    with pytest.raises(ValueError, match="closed"):
        watch.fileno()


def test_import_stays_small():
    code = (
        "import sys; before = set(sys.modules); from bus import process, identity\n"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = set(run(code).stdout.split())
    heavy = {"typing", "dataclasses", "pathlib", "enum", "re", "logging", "subprocess", "uuid", "tempfile"}
    assert not loaded & (heavy | {"shutil", "contextlib", "psutil", "ctypes", "threading", "json", "socket", "pwd"})
