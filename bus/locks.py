"""Lock files: registration, exclusion and proof of life in one.

A lock lives exactly as long as its holder: `flock` belongs to the open file, so `kill -9`
frees it at once, and it survives `exec` where asked. Lock files are never unlinked: a
second holder could lock the new file of the same name while the first one lives on.

A prober takes the shared lock for some microseconds. That must never make `hold` fail,
so a failed `hold` asks for the shared lock too: only a real holder refuses that one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from bus import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_PATIENCE = 1000  # ms; probers in the way for longer than this count as a holder
_PAUSE = 0.0002  # s; first pause between two attempts, doubled up to _LONGEST_PAUSE
_LONGEST_PAUSE = 0.002  # s
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)


class Held:
    """A lock that this process holds until `release`, or until it dies.

    There is no release when the object is collected: a lock held for life needs no keeper.
    """

    def __init__(self, path: str, fd: int) -> None:
        """Own the locked descriptor `fd` of the lock file `path`."""
        self.path = path
        self.fd = fd

    def release(self) -> None:
        """Free the lock at once, even where a child still has the descriptor. May be repeated."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_UN)
        finally:
            os.close(fd)

    def __enter__(self) -> Self:
        """Hold it for a block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Release at the end of the block."""
        self.release()


def make_private(directory: str) -> None:
    """Make the directory and its missing parents, each 0700; raises OSError.

    Not `os.makedirs`: that gives the mode to the last one only, and parents stay open to all.
    """
    try:
        _make(directory)
    except FileNotFoundError:
        parent = os.path.dirname(directory.rstrip("/"))
        if not parent or parent == directory:
            raise
        make_private(parent)
        _make(directory)  # once: some parents, as /proc, exist and still take no child


def hold(path: str, *, inheritable: bool = False) -> Held | None:
    """Take the lock, or None at once when another holder has it; raises OSError.

    The file and its directories are made where missing (0600, 0700). Probers never make it
    fail. With `inheritable` the descriptor, and so the lock, goes on across `exec`.
    """
    give_up = clock.monotonic() + _PATIENCE
    while True:
        fd = _open(path)
        try:
            taken = _take(fd, give_up)
            if taken and _still_there(path, fd):
                os.set_inheritable(fd, inheritable)
                kept, fd = fd, -1
                return Held(path, kept)
        finally:
            if fd >= 0:
                os.close(fd)
        if not taken or clock.monotonic() > give_up:
            return None


def held(path: str) -> bool:
    """Whether a living process holds the lock; makes nothing, waits for nothing.

    A missing file is not held. What can't be found out counts as held: nothing is reclaimed
    without proof of death.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return error.errno not in _NOT_THERE
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)  # frees the shared lock with it: the shortest time in others' way
    return False


def _make(directory: str) -> None:
    """Make one directory; fine if another process was faster."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise


def _open(path: str) -> int:
    """The lock file's descriptor, not inherited; file and directories are made if missing."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_private(os.path.dirname(path) or ".")
        return os.open(path, flags, 0o600)


def _take(fd: int, give_up: float) -> bool:
    """Lock the descriptor; False as soon as a real holder is seen, or at `give_up` (monotonic ms)."""
    pause = _PAUSE
    while not _try(fd, fcntl.LOCK_EX):
        if not _try(fd, fcntl.LOCK_SH) or clock.monotonic() > give_up:
            return False
        fcntl.flock(fd, fcntl.LOCK_UN)  # else two takers would hold each other off with it
        # Different pauses in different processes, so that two takers don't stay in step.
        time.sleep(pause * (1 + os.getpid() % 16 / 16))
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def _try(fd: int, kind: int) -> bool:
    """One attempt that never blocks."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_there(path: str, fd: int) -> bool:
    """Whether the name still leads to the locked file: a removed directory must not give two holders."""
    try:
        named = os.stat(path)
    except OSError:
        return False
    locked = os.fstat(fd)
    return (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino)
