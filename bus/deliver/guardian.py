"""Starting guardians, by command line: `monitor.guardian` is never imported here.

Kept true: READY is answered only by a process that holds the lease's lock and lives on in a
session of its own, so a granter that dies anywhere leaves a guarded turn or none.
"""

from __future__ import annotations

import os
import select
import sys

from bus import clock, crash, limits, locks
from bus.errors import BusError
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from bus.operations.outcome import Guard
    from bus.store.db import Bus

PROGRAM = "from monitor.guardian import main; main()"
# What a guardian may know of its starter: never a harness marker, token or socket.
_KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT")
_KEPT_PREFIXES = ("TT_TEST_", "XDG_DATA_HOME", "TALKING_STICK_DATA_DIR")


class Started(Record):
    """A guardian that answered READY. While `pipe` is open it knows that its granter lives."""

    pid: int
    pipe: int

    def close(self) -> None:
        """Let go: without a lease of its own the guardian exits now."""
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


def start(bus: Bus, guard: Guard) -> Started | None:
    """Start a guardian for a lease; None when another one holds its lock.

    Raises cli_error when none answers READY in time; it ends by itself then.
    """
    crash.point("before_guardian_start")
    told_read, told_write = os.pipe()
    ready_read, ready_write = os.pipe()
    for fd in (told_read, ready_write):
        os.set_inheritable(fd, True)
    try:
        child = _spawn(bus, guard, told_read, ready_write)
    except OSError as error:
        os.close(told_write)
        os.close(ready_read)
        raise BusError("cli_error", f"the guardian could not be started: {error}", "nothing was changed") from error
    finally:
        os.close(told_read)
        os.close(ready_write)
    try:
        answer = _answer(ready_read)
    finally:
        os.close(ready_read)
    _reap(child)
    if answer.startswith("READY "):
        crash.point("after_guardian_ready")
        return Started(int(answer.split()[1]), told_write)
    os.close(told_write)  # a guardian that is only slow finds the pipe closed and no lease, and ends
    if answer.startswith("TAKEN"):
        return None
    message = f"the guardian did not answer within {limits.GUARDIAN_READY} ms"
    raise BusError("cli_error", message, "nothing was changed; try again")


def adopt(bus: Bus, guard: Guard) -> Started | None:
    """Start a guardian for a lease that has none; one starter at a time. It notes itself in the store."""
    starting = locks.hold(bus.lease_lock(guard.lease) + ".start")
    if starting is None:
        return None
    with starting:
        if locks.held(bus.lease_lock(guard.lease)):
            return None
        try:
            started = start(bus, guard)
        except BusError:
            return None  # the next one who finds the lease unguarded tries again
        if started is not None:
            started.close()
        return started


def _spawn(bus: Bus, guard: Guard, told: int, ready: int) -> int:
    """The first process; it forks, so that the guardian is nobody's child, and exits."""
    argv = [
        sys.executable,
        "-I",
        "-c",
        PROGRAM,
        bus.dir,
        str(guard.room),
        guard.lease,
        guard.owner,
        guard.anchor or "",
        str(told),
        str(ready),
    ]
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    return os.posix_spawn(sys.executable, argv, environment(os.environ), file_actions=null)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """What a process of ours that outlives its starter is given."""
    return {name: value for name, value in env.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}


def _answer(fd: int) -> str:
    """The guardian's first line; empty when it did not come in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    end = clock.monotonic() + limits.GUARDIAN_READY
    data = b""
    while not data.endswith(b"\n"):
        left = end - clock.monotonic()
        if left <= 0 or not poll.poll(left):
            return ""
        piece = os.read(fd, 64)
        if not piece:
            return ""
        data += piece
    return data.decode("ascii", "replace")


def _reap(child: int) -> None:
    """The first process has forked and is over, or will be at once."""
    try:
        os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return
