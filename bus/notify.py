"""Lines of notify files: one appended record per wake, for monitors that follow the file.

A line is always exactly one line of valid UTF-8, at most `limits.NOTIFY_BYTES` long, with
two tabs: text of one agent can't forge a second line, a sender or terminal control for
another. A side channel: correctness lives in the store.
"""

from __future__ import annotations

import os

from bus import clock, limits

_SENDER_BYTES = 128  # the longest id fits; more could only push the subject out
_SETTLED = 1000  # ms since the last write: whoever wrote has finished or failed
_CUT = "…"
# Printable by the letter of Unicode, yet they show nothing: what looks equal must be equal.
_BLANK = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),  # combining grapheme joiner
        (0x115F, 0x1160),  # Hangul fillers
        (0x17B4, 0x17B5),  # Khmer inherent vowels
        (0x180B, 0x180F),  # Mongolian variation selectors
        (0x2800, 0x2800),  # empty braille pattern
        (0x3164, 0x3164),  # Hangul filler
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
        (0xE0100, 0xE01EF),  # more variation selectors
    )
    for code in range(first, last + 1)
)


def line(at_ms: int, sender: str, subject: str) -> bytes:
    """`ISO-timestamp TAB sender TAB subject LF`, cut at a character border where too long.

    `at_ms`: milliseconds UTC. Any text is fine, lone surrogates included.
    """
    head = f"{clock.iso(at_ms)}\t{_cut(fold(sender), _SENDER_BYTES) or '?'}\t"
    room = limits.NOTIFY_BYTES - len(head.encode()) - 1
    return f"{head}{_cut(fold(subject), room)}\n".encode()


def fold(text: str) -> str:
    """The text as one visible line: whatever can't be seen becomes one space.

    Controls, tabs, line ends, bidi marks, zero-width and other invisible characters, lone
    surrogates and unassigned code points are not seen. Only the start of a long text is read.
    """
    start = text[: 4 * limits.NOTIFY_BYTES]
    if start.isascii() and start.isprintable():
        return " ".join(start.split())
    return " ".join("".join(char if _visible(char) else " " for char in start).split())


def append(path: str, data: bytes) -> bool:
    """Append with one write; False where it could not be written whole. Never raises OSError.

    The file is made (0600) where missing, its directory is not. Without data it is only made:
    whoever follows the file needs it first.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        whole = _on_new_line(fd, data) if data else data
        return not whole or os.write(fd, whole) == len(whole)
    except OSError:
        return False
    finally:
        os.close(fd)


def _visible(char: str) -> bool:
    """Whether the character shows; `isprintable` is false for every control and format character."""
    return char.isprintable() and char not in _BLANK


def _cut(text: str, room: int) -> str:
    """The text in at most `room` UTF-8 bytes; a cut shows as an ellipsis."""
    data = text.encode()
    if len(data) <= room:
        return text
    kept = data[: max(0, room - len(_CUT.encode()))].decode(errors="ignore").rstrip()
    return kept + _CUT if room >= len(_CUT.encode()) else ""


def _on_new_line(fd: int, data: bytes) -> bytes:
    """The data, behind a line end if a full disk had cut the line before it short.

    A file that just changed may show a line that another process is in the middle of writing
    (size grows page by page): that is no torn line, and an empty one would be a wake of its own.
    """
    found = os.fstat(fd)
    if not found.st_size or clock.now() - found.st_mtime_ns // 1_000_000 < _SETTLED:
        return data
    torn = os.pread(fd, 1, found.st_size - 1) != b"\n"
    return b"\n" + data if torn else data
