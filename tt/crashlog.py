"""Paste-ready logs of unexpected errors: bounded in size and number, without anybody's words.

A log has versions, the words of the command and the traceback. Message bodies, handoffs, paths
given as arguments and the environment stay out of it, since people paste it into public places.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BYTES = 64 * 1024
MOST_FILES = 10
_VERBS = 2  # a command has at most two words


def write(words: Sequence[str], error: BaseException) -> str | None:
    """Write one log; its path, or None where nothing can be written."""
    text = describe(words, error).encode("utf-8", "backslashreplace")
    if len(text) > MOST_BYTES:  # a recursion repeats itself: both ends say enough
        half = MOST_BYTES // 2
        text = text[:half] + b"\n  [...]\n" + text[-half:]
    for directory in _directories():
        path = _try_write(directory, text)
        if path:
            return path
    return None


def describe(words: Sequence[str], error: BaseException) -> str:
    """What to paste: versions, the shape of the call, the traceback."""
    import platform
    import traceback

    from tt import __version__

    trace = "".join(traceback.format_exception(error))
    return (
        f"tt {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"call: tt {_shape(words)}\n\n{trace}"
    )


def _shape(words: Sequence[str]) -> str:
    """The call with options and command words kept, everything else as its length."""
    from tt import grammar, table

    known = {word for command in table.COMMANDS for word in (*command.words, *command.aliases)}
    flags = {option.flag for command in table.COMMANDS for option in grammar.options_of(command)}
    shown = []
    verbs = 0  # nobody's words are shown, even if they happen to be the name of a command
    for word in words:
        flag = word.partition("=")[0]
        if flag in flags:
            shown.append(flag)
        elif verbs < _VERBS and word in known:
            shown.append(word)
            verbs += 1
        else:
            verbs = _VERBS
            shown.append(f"<{len(word)} characters>")
    return " ".join(shown)


def _directories() -> list[str]:
    """The log directory of the data directory, else the system's temporary one."""
    import tempfile

    found = []
    try:
        from bus.places import data_dir

        found.append(os.path.join(data_dir(os.environ), "log"))
    except Exception:  # noqa: BLE001, S110  # a broken data directory may be the very error
        pass
    return [*found, tempfile.gettempdir()]


def _try_write(directory: str, text: bytes) -> str | None:
    """Make one new private file; None if that fails. O_EXCL: a planted link is not followed."""
    name = f"tt-error-{_stamp()}-{os.getpid()}-{os.urandom(3).hex()}.log"
    path = os.path.join(directory, name)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, text)
        finally:
            os.close(fd)
        _forget_old(directory)
    except OSError:
        return None
    return path


def _stamp() -> str:
    """The time as it can stand in a file name, so that names sort by age."""
    from bus import clock

    return clock.iso(clock.now()).replace(":", "").replace("-", "")


def _forget_old(directory: str) -> None:
    """Keep the newest of our own logs."""
    own = sorted(name for name in os.listdir(directory) if name.startswith("tt-error-"))
    for name in own[:-MOST_FILES]:
        os.unlink(os.path.join(directory, name))
