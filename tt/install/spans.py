"""What an edit changed, small enough to remember and exact enough to undo.

Only what we replaced is kept, never the rest of the file: settings hold other people's secrets.
"""

from __future__ import annotations

import difflib
import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Span = tuple[int, int, str]


def digest(data: bytes | str | None) -> str:
    """A short name of these bytes; of a file that isn't there an empty one."""
    if data is None:
        return ""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:32]


def between(before: str, after: str) -> list[Span]:
    """(place in `after`, length there, text of `before`) for every difference, in order."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found: list[Span] = []
    places = [0]
    for line in new:
        places.append(places[-1] + len(line))
    for tag, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            was, now = "".join(old[old_from:old_to]), after[places[new_from] : places[new_to]]
            found.append(_narrow(places[new_from], was, now))
    return found


def _narrow(at: int, was: str, now: str) -> Span:
    """The same difference without what both begin and end with: a foreign line is not kept for a comma."""
    head = 0
    while head < min(len(was), len(now)) and was[head] == now[head]:
        head += 1
    tail = 0
    while tail < min(len(was), len(now)) - head and was[-1 - tail] == now[-1 - tail]:
        tail += 1
    return at + head, len(now) - head - tail, was[head : len(was) - tail]


def undo(after: str, spans: Sequence[Sequence[int | str]]) -> str:
    """`before` again."""
    for at, length, was in sorted(((int(a), int(b), str(c)) for a, b, c in spans), reverse=True):
        after = after[:at] + was + after[at + length :]
    return after


def added(after: str, spans: Sequence[Span]) -> list[str]:
    """What an edit put in, for people to read; nothing of what was there."""
    return [after[at : at + length].strip() for at, length, _ in spans if after[at : at + length].strip(" \r\n,")]
