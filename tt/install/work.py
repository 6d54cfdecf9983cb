"""One run of the installer: every touch of the file system, and the line that tells of it.

Keeps true: with `dry` nothing changes anywhere; a file is replaced whole, by temp file and
rename, with its mode; a symlink stays a link; a file that changed since it was read is not
overwritten.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

from bus import crash, datadir
from bus.records import Record
from tt.install import managed, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SUFFIX = ".talking-stick.tmp"  # one name per file: what a crash left is overwritten by the next run


class Options(Record):
    """What the command line asked for."""

    copy: bool = False
    link: bool = False
    overwrite: bool = False  # --replace; a record has a method of that name
    no_guard: bool = False
    settings: bool = False
    accept_inbound: bool = False
    allow_data_dir: bool = False


class Changed(Exception):  # noqa: N818  # not an error: the file is read again
    """Somebody wrote the file between our reading and our renaming."""


class Failed(Exception):  # noqa: N818  # told as a line of its own
    """One thing that could not be done; the others go on."""


class Work:
    """The run: environment, options, state, and the lines so far."""

    def __init__(self, env: Mapping[str, str], options: Options, *, dry: bool) -> None:
        """Read the state. Nothing is made yet."""
        self.env = env
        self.options = options
        self.dry = dry
        self.home = datadir.home_dir(env)
        self.data = datadir.data_dir(env)
        self.managed = managed.Managed(self.data)
        self.lines: list[dict[str, Any]] = []
        self.harness = ""

    def tell(self, what: str, path: str, state: str, detail: str = "", **more: Any) -> str:
        """Add one result line for the harness at hand."""
        line: dict[str, Any] = {"harness": self.harness, "what": what, "path": path, "state": state}
        if detail:
            line["detail"] = detail
        self.lines.append(line | {key: value for key, value in more.items() if value})
        return state

    def which(self, *names: str) -> str | None:
        """The first of these programs on the caller's PATH."""
        found = (shutil.which(name, path=self.env.get("PATH", os.defpath)) for name in names)
        return next((path for path in found if path), None)

    # --- files -------------------------------------------------------------------------

    def put(self, path: str, data: bytes, expected: bytes | None) -> None:
        """Replace a file that still holds `expected` (None: isn't there). Raises Changed, Failed."""
        if self.dry:
            return
        real = os.path.realpath(path)
        try:
            self.make_dirs(os.path.dirname(real))
            self._replace(real, data, expected)
        except OSError as error:
            raise Failed(f"{error.strerror or error}: {error.filename or real}") from error

    def _replace(self, real: str, data: bytes, expected: bytes | None) -> None:
        """Write beside it, look once more, rename over it."""
        temp = os.path.join(os.path.dirname(real), "." + os.path.basename(real) + _SUFFIX)
        mode = _mode(real)
        _unlink(temp)
        descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644 if mode is None else 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
            crash.point("before_replace")
            _same(real, expected)
            os.replace(temp, real)
        except BaseException:
            _unlink(temp)
            raise

    def own(self, what: str, path: str, text: str, detail: str = "", *, quiet: bool = False) -> str:
        """A whole file of ours: written if it differs, and remembered."""
        before, data = read(path), text.encode()
        state = "added" if before is None else "already_present" if before == data else "updated"
        if state != "already_present":
            self.put(path, data, before)
        self.managed.owned[path] = spans.digest(data)
        if not quiet:
            self.tell(what, path, state, detail, text=text if self.dry and state != "already_present" else "")
        return state

    def disown(self, what: str, path: str, marker: str = "", *, quiet: bool = False) -> str:
        """Remove a whole file of ours, if it is there and ours."""
        data = read(path)
        ours = data is not None and (path in self.managed.owned or (bool(marker) and marker.encode() in data))
        if ours and not self.dry:
            os.unlink(path)
        self.managed.owned.pop(path, None)
        state = "removed" if ours else "already_absent"
        if not quiet:
            self.tell(what, path, state)
        return state

    def make_dirs(self, path: str) -> None:
        """Make a directory and remember which ones had to be made."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            os.mkdir(folder, 0o755)
            if folder not in self.managed.dirs:
                self.managed.dirs.append(folder)

    def drop_dirs(self) -> None:
        """Remove the directories that we made and that are empty now."""
        if self.dry:
            return
        for folder in sorted(self.managed.dirs, key=len, reverse=True):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                continue
            self.managed.dirs.remove(folder)

    # --- programs ----------------------------------------------------------------------

    def run(self, command: list[str], env: Mapping[str, str], seconds: int = 60) -> tuple[int, str]:
        """Run a program to its end, with no stdin: its code (-1: it could not be run) and what it said."""
        try:
            done = subprocess.run(
                command,
                env=dict(env),
                cwd=self.data,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return -1, str(error)
        return done.returncode, (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace").strip()


def read(path: str) -> bytes | None:
    """The bytes of a file, None if there is none. Raises Failed for one that can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failed(f"cannot read it: {error.strerror or error}") from error


def _same(path: str, expected: bytes | None) -> None:
    """Raise Changed if the file is no longer what was read."""
    if read(path) != expected:
        raise Changed(path)


def _mode(path: str) -> int | None:
    """The permission bits of a file, None if there is none."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _unlink(path: str) -> None:
    """Remove a file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
