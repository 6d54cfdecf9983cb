"""The directory of all our data: where it is, and that it is private, local and writable.

It keeps true that the store is never put on a file system that other machines write to,
where SQLite's shared memory and our locks do not reach.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from bus import locks
from bus.errors import BusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NETWORK = frozenset(
    (
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
    )
)
# Programs behind FUSE that talk to other machines; overlayfs, fuseblk and the like do not.
_REMOTE_FUSE = frozenset(
    (
        "afp",
        "afpfs",
        "beegfs",
        "blobfuse",
        "blobfuse2",
        "ceph",
        "ceph-fuse",
        "cifs",
        "curlftpfs",
        "davfs",
        "davfs2",
        "gcsfuse",
        "glusterfs",
        "goofys",
        "gvfsd-fuse",
        "juicefs",
        "moosefs",
        "mount-s3",
        "mountpoint-s3",
        "nfs",
        "rclone",
        "s3fs",
        "seaweedfs",
        "smbnetfs",
        "sshfs",
    )
)


def data_dir(env: Mapping[str, str]) -> str:
    """The directory of all our data, absolute; it need not exist.

    Raises BusError `invalid_input` for a relative setting, which would mean another
    store in each working directory.
    """
    ours = env.get("TALKING_STICK_DATA_DIR", "")
    if ours:
        path = home_dir(env) + ours[1:] if ours == "~" or ours.startswith("~/") else ours
        if not os.path.isabs(path):
            raise BusError("invalid_input", f"TALKING_STICK_DATA_DIR must be an absolute path, not {ours!r}")
        return os.path.normpath(path)
    if sys.platform == "win32" and env.get("APPDATA"):
        return os.path.join(env["APPDATA"], "talking-stick")
    base = env.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):  # the XDG rules: unset, empty and relative all mean the default
        base = os.path.join(home_dir(env), ".local", "share")
    return os.path.join(os.path.normpath(base), "talking-stick")


def home_dir(env: Mapping[str, str]) -> str:
    """The caller's home directory, from the environment or the user database."""
    home = env.get("HOME") or env.get("USERPROFILE", "")
    if os.path.isabs(home):
        return os.path.normpath(home)
    try:
        import pwd  # only where HOME is missing; not on Windows

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        hint = "set HOME or TALKING_STICK_DATA_DIR"
        raise BusError("store_unusable", "there is no home directory", hint=hint) from None


def ensure_private(path: str) -> None:
    """Make a directory of ours, or check it: local, writable, for its owner only.

    Looser modes are tightened to 0700. Raises BusError `network_file_system`,
    `store_read_only`, `store_full` or `store_unusable`; on a network nothing is made.
    """
    kind = network_type(os.path.realpath(path), mount_table())
    if kind is not None:
        raise BusError(
            "network_file_system",
            f"{path} is on a network file system ({kind}), where the store would be damaged",
            hint="set TALKING_STICK_DATA_DIR to a directory on a local disk",
            path=path,
            type=kind,
        )
    try:
        _make_private(path)
    except OSError as error:
        raise store_error(error, path) from error


def _make_private(path: str) -> None:
    """The directory exists, is ours alone and can be written; OSError says what is not so."""
    try:
        if os.path.isdir(path):
            loose = stat.S_IMODE(os.stat(path).st_mode) & 0o077
        else:
            locks.make_private(path)
            loose = True  # whatever the umask took away comes back
        if loose:
            os.chmod(path, 0o700)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    if not os.access(path, os.W_OK | os.X_OK):
        kind = errno.EROFS if _read_only(path) else errno.EACCES
        raise OSError(kind, os.strerror(kind), path)


def _read_only(path: str) -> bool:
    """Tell whether the whole file system is mounted read-only."""
    return sys.platform != "win32" and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def store_error(error: OSError, path: str) -> BusError:
    """The refusal that an error of the operating system on one of our files means."""
    code = {errno.ENOSPC: "store_full", errno.EDQUOT: "store_full", errno.EROFS: "store_read_only"}
    return BusError(
        code.get(error.errno or 0, "store_unusable"),
        f"cannot use {path}: {error.strerror or error}",
        hint="check its owner and mode and the free space, or set TALKING_STICK_DATA_DIR",
        path=path,
    )


def mount_table() -> bytes:
    """The kernel's list of mounts; empty where there is none to read."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return file.read()
    except OSError:
        return b""


def network_type(path: str, mountinfo: bytes) -> str | None:
    """The type of the network file system that a real path is on, None for a local one. Unknown means local."""
    found = mounted_type(path, mountinfo)
    remote = found in NETWORK or (found.startswith("fuse.") and found[5:] in _REMOTE_FUSE)
    return found if remote else None


def mounted_type(path: str, mountinfo: bytes) -> str:
    """The type of the file system that a real path is on; empty if unknown.

    Pure: `mountinfo` is the text of `/proc/self/mountinfo`.
    """
    wanted = os.fsencode(path)
    best, found = -1, ""
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(b" - ")
        fields = head.split(b" ")
        if len(fields) < 5 or not tail:  # the mount point is the fifth field
            continue
        point = _unescaped(fields[4]).rstrip(b"/")
        # The last of equals wins: it is mounted over the others.
        if len(point) >= best and (wanted == point or wanted.startswith(point + b"/")):
            best, found = len(point), tail.split(b" ", 1)[0].decode("ascii", "replace")
    return found


def _unescaped(field: bytes) -> bytes:
    """Undo the kernel's octal escapes of space, tab, newline and backslash."""
    if b"\\" not in field:
        return field
    for raw in (b" ", b"\t", b"\n", b"\\"):
        field = field.replace(b"\\%03o" % raw[0], raw)
    return field
