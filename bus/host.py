"""Which machine, boot and pid namespace this is, and whether `/proc` shows our pids.

Within one host a pid means one process; across hosts it means nothing. Read once a process.
"""

from __future__ import annotations

import os
import sys

from bus.digest import digest

MISSING = "-"  # a part that could not be read
WEAK = "h"  # before a machine id that is only a host name: it proves no reboot
READ_BYTES = 4096  # of a file in /proc: a command line may be megabytes

_cached: dict[str, str] = {}


def machine() -> str:
    """The machine, hashed, ten characters or more; the same after a reboot. Cached."""
    if "machine" not in _cached:
        _cached["machine"] = _machine()
    return _cached["machine"]


def host() -> str:
    """Machine, boot and pid namespace: within one host a pid means one process. Cached.

    Three parts joined by dots, no slash. A part that cannot be read is `-`.
    """
    if "host" not in _cached:
        _cached["host"] = f"{machine()}.{_boot()}.{_namespace()}"
    return _cached["host"]


def _machine() -> str:
    """A hash of the machine id (which is not to be shown raw), else of the host name."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        text = read(path).decode("ascii", "replace").strip()
        if len(text) >= 16 and text.isalnum():  # a real id, not "uninitialized"
            return _hashed(text)
    if sys.platform == "darwin":
        text = _darwin_machine()
        if text:
            return _hashed(text)
    import socket  # only where there is no machine id

    return WEAK + _hashed(socket.gethostname())


def _hashed(text: str) -> str:
    """Ten hex digits, enough to tell a person's machines apart."""
    return digest(b"talking-stick\0" + text.encode("utf-8", "replace"))[:10]


def _boot() -> str:
    """The boot id, shortened."""
    text = read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace")
    if not text and sys.platform == "darwin":
        text = _darwin_boot()
    return text.strip().replace("-", "").lower()[:12] or MISSING


def _namespace() -> str:
    """The inode of our pid namespace."""
    try:
        link = os.readlink("/proc/self/ns/pid")
    except OSError:
        return MISSING
    return "".join(char for char in link if char.isdigit()) or MISSING


def _darwin_machine() -> str:
    """The host uuid of macOS as hex: its host name changes with the network."""
    import ctypes  # macOS only

    buffer, wait = ctypes.create_string_buffer(16), (ctypes.c_long * 2)(1, 0)
    try:
        failed = ctypes.CDLL(None).gethostuuid(buffer, wait)
    except (OSError, AttributeError):
        return ""
    return "" if failed else buffer.raw.hex()


def _darwin_boot() -> str:
    """The boot session of macOS; its boot *time* moves when the clock is set."""
    import ctypes  # macOS only

    buffer, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
    try:
        failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0)
    except (OSError, AttributeError):
        return ""
    return "" if failed else buffer.value.decode("ascii", "replace")


def read(path: str, limit: int = READ_BYTES) -> bytes:
    """The beginning of a small file, empty if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:  # the process ended between the two calls
        return b""
    finally:
        os.close(fd)


def proc_usable() -> bool:
    """Whether `/proc` shows the pids that we mean.

    After `unshare --pid` without a new `/proc` it shows those of the outer namespace, and a
    start token read there would "prove" a living process gone.
    """
    if "proc" not in _cached:
        try:
            own = os.readlink("/proc/self")
        except OSError:
            own = ""
        foreign = bool(own) and own != str(os.getpid())
        _cached["proc"] = "foreign" if foreign else "ours" if own else ""
    return _cached["proc"] == "ours"


def psutil_usable() -> bool:
    """Whether to ask psutil: not where it would read the same foreign `/proc`."""
    return not proc_usable() and _cached["proc"] != "foreign"
