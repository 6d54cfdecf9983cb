"""Bells: `ring` after a commit, `Ears` to block until one rings.

A bell is a directory with one small file `n`; any write to it means *look*. It carries no
news of its own, so a ring too many costs one read of the store and a lost one costs the
wake. A waiter therefore keeps this order: look, `arm`, look again, `wait`.

Kept true: nothing here wakes on a timer unless a deadline was given or file events can't be
trusted (`Ears.fallback` says why), and watchdog is loaded by `Ears.arm` alone.
"""

from __future__ import annotations

import errno
import math
import os
import select
import sys

from bus import clock, limits
from bus.locks import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterable
    from typing import Protocol, Self

    from watchdog.events import FileSystemEventHandler

    class Deafen(Protocol):
        """Stops watching; with `later` the slow part goes on behind."""

        def __call__(self, *, later: bool) -> None:
            """Do it."""

    Mark = tuple[int, int, bytes] | None

FILE = "n"
_RUNG = b"\x00"  # in the pipe; other bytes are signal numbers
_LOST = b"\xff"  # a watched directory is gone
_LONGEST = 1 << 30  # ms; the most that poll takes in one go, some 12 days
_FULL = (errno.ENOSPC, errno.EDQUOT)

# Beside network file systems: on these other machines, or the host of a container, may write unseen by us.
_HOST = ("ocfs2", "gfs2", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "drvfs", "fakeowner")


def ring(directory: str) -> bool:
    """Write one byte to `<directory>/n`; directory (0700) and file (0600) are made at first use.

    False where that failed. Never raises for the file system: the commit stands, and whoever
    sleeps here is woken by the next one.
    """
    try:
        fd = _open(directory)
        try:
            _strike(fd)
        finally:
            os.close(fd)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False
    return True


def _open(directory: str) -> int:
    """The bell's file, ready to be written; never blocks, should it be a pipe."""
    if not directory:
        raise ValueError("a bell has a directory")  # else it would hang in the root directory
    path = directory + "/" + FILE
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_private(directory)
        return os.open(path, flags, 0o600)


def _strike(fd: int) -> None:
    """One write of one byte.

    The byte changes all the time, for those who must poll: two rings within one tick of the
    file system's clock have the same modification time.
    """
    try:
        os.pwrite(fd, bytes((int(clock.monotonic() * 16) & 0xFF,)), 0)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        os.ftruncate(fd, 1)  # a modification too, and one that needs no room on a full disk


class Ears:
    """Blocks until one of its bells rings, a descriptor is ready, or a deadline is over.

    `fds` (integers or objects with `fileno`; may be replaced between two waits) are polled
    for reading; an error or hang-up counts as ready. `distrust` tells of a directory why its
    file events can't be trusted, or None. Main thread or not, one thread at a time.
    """

    def __init__(
        self,
        directories: Iterable[str],
        fds: Iterable[object] = (),
        *,
        distrust: Callable[[str], str | None] | None = None,
    ) -> None:
        """Open the pipe that everything is heard through; nothing is watched before `arm`."""
        self.fds: tuple[object, ...] = tuple(fds)
        self.fallback: str | None = None
        self._directories = tuple(directories)
        self._distrust = distrust or foreign_file_system
        self._marks: dict[str, Mark] = {}
        self._deafen: Deafen | None = None
        self._armed = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def arm(self) -> None:
        """Watch from here on. Every ring after this call ends a wait; look once after it.

        Missing bells are made. What can't be watched is polled (`fallback` says why); never
        raises for the file system.
        """
        if self._armed:
            return
        self._armed = True
        paths = sorted({os.path.realpath(directory) for directory in self._directories})
        if not paths:
            return
        self.fallback = _prepare(paths) or self._distrusted(paths) or self._start(paths)
        if self.fallback:
            self._marks = {path: _mark(path) for path in paths}

    def rearm(self, directories: Iterable[str]) -> None:
        """Watch these instead. As after `arm`: look once."""
        self._directories = tuple(directories)
        self._disarm()
        self.arm()

    def wait(self, deadline_ms: int | None = None) -> set[object]:
        """Block; return `"bell"` and the objects of `fds` that are ready, or just `"deadline"`.

        `deadline_ms`: a time as of `clock.now()`, measured from the call on a clock that does
        not jump. Rings since the last wait count as one. Unarmed, or after its directory was
        removed, it arms and returns `"bell"`, so that the caller looks. An exception raised
        by a signal handler comes through at once.
        """
        if not self._armed:
            self.arm()
            return {"bell"}
        end = None
        if deadline_ms is not None:
            end = clock.monotonic() + max(0, deadline_ms - clock.now())
        poll, objects = self._poll()
        restore = _hear_signals(self._write)
        try:
            while True:
                heard = self._once(poll, objects, self._pause(end))
                if heard:
                    return heard
                if end is not None and clock.monotonic() >= end:
                    return {"deadline"}
        finally:
            restore()

    def close(self) -> None:
        """Watch no more and free every descriptor, watchdog's a moment later. May be repeated."""
        if self._read < 0:
            return
        self._disarm(later=True)
        os.close(self._read)
        os.close(self._write)
        self._read = self._write = -1

    def __enter__(self) -> Self:
        """Close at the end of a block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    def _distrusted(self, paths: list[str]) -> str | None:
        """The first reason not to trust file events."""
        for path in paths:
            reason = self._distrust(path)
            if reason:
                return reason
        return None

    def _start(self, paths: list[str]) -> str | None:
        """Start watchdog; why that was impossible, or None."""
        try:
            self._deafen = _watch(paths, self._write)
        except (OSError, RuntimeError, ValueError, ImportError) as error:
            # OSError: instances, watches or descriptors are used up; RuntimeError: no thread
            # left; ValueError: a descriptor that a sandbox refused without an error.
            return f"no file events: {error}"
        return None

    def _disarm(self, *, later: bool = False) -> None:
        """Stop watching; with `later` watchdog may take its time to end.

        Returns only when no thread can write to the pipe any more: its number may soon be
        that of another file.
        """
        self._armed = False
        self.fallback = None
        self._marks = {}
        deafen, self._deafen = self._deafen, None
        if deafen:
            deafen(later=later)

    def _poll(self) -> tuple[select.poll, dict[int, object]]:
        """What to block on, and the caller's object for each descriptor."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        objects: dict[int, object] = {}
        for thing in self.fds:
            fd = _fileno(thing)
            objects[fd] = thing
            poll.register(fd, select.POLLIN)
        return poll, objects

    def _pause(self, end: float | None) -> int | None:
        """Milliseconds for one poll: None, no timer at all, unless there is a reason."""
        pause = math.inf if end is None else max(0, math.ceil(end - clock.monotonic()))
        if self.fallback:
            pause = min(pause, limits.FALLBACK_POLL)
        return None if pause == math.inf else int(min(pause, _LONGEST))

    def _once(self, poll: select.poll, objects: dict[int, object], pause: int | None) -> set[object]:
        """One poll; empty when only time passed or a signal came whose handler returned."""
        changed = self._changed()
        heard: set[object] = set()
        for fd, _events in poll.poll(0 if changed else pause):
            if fd != self._read:
                heard.add(objects[fd])
            elif self._drain():
                heard.add("bell")
        if changed or self._changed():
            heard.add("bell")
        return heard

    def _drain(self) -> bool:
        """Empty the pipe; whether a bell was among it."""
        data = b""
        try:
            while piece := os.read(self._read, 4096):
                data += piece
        except BlockingIOError:
            pass
        if _LOST in data:
            # Not made anew here: whoever removed it may be in the middle of removing more.
            # The caller looks first; if it waits again, the directory is made again.
            self._disarm()
        return _RUNG in data or _LOST in data

    def _changed(self) -> bool:
        """Where we poll: whether a bell rang since the last time."""
        changed = False
        for path, before in self._marks.items():
            now = _mark(path)
            if now != before:
                self._marks[path] = now
                changed = True
        return changed


def foreign_file_system(path: str) -> str | None:
    """Why file events of this real path can't be trusted, by its mount (Linux); else None."""
    from bus import datadir  # only for who must block

    kind = datadir.mounted_type(path, datadir.mount_table())
    foreign = kind in datadir.NETWORK or kind in _HOST or kind.startswith("fuse.")
    return f"foreign file system: {kind}" if foreign and kind != "fuse.fuse-overlayfs" else None


def _prepare(paths: list[str]) -> str | None:
    """Make the bells that are missing; why one can't be watched, or None."""
    for path in paths:
        try:
            os.close(_open(path))  # a first ring must be a modification, not a creation
        except (OSError, ValueError) as error:
            if not os.path.isdir(path):
                return f"no bell directory: {error}"
        if not os.access(path, os.R_OK):
            return f"unreadable: {path}"  # watchdog takes that for success and stays deaf
    return None


def _mark(path: str) -> Mark:
    """What tells one ring from the next without file events; None without a bell."""
    try:
        fd = os.open(path + "/" + FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        return found.st_ino, found.st_mtime_ns, os.pread(fd, 1, 0)
    except OSError:
        return None
    finally:
        os.close(fd)


def _fileno(thing: object) -> int:
    """The descriptor of an integer or of anything with `fileno`."""
    if isinstance(thing, int):
        return thing
    fd: int = thing.fileno()  # type: ignore[attr-defined]  # Iterable[object] keeps callers simple
    return fd


def _hear_signals(fd: int) -> Callable[[], None]:
    """Let signals write to the pipe; return what undoes it.

    Else a signal that comes just before the poll, or in another thread, would run its Python
    handler only after the next ring.
    """
    import signal  # brings enum: 3 ms that ringing must not pay

    try:
        before = signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    except ValueError:  # not the main thread: no handler runs here anyway
        return lambda: None
    if before != -1:  # an event loop owns it and must go on hearing its signals
        signal.set_wakeup_fd(before)
        return lambda: None

    def restore() -> None:
        signal.set_wakeup_fd(-1)

    return restore


def _watch(paths: list[str], pipe: int) -> Deafen:
    """Start one observer over the directories; return what stops it. Raises when impossible.

    The filter becomes the kernel's: opening and closing a bell wakes nobody. What stops it
    returns when nothing can write to the pipe any more. With `later` the rest goes on behind:
    the kernel takes up to 20 ms to close an inotify instance.
    """
    import logging  # watchdog loads both anyway
    import threading

    from watchdog import events, observers  # 30 ms, only for who must block

    if "polling" in observers.Observer.__module__:  # what watchdog takes where it has no events
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    observer = observers.Observer()
    complaint = _look_at_complaints(pipe)

    def stop() -> None:
        observer.stop()
        logging.getLogger("watchdog").removeHandler(complaint)

    def deafen(*, later: bool) -> None:
        complaint.setLevel(sys.maxsize)  # stopping makes it complain of nothing
        observer.unschedule_all()  # from here on nothing of it calls us
        if later:
            threading.Thread(target=stop, daemon=True).start()
        else:
            stop()

    wanted: list[type[events.FileSystemEvent]] = [events.FileModifiedEvent, events.DirDeletedEvent]
    try:
        for path in paths:
            observer.schedule(_handler(path, pipe), path, event_filter=wanted)
        observer.start()
    except BaseException:
        deafen(later=False)
        raise
    _close_on_exec()
    return deafen


def _handler(directory: str, pipe: int) -> FileSystemEventHandler:
    """What watchdog calls for an event in the directory."""
    from watchdog import events

    class Handler(events.FileSystemEventHandler):
        def dispatch(self, event: events.FileSystemEvent) -> None:
            path = os.fsdecode(event.src_path)
            if isinstance(event, events.FileModifiedEvent):
                if os.path.basename(path) == FILE:
                    _put(pipe, _RUNG)
            elif path == directory:
                _put(pipe, _LOST)

    return Handler()


def _look_at_complaints(pipe: int) -> logging.Handler:
    """Take every warning of watchdog for a ring.

    When the kernel's queue overflows (we were stopped for long) it loses events and only logs
    that; without a handler of its own logging would print it, too.
    """
    import logging  # as above

    class Complaint(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            _put(pipe, _RUNG)

    complaint = Complaint(logging.WARNING)
    logging.getLogger("watchdog").addHandler(complaint)
    return complaint


def _put(pipe: int, byte: bytes) -> None:
    """Write to the pipe; one that is full of rings needs no other."""
    try:
        os.write(pipe, byte)
    except BlockingIOError:
        pass


def _close_on_exec() -> None:
    """Keep inotify from what this process becomes by `exec`: instances are scarce."""
    if sys.platform != "linux":
        return
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name) == "anon_inode:inotify":
                os.set_inheritable(int(name), False)
        except OSError:
            continue  # closed meanwhile, as the one that listed them
