"""Edits of files that belong to others: our entries in, our entries out, nothing else touched.

Keeps true: twice is once, byte for byte; taking out restores the bytes from before where nobody
else wrote since, and removes exactly our entries where somebody did; what we can't read or
understand is refused, untouched.
"""

from __future__ import annotations

import os

from bus.records import Record
from tt.install import hooksfile, spans, work
from tt.install.hooksfile import Memory, Wanted
from tt.install.jsontext import Malformed
from tt.install.work import Changed, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tt.install.work import Work

    Json = dict[str, Any]

_TRIES = 3  # a client may be writing its settings at the same moment


class Dialect(Record):
    """How to change one kind of file: text to text. `add` also gives what `strip` needs to know later."""

    holds: Callable[[str, Any], bool]
    add: Callable[[str, Any], tuple[str, Json]]
    strip: Callable[[str, Json], str]
    blank: Callable[[str], bool]


def _add_json(text: str, wanted: Wanted) -> tuple[str, Json]:
    new, memory = hooksfile.add(text, wanted)
    return new, memory.as_json()


def _strip_json(text: str, memory: Json) -> str:
    return hooksfile.strip(text, Memory.of(memory))


def _blank_json(text: str) -> bool:
    return not hooksfile.root_of(text).value


JSON = Dialect(hooksfile.holds, _add_json, _strip_json, _blank_json)


def merge(run: Work, what: str, path: str, wanted: Any, detail: str = "", dialect: Dialect = JSON) -> str:
    """Put our entries into a foreign file and tell of it; `failed` leaves the file as it is."""
    return _told(run, what, path, detail, lambda: _merge(run, path, wanted, dialect))


def unmerge(run: Work, what: str, path: str, dialect: Dialect = JSON) -> str:
    """Take our entries out of a foreign file and tell of it; a file that was made for us goes."""
    return _told(run, what, path, "", lambda: (_unmerge(run, path, dialect), []))


def _told(run: Work, what: str, path: str, detail: str, step: Callable[[], tuple[str, list[str]]]) -> str:
    """Do an edit, again if another program wrote the file meanwhile, and tell what came of it."""
    why = "another program keeps writing it"
    for _ in range(_TRIES):
        try:
            state, shown = step()
        except Changed:
            continue
        except (Failed, Malformed) as error:
            why = str(error)
            break
        return run.tell(what, path, state, detail, adds=shown)
    return run.tell(what, path, "failed", f"left as it is: {why}")


def _merge(run: Work, path: str, wanted: Any, dialect: Dialect) -> tuple[str, list[str]]:
    """One try."""
    current = work.read(path)
    text = None if current is None else decode(current)
    if text is not None and dialect.holds(text, wanted):
        return "already_present", []
    before = former(run, path, text, dialect)
    new, memory = dialect.add(before or "", wanted)
    changes = spans.between(before or "", new)
    remember(run, path, before, new, memory)
    run.put(path, encode(new), current)
    had_ours = text is not None and text != before
    return "updated" if had_ours else "added", spans.added(new, changes) if run.dry else []


def remember(run: Work, path: str, before: str | None, after: str, memory: Json) -> None:
    """Note how to undo an edit. It is saved first: a crash then leaves a note without an edit, not the reverse."""
    if run.dry:
        return
    run.managed.files[os.path.realpath(path)] = {
        "after": spans.digest(encode(after)),
        "absent": before is None,
        "spans": spans.between(before or "", after),
        "memory": memory,
    }
    run.managed.save()


def former(run: Work, path: str, text: str | None, dialect: Dialect = JSON) -> str | None:
    """The text without our entries, None where there would be no file without us."""
    if text is None:
        return None
    record = run.managed.files.get(os.path.realpath(path)) or {}
    if record.get("after") == spans.digest(encode(text)):
        return None if record.get("absent") else spans.undo(text, record.get("spans", []))
    rest = dialect.strip(text, record.get("memory") or {})
    return None if record.get("absent") and dialect.blank(rest) else rest


def _unmerge(run: Work, path: str, dialect: Dialect) -> str:
    """One try."""
    current = work.read(path)
    text = None if current is None else decode(current)
    before = former(run, path, text, dialect)
    state = "already_absent" if before == text else "removed"
    if before != text:
        write_back(run, path, before, current)
    run.managed.files.pop(os.path.realpath(path), None)
    return state


def write_back(run: Work, path: str, text: str | None, expected: bytes | None) -> None:
    """The file as it was; none where there was none."""
    if run.dry:
        return
    if text is not None:
        run.put(path, encode(text), expected)
    elif work.read(path) == expected:
        os.unlink(os.path.realpath(path))
    else:
        raise Changed(path)


def decode(data: bytes) -> str:
    """The text of a settings file; its byte order mark and line ends stay in it."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("it is not UTF-8 text") from error


def encode(text: str) -> bytes:
    """The bytes of a settings file."""
    return text.encode("utf-8")


def has(path: str, wanted: Any, dialect: Dialect = JSON) -> bool:
    """Whether a file has what is wanted, whoever wrote it; an unreadable one has not."""
    try:
        data = work.read(path)
        return data is not None and dialect.holds(decode(data), wanted)
    except (Failed, Malformed):
        return False


def mentions_us(path: str) -> bool:
    """Whether a file has the marker anywhere, so that it is worth opening for a clean-up."""
    try:
        return hooksfile.MARKER.encode() in (work.read(path) or b"")
    except Failed:
        return False
