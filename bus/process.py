"""Which process is it, and does it still live: anchors, liveness, ancestry, and waiting for an exit.

An anchor is `<host>/<pid>/<start>`. It answers `gone` only on proof; whatever is unclear is
`unknown`, since a turn taken from a living agent is worse than one that waits. Everything here
reads `/proc` on Linux and asks psutil elsewhere; no subprocess is ever started, because a
localised or slow `ps` once degraded every identity to the weakest.
"""

from __future__ import annotations

import os
import select

from bus.host import MISSING, WEAK, host, machine, proc_usable, psutil_usable, read
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Literal, Self

    Liveness = Literal["alive", "gone", "unknown"]

__all__ = (
    "ALIVE",
    "ANCESTORS",
    "GONE",
    "UNKNOWN",
    "ExitWatch",
    "Proc",
    "ancestors",
    "ancestry",
    "anchor",
    "anchor_pid",
    "anchor_start",
    "host",
    "join_anchor",
    "liveness",
    "look",
    "machine",
    "parent",
)

ALIVE: Liveness = "alive"
GONE: Liveness = "gone"
UNKNOWN: Liveness = "unknown"

ANCESTORS = 64  # most steps of an ancestry; a loop or a runaway chain must end
_INEXACT = "~"  # before a start token in seconds: another one proves nothing


class Proc(Record):
    """One process as seen once. Texts may be empty where the system shows nothing.

    `start` is the token of an anchor, `session` the pid of its session's leader (0 unknown),
    `argv` the beginning of the command line.
    """

    pid: int
    ppid: int
    name: str
    argv0: str = ""
    exe: str = ""
    start: str = MISSING
    session: int = 0
    argv: tuple[str, ...] = ()


class _Stat(Record):
    """What we need of `/proc/PID/stat`; `start` in clock ticks since boot."""

    name: str
    state: str
    ppid: int
    session: int
    threads: int
    start: str


# Reading one process


def _stat(pid: int) -> _Stat | None:
    """The stat line of a process, None if unreadable. The name may hold spaces and parentheses."""
    text = read(f"/proc/{pid}/stat").decode("utf-8", "replace")
    head, found, tail = text.rpartition(")")
    rest = tail.split()
    if not found or len(rest) < 20:  # fields 3 to 22
        return None
    name = head.partition("(")[2]
    return _Stat(name, rest[0], int(rest[1]), int(rest[3]), int(rest[17]), rest[19])


def _dead(stat: _Stat) -> bool:
    """Whether nothing of the process runs any more.

    A leader that left its other threads running shows as a zombie too, and is not dead.
    """
    return stat.state in "ZXx" and stat.threads <= 1


def _exists(pid: int) -> bool | None:
    """Whether the pid is taken; None if it is, by a process that we may not signal."""
    if os.name == "nt":  # signal 0 would reach the console there
        import psutil

        return bool(psutil.pid_exists(pid))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None
    return True


def _foreign_process(pid: int) -> Any:
    """The psutil process, or None: there is none, it is a zombie, or psutil may not look."""
    import psutil  # where there is no /proc

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.Error:
        return None


def _start(pid: int) -> str | None:
    """The start token: exact ticks, or `~seconds`, or `-` if unreadable; None if it ended."""
    if proc_usable():
        stat = _stat(pid)
        if stat is not None:
            return None if _dead(stat) else stat.start
    elif psutil_usable():
        process = _foreign_process(pid)
        return None if process is None else f"{_INEXACT}{int(process.create_time())}"
    return MISSING


# Anchors


def anchor(pid: int) -> str | None:
    """`<host>/<pid>/<start>` of a process that runs now; None if there is none.

    A start that cannot be read is `-`: such an anchor is never proven gone by a reused pid.
    """
    if not _is_pid(pid) or _exists(pid) is False:
        return None
    start = _start(pid)
    if start is None or (start == MISSING and _exists(pid) is False):
        return None
    return join_anchor(pid, start)


def join_anchor(pid: int, start: str) -> str:
    """The anchor of a process of this host."""
    return f"{host()}/{pid}/{start}"


def anchor_pid(text: str) -> int | None:
    """The pid, if the anchor belongs to this host and is well formed."""
    parts = _split(text)
    return parts[1] if parts is not None and parts[0] == host() else None


def anchor_start(text: str) -> str | None:
    """The start token of a well-formed anchor."""
    parts = _split(text)
    return None if parts is None else parts[2]


def liveness(text: str) -> Liveness:
    """Whether the process of an anchor is `alive`, `gone` or `unknown`. Costs microseconds.

    `gone`: no such pid (or a zombie), another boot of the same machine, or another exact start
    token. A process that may not be signalled is `alive` unless its token proves it another one.
    """
    parts = _split(text)
    if parts is None:
        return UNKNOWN
    where, pid, start = parts
    if where != host():
        return GONE if _before_reboot(where, host()) else UNKNOWN
    seen = _exists(pid)
    if seen is False:
        return GONE
    now = _start(pid)
    if now == MISSING and _exists(pid) is False:  # it ended while we looked
        return GONE
    return _compared(start, now, signalled=seen is True)


def _compared(start: str, now: str | None, *, signalled: bool) -> Liveness:
    """The table for a pid that is taken: `start` is recorded, `now` is seen."""
    if now is None:
        return GONE
    if MISSING in (start, now):
        return UNKNOWN if signalled else ALIVE
    if start == now:
        return ALIVE
    exact = start.isascii() and start.isdigit() and now.isdigit()
    return GONE if exact else UNKNOWN


def _before_reboot(recorded: str, here: str) -> bool:
    """Whether the host is this machine in the same namespace, but under another boot.

    A host name or a missing part proves nothing; another namespace may be another container
    made from the same image.
    """
    old, new = recorded.split("."), here.split(".")
    if len(old) != len(new) or MISSING in old + new or old[0].startswith(WEAK):
        return False
    return old[0] == new[0] and old[1] != new[1] and old[2] == new[2]


def _is_pid(pid: int) -> bool:
    """Whether the number can be one process: 0 and below address groups."""
    return 0 < pid < 1 << 31


def _split(text: str) -> tuple[str, int, str] | None:
    """Host, pid and start of an anchor, None if it is malformed."""
    parts = text.split("/")
    if len(parts) != 3 or not all(parts) or not (parts[1].isascii() and parts[1].isdigit()):
        return None
    if len(parts[1]) > 10 or not _is_pid(int(parts[1])):  # digits of 2**31
        return None
    return parts[0], int(parts[1]), parts[2]


# Ancestry


def look(pid: int) -> Proc | None:
    """The process as it is now; None if there is none, it is a zombie, or it cannot be seen."""
    if not _is_pid(pid):
        return None
    if not proc_usable():
        return _look_psutil(pid) if psutil_usable() else None
    stat = _stat(pid)
    if stat is None or _dead(stat):
        return None
    raw = read(f"/proc/{pid}/cmdline").decode("utf-8", "replace")
    argv = tuple(raw.rstrip("\0").split("\0")) if raw else ()
    try:
        exe = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:  # another user's process
        exe = ""
    return Proc(pid, stat.ppid, stat.name, argv[0] if argv else "", exe, stat.start, stat.session, argv)


def _look_psutil(pid: int) -> Proc | None:
    """The same where there is no `/proc`; what psutil may not see stays empty."""
    import psutil  # where there is no /proc

    process = _foreign_process(pid)
    if process is None:
        return None

    def ask(method: str, default: Any) -> Any:
        try:
            return getattr(process, method)() or default
        except (psutil.Error, OSError):
            return default

    argv = tuple(ask("cmdline", []))
    try:
        session = os.getsid(pid) if hasattr(os, "getsid") else 0
    except OSError:
        session = 0
    start = f"{_INEXACT}{int(process.create_time())}"
    return Proc(pid, ask("ppid", 0), ask("name", ""), argv[0] if argv else "", ask("exe", ""), start, session, argv)


def parent(pid: int) -> int | None:
    """The parent's pid; None at the top or if it cannot be seen."""
    if pid == os.getpid():
        found = os.getppid()
    elif proc_usable():
        stat = _stat(pid) if _is_pid(pid) else None
        found = stat.ppid if stat is not None else 0
    else:
        seen = look(pid)
        found = seen.ppid if seen is not None else 0
    return found if found > 0 else None


def ancestors(pid: int) -> Iterator[Proc]:
    """The ancestors of a process, nearest first, without itself; each read when it is asked for."""
    above, seen = parent(pid), {pid}
    while above is not None and above not in seen and len(seen) <= ANCESTORS:
        seen.add(above)
        found = look(above)
        if found is None:
            return
        yield found
        above = found.ppid if found.ppid > 0 else None


def ancestry(pid: int) -> list[Proc]:
    """All of them, at most 64."""
    return list(ancestors(pid))


# Waiting for an exit


class ExitWatch:
    """A file descriptor that becomes readable when a process exits, without any timer.

    With `start` (the token of its anchor) a process that reused the pid is not taken for it.
    ProcessLookupError if it is gone already. Close it, or use it in a `with`.
    """

    def __init__(self, pid: int, start: str | None = None) -> None:
        """Begin to watch; what exits from now on is seen."""
        self.pid = pid
        self._gone = False
        self._fd = _open_watch(pid)
        # Only now that the descriptor holds on to one process is its token worth comparing.
        reused = start is not None and _compared(start, _start(pid), signalled=True) == GONE
        if reused or self.gone:
            self.close()
            raise ProcessLookupError(pid)

    def fileno(self) -> int:
        """The descriptor for poll; ValueError after `close`."""
        if self._fd < 0:
            message = "the watch is closed"
            raise ValueError(message)
        return self._fd

    @property
    def gone(self) -> bool:
        """Whether the process has exited. After `close` it says what was known then."""
        if not self._gone and self._fd >= 0:
            poll = select.poll()
            poll.register(self._fd, select.POLLIN)
            self._gone = bool(poll.poll(0))
        return self._gone

    def close(self) -> None:
        """Give the descriptor back; may be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        """The watch itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def _open_watch(pid: int) -> int:
    """A pidfd, or the read end of a pipe that a thread closes at the exit."""
    if not _is_pid(pid):
        raise ProcessLookupError(pid)
    if hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError as error:
            import errno  # rare

            if error.errno in (errno.EINVAL, errno.ENOENT):  # the number of a thread: the process is gone
                raise ProcessLookupError(pid) from None
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
    return _open_thread_watch(pid)


def _open_thread_watch(pid: int) -> int:
    """The same by psutil's wait in a thread. Not for own children: it would reap them."""
    import threading  # old kernels, other systems

    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise ProcessLookupError(pid)
    except psutil.NoSuchProcess:
        raise ProcessLookupError(pid) from None
    reader, writer = os.pipe()

    def wait() -> None:
        try:
            process.wait()
        except psutil.NoSuchProcess:
            pass
        except psutil.Error:  # may not wait: a watch that stays silent is better than a false death
            return
        os.close(writer)  # the thread's own: the reader sees the end of the pipe

    threading.Thread(target=wait, daemon=True).start()
    return reader
