"""Bells: real processes sleep and are woken."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from bus import bell, clock, datadir, limits
from bus.bell import Ears, ring

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLEEPER = """
import os, sys
from bus.bell import Ears
ears = Ears(sys.argv[1:])
ears.arm()
print(ears.fallback, flush=True)
while True:
    print(sorted(ears.wait()), flush=True)
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def soon(seconds=20):
    """A deadline that only a failure reaches."""
    return clock.now() + seconds * 1000


def at_once():
    return clock.now()


@pytest.fixture
def start():
    """Start `python -c code arguments`; afterwards none of them runs."""
    children = []

    def run(code, *arguments):
        child = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": ROOT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def ears():
    """Make armed ears; afterwards they are closed."""
    made = []

    def make(*directories, **options):
        one = Ears(map(str, directories), **options)
        made.append(one)
        one.arm()
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture
def poll_fast(monkeypatch):
    monkeypatch.setattr(limits, "FALLBACK_POLL", 20)


def later(action, *arguments):
    """Do it from another thread, shortly."""
    timer = threading.Timer(0.05, action, arguments)
    timer.daemon = True
    timer.start()
    return timer


def switches(pid):
    """How often any thread of the process was put on or off a processor."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as status:
            total += sum(int(row.split()[1]) for row in status if "ctxt_switches" in row)
    return total


def settled(pid):
    """Wait until the process sleeps; the count of its switches then."""
    before = -1
    while (now := switches(pid)) != before:
        before = now
        time.sleep(0.3)
    return now


# --- ring ------------------------------------------------------------------------------


def test_ring_makes_a_private_bell_and_keeps_it_small(tmp_path):
    old = os.umask(0)
    try:
        for _ in range(10):
            assert ring(str(tmp_path / "bell" / "agent"))
    finally:
        os.umask(old)
    assert os.path.getsize(tmp_path / "bell" / "agent" / "n") == 1
    modes = [os.stat(tmp_path / name).st_mode & 0o777 for name in ("bell", "bell/agent", "bell/agent/n")]
    assert modes == [0o700, 0o700, 0o600]


def test_ring_never_raises(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "n").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "n")
    for bad in ("file", "file/x", "taken", "pipe", "a\0b", "x" * 300, "\ud800"):
        assert not ring(str(tmp_path) + "/" + bad)
    assert not ring("")
    assert not ring("/proc/none/bell")


def test_a_ring_is_one_write(tmp_path, monkeypatch):
    writes: list[tuple[bytes, int]] = []
    real = os.pwrite

    def noted(fd, data, at):
        writes.append((data, at))
        return real(fd, data, at)

    monkeypatch.setattr(os, "pwrite", noted)
    assert ring(str(tmp_path))
    assert [(len(data), at) for data, at in writes] == [(1, 0)]


def test_a_full_disk_still_wakes(tmp_path, ears, monkeypatch):
    listening = ears(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    assert ring(str(tmp_path))
    assert listening.wait(soon()) == {"bell"}


def test_no_permission_is_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(os, "open", refuse)
    assert not ring(str(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(os, "pwrite", refuse)
    assert not ring(str(tmp_path))


def test_ringing_loads_next_to_nothing(tmp_path, start):
    code = (
        "import sys; from bus import bell; print(bell.ring(sys.argv[1]))\n"
        "heavy = 'watchdog threading logging re subprocess typing enum ctypes signal'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    child = start(code, tmp_path)
    assert child.communicate()[0] == "True\n[]\n"


def test_waiting_for_descriptors_only_loads_no_watchdog(start):
    code = (
        "import os, sys; from bus.bell import Ears\n"
        "r, w = os.pipe(); e = Ears((), [r]); e.arm(); os.write(w, b'x')\n"
        "print(e.wait() == {r}, 'watchdog' in sys.modules)"
    )
    assert start(code).communicate()[0] == "True False\n"


# --- hearing ---------------------------------------------------------------------------


def test_a_ring_after_arming_ends_the_wait(tmp_path, ears):
    listening = ears(tmp_path / "a", tmp_path / "b")
    assert listening.fallback is None
    assert listening.wait(at_once()) == {"deadline"}
    for name in "abab":
        ring(str(tmp_path / name))
        assert listening.wait(soon()) == {"bell"}
    assert listening.wait(at_once()) == {"deadline"}


def test_rings_before_the_wait_count_as_one(tmp_path, ears):
    listening = ears(tmp_path)
    for _ in range(100):
        ring(str(tmp_path))
    assert listening.wait(soon()) == {"bell"}
    time.sleep(0.2)
    listening.wait(at_once())
    assert listening.wait(at_once()) == {"deadline"}


def test_no_ring_is_lost(tmp_path, ears):
    """Each wait may take several rings, but the last one is always followed by a wake."""
    listening = ears(tmp_path)
    done = []

    def many():
        for count in range(2000):
            done.append(count)
            ring(str(tmp_path))

    thread = threading.Thread(target=many)
    thread.start()
    seen = 0
    while seen < 2000:
        assert listening.wait(soon()) == {"bell"}
        seen = len(done)
    thread.join()


def test_a_missing_directory_is_made_private(tmp_path, ears):
    listening = ears(tmp_path / "deep" / "er")
    assert os.stat(tmp_path / "deep").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "deep" / "er").st_mode & 0o777 == 0o700
    ring(str(tmp_path / "deep" / "er"))
    assert listening.wait(soon()) == {"bell"}


def test_only_a_change_of_the_bell_file_counts(tmp_path, ears):
    ring(str(tmp_path))
    listening = ears(tmp_path)
    (tmp_path / "turn").write_text("open")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "n").write_text("x")
    (tmp_path / "sub" / "n").unlink()
    (tmp_path / "sub").rmdir()
    (tmp_path / "n").read_bytes()
    os.close(os.open(tmp_path / "n", os.O_RDWR))
    assert listening.wait(clock.now() + 200) == {"deadline"}


def test_a_symlinked_directory_is_heard(tmp_path, ears):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    listening = ears(tmp_path / "link", tmp_path / "real")
    ring(str(tmp_path / "real"))
    assert listening.wait(soon()) == {"bell"}


def test_names_of_any_bytes(tmp_path, ears):
    name = os.fsdecode(b"caf\xe9 \xff")
    listening = ears(tmp_path / name)
    assert listening.fallback is None
    ring(str(tmp_path / name))
    assert listening.wait(soon()) == {"bell"}


def test_descriptors_are_polled_too(tmp_path, ears):
    left, right = socket.socketpair()
    read, write = os.pipe()
    listening = ears(tmp_path, fds=[left, read])
    right.send(b"x")
    assert listening.wait(soon()) == {left}
    os.write(write, b"x")
    ring(str(tmp_path))
    heard: set[object] = set()
    while heard != {left, read, "bell"}:
        heard |= listening.wait(soon())
    listening.fds = ()
    assert listening.wait(at_once()) == {"deadline"}
    os.close(write)
    listening.fds = (read,)
    os.read(read, 10)
    assert listening.wait(soon()) == {read}  # hung up
    os.close(read)
    left.close()
    right.close()


@linux
def test_a_pidfd_wakes(tmp_path, ears, start):
    child = start("input()")
    fd = os.pidfd_open(child.pid)
    listening = ears(tmp_path, fds=[fd])
    assert listening.wait(at_once()) == {"deadline"}
    later(child.kill)
    assert listening.wait(soon()) == {fd}
    os.close(fd)


def test_deadlines(tmp_path, ears):
    listening = ears(tmp_path)
    assert listening.wait(clock.now() - 1_000_000) == {"deadline"}
    end = clock.now() + 60
    assert listening.wait(end) == {"deadline"}
    assert clock.now() >= end
    later(ring, str(tmp_path))
    assert listening.wait(clock.now() + 10**13) == {"bell"}
    ring(str(tmp_path))
    time.sleep(0.1)
    assert listening.wait(clock.now() - 1) == {"bell"}


def test_unarmed_ears_make_the_caller_look(tmp_path):
    with Ears([str(tmp_path)]) as listening:
        assert listening.wait() == {"bell"}
        assert listening.wait(at_once()) == {"deadline"}
        ring(str(tmp_path))
        assert listening.wait(soon()) == {"bell"}


def test_rearm_hears_the_new_ones_only(tmp_path, ears):
    listening = ears(tmp_path / "a")
    listening.rearm([str(tmp_path / "b")])
    ring(str(tmp_path / "a"))
    assert listening.wait(clock.now() + 100) == {"deadline"}
    ring(str(tmp_path / "b"))
    assert listening.wait(soon()) == {"bell"}


def test_a_removed_directory_is_a_ring_and_comes_back(tmp_path, ears):
    listening = ears(tmp_path / "x" / "a", tmp_path / "b")
    remover = later(shutil.rmtree, str(tmp_path / "x"))
    assert listening.wait(soon()) == {"bell"}
    remover.join()
    assert not os.path.exists(tmp_path / "x")  # nothing is made behind the back of who removes
    assert listening.wait(soon()) == {"bell"}  # armed again: look
    assert listening.wait(at_once()) == {"deadline"}
    for path in (tmp_path / "x" / "a", tmp_path / "b"):
        ring(str(path))
        assert listening.wait(soon()) == {"bell"}
    assert listening.fallback is None


def test_lost_events_are_a_ring(tmp_path, ears, capfd):
    import logging

    others = set(logging.getLogger("watchdog").handlers)  # of ears that are still closing
    listening = ears(tmp_path)
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed")
    assert listening.wait(soon()) == {"bell"}
    listening.rearm([])
    assert set(logging.getLogger("watchdog").handlers) <= others
    assert capfd.readouterr().err == ""


# --- signals ---------------------------------------------------------------------------


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("polling", [False, True])
def test_a_signal_handler_that_raises_ends_the_wait(tmp_path, ears, polling):
    def stop(*_):
        raise StoppedError

    listening = ears(tmp_path, distrust=lambda _: "no" if polling else None)
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        for _ in range(5):
            later(os.kill, os.getpid(), signal.SIGUSR1)
            begin = time.monotonic()
            with pytest.raises(StoppedError):
                listening.wait(soon())
            assert time.monotonic() - begin < 10
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_that_another_thread_takes_ends_the_wait(tmp_path, ears):
    """As one that comes just before the poll: the poll of the main thread gets no EINTR."""

    def stop(*_):
        raise StoppedError

    listening = ears(tmp_path)
    before = signal.signal(signal.SIGUSR1, stop)
    blocked = {signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:

        def take():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.2)

        thread = threading.Thread(target=take)
        thread.start()
        begin = time.monotonic()
        with pytest.raises(StoppedError):
            listening.wait(soon())
        assert time.monotonic() - begin < 10  # not only after the deadline
        thread.join()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_handler_that_returns_does_not_end_the_wait(tmp_path, ears):
    calls = []
    before = signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
    try:
        listening = ears(tmp_path)
        later(os.kill, os.getpid(), signal.SIGUSR1)
        assert listening.wait(clock.now() + 300) == {"deadline"}
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [1]


def test_an_event_loop_keeps_its_wakeup_descriptor(tmp_path, ears):
    listening = ears(tmp_path)
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    try:
        assert listening.wait(at_once()) == {"deadline"}
    finally:
        assert signal.set_wakeup_fd(-1) == write
        os.close(read)
        os.close(write)


def test_another_thread_may_wait(tmp_path, ears):
    listening = ears(tmp_path)
    heard = []
    thread = threading.Thread(target=lambda: heard.append(listening.wait(soon())))
    thread.start()
    ring(str(tmp_path))
    thread.join(20)
    assert heard == [{"bell"}]


def test_sigterm_ends_a_blocked_process(tmp_path, start):
    child = start(SLEEPER, tmp_path)
    assert child.stdout.readline() == "None\n"
    child.terminate()
    assert child.wait(20) == -signal.SIGTERM


# --- where file events can't be trusted ------------------------------------------------


def polled(listening, directory):
    """The fallback hears what happens, and nothing else."""
    assert listening.fallback
    assert listening.wait(clock.now() + 60) == {"deadline"}
    for _ in range(5):
        later(ring, str(directory))
        assert listening.wait(soon()) == {"bell"}
    ring(str(directory))
    assert listening.wait(at_once()) == {"bell"}
    assert listening.wait(at_once()) == {"deadline"}


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC, errno.ENOSYS])
def test_exhausted_instances(tmp_path, ears, poll_fast, monkeypatch, code):
    import watchdog.observers

    def refuse(**_):
        raise OSError(code, os.strerror(code))

    refuse.__module__ = "x"
    monkeypatch.setattr(watchdog.observers, "Observer", refuse)
    listening = ears(tmp_path)
    assert os.strerror(code) in listening.fallback
    polled(listening, tmp_path)


@linux
def test_exhausted_watches(tmp_path, ears, poll_fast, monkeypatch):
    import watchdog.observers
    from watchdog.observers.inotify_c import InotifyFD

    class Refusing(watchdog.observers.Observer):  # type: ignore[misc,valid-type]
        def start(self):
            raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(watchdog.observers, "Observer", Refusing)
    listening = ears(tmp_path)
    assert "limit" in listening.fallback
    assert not [thread for thread in threading.enumerate() if isinstance(thread, InotifyFD)]
    polled(listening, tmp_path)


def test_watchdog_without_events_is_not_used(tmp_path, ears, poll_fast, monkeypatch):
    import watchdog.observers
    from watchdog.observers.polling import PollingObserver

    monkeypatch.setattr(watchdog.observers, "Observer", PollingObserver)
    polled(ears(tmp_path), tmp_path)


def test_foreign_file_system(tmp_path, ears, poll_fast):
    listening = ears(tmp_path / "a", tmp_path / "b", distrust=lambda path: "nfs" if path.endswith("b") else None)
    assert listening.fallback == "nfs"
    polled(listening, tmp_path / "a")
    polled(listening, tmp_path / "b")
    listening.rearm([str(tmp_path / "a")])
    assert listening.fallback is None
    ring(str(tmp_path / "a"))
    assert listening.wait(soon()) == {"bell"}


def test_rings_within_one_tick_of_the_clock_differ(tmp_path, ears, poll_fast):
    """All with the same modification time, as on file systems with a coarse clock."""
    listening = ears(tmp_path, distrust=lambda _: "coarse")
    path = str(tmp_path / "n")
    missed = 0
    for _ in range(50):
        ring(str(tmp_path))
        os.utime(path, ns=(10**18, 10**18))
        missed += listening.wait(at_once()) != {"bell"}
        time.sleep(0.001)
    assert missed <= 2


def test_a_directory_that_cannot_be_made_is_polled(tmp_path, ears, poll_fast):
    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "bell"
    listening = ears(directory)
    assert listening.fallback.startswith("no bell directory")
    assert listening.wait(clock.now() + 50) == {"deadline"}
    (tmp_path / "file").unlink()
    assert ring(str(directory))
    assert listening.wait(soon()) == {"bell"}


def test_a_polled_directory_that_goes_and_comes(tmp_path, ears, poll_fast):
    listening = ears(tmp_path / "a", distrust=lambda _: "no")
    shutil.rmtree(tmp_path / "a")
    assert listening.wait(soon()) == {"bell"}
    ring(str(tmp_path / "a"))
    assert listening.wait(soon()) == {"bell"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/home/ann", "nfs4"),
        ("/home/annabel", None),
        ("/home/ann/local/x", None),
        ("/mnt/my disk/x", "fuse.sshfs"),
        ("/over/x", "cifs"),
        ("/layer", None),
    ],
)
def test_the_deepest_mount_decides(monkeypatch, path, kind):
    rows = (
        b"1 0 8:1 / / rw - ext4 /dev/sda1 rw",
        b"2 1 0:50 / /home/ann rw shared:1 - nfs4 server:/ann rw",
        b"3 2 8:2 / /home/ann/local rw - xfs /dev/sdb rw",
        b"4 1 0:51 / /mnt/my\\040disk rw - fuse.sshfs x rw",
        b"5 1 0:52 / /over rw - ext4 /dev/sdc rw",
        b"6 5 0:53 / /over rw - cifs //x rw",
        b"7 1 0:54 / /layer rw - fuse.fuse-overlayfs x rw",
    )
    monkeypatch.setattr(datadir, "mount_table", lambda: b"\n".join(rows))
    assert bell.foreign_file_system(path) == (kind and f"foreign file system: {kind}")


@linux
def test_this_machine_is_trusted(tmp_path):
    assert datadir.mounted_type(str(tmp_path), datadir.mount_table())


UNSHARE = ["unshare", "--user", "--map-root-user"]


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL).returncode != 0,
    reason="needs a user namespace of its own",
)
@pytest.mark.parametrize("what", ["instances", "watches"])
def test_a_kernel_that_really_has_no_more(tmp_path, what):
    code = (
        "import os, sys, threading; from bus.bell import Ears, ring\n"
        "ears = Ears(sys.argv[1:]); ears.arm(); print(ears.fallback)\n"
        "threading.Timer(0.1, ring, sys.argv[1:]).start(); print(ears.wait())"
    )
    limit = f"/proc/sys/user/max_inotify_{what}"
    shell = f'echo 0 > {limit} && exec "$@"'
    done = subprocess.run(
        [*UNSHARE, "sh", "-c", shell, "sh", sys.executable, "-c", code, str(tmp_path)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": ROOT, "TT_TEST_FALLBACK_POLL": "20"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    if "max_inotify" in done.stderr:
        pytest.skip("the limit can't be set")
    assert done.stderr == ""
    fallback, heard = done.stdout.splitlines()
    assert "limit reached" in fallback
    assert heard == "{'bell'}"


# --- what it costs ---------------------------------------------------------------------


@linux
def test_asleep_it_costs_nothing(tmp_path, start):
    child = start(SLEEPER, tmp_path / "a", tmp_path / "b")
    assert child.stdout.readline() == "None\n"
    before = settled(child.pid)
    time.sleep(3)
    (tmp_path / "a" / "n").read_bytes()
    os.close(os.open(tmp_path / "a" / "n", os.O_RDWR))
    time.sleep(0.2)
    assert switches(child.pid) == before
    ring(str(tmp_path / "b"))
    assert child.stdout.readline() == "['bell']\n"
    with open(f"/proc/{child.pid}/status") as status:
        resident = next(int(row.split()[1]) for row in status if row.startswith("VmRSS"))
    assert resident <= 24 * 1024


@linux
def test_closing_frees_everything(tmp_path):
    with Ears([str(tmp_path)]) as listening:  # loads watchdog
        listening.arm()
    threads = {thread.name for thread in threading.enumerate() if "Thread-" not in thread.name}
    fds = len(os.listdir("/proc/self/fd"))
    for count in range(10):
        listening = Ears([str(tmp_path / "a"), str(tmp_path / "b")])
        listening.arm()
        if count % 2:
            ring(str(tmp_path / "a"))
        listening.close()
        listening.close()
    end = time.monotonic() + 20
    while threading.active_count() > len(threads) and time.monotonic() < end:
        time.sleep(0.01)  # watchdog is told to stop, and not waited for
    assert {thread.name for thread in threading.enumerate()} == threads
    assert len(os.listdir("/proc/self/fd")) <= fds


def test_arming_and_closing_say_nothing(tmp_path, start):
    """Watchdog complains when a thread of it is stopped in the wrong moment."""
    code = (
        "import sys; from bus.bell import Ears, ring\n"
        "for turn in range(100):\n"
        "    ears = Ears(sys.argv[1:]); ears.arm(); turn % 2 and ring(sys.argv[1]); ears.close()"
    )
    assert start(code, tmp_path / "a", tmp_path / "b").communicate() == ("", "")


def test_a_complaint_while_closing_is_no_ring_and_not_printed(tmp_path, ears, monkeypatch, capfd):
    import logging

    from watchdog.observers.api import BaseObserver

    real = BaseObserver.unschedule_all

    def complain(self):
        logging.getLogger("watchdog.observers.inotify").error("called when the thread is inactive")
        real(self)

    monkeypatch.setattr(BaseObserver, "unschedule_all", complain)
    listening = ears(tmp_path)
    listening.rearm([str(tmp_path / "other")])
    assert listening.wait(at_once()) == {"deadline"}
    listening.close()
    assert capfd.readouterr().err == ""


@linux
def test_the_watch_does_not_go_across_exec(tmp_path, start):
    code = (
        "import os, sys; from bus.bell import Ears\n"
        "Ears(sys.argv[1:]).arm()\n"
        "os.execvp('ls', ['ls', '-l', '/proc/self/fd'])"
    )
    out, err = start(code, tmp_path).communicate()
    assert "inotify" not in out
    assert err == ""


def test_a_process_that_never_closes_ends_quietly(tmp_path, start):
    code = "import sys; from bus.bell import Ears\nEars(sys.argv[1:]).arm(); print('done')"
    child = start(code, tmp_path)
    assert child.communicate() == ("done\n", "")
    assert child.returncode == 0
