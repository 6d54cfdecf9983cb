"""JSON as text with positions: one member or item goes in or out, every other byte stays.

Comments and trailing commas are read, because people write them. An edit never re-serialises
what it didn't make, so key order, comments, numbers and blanks of others survive.
"""

from __future__ import annotations

import json
import re

from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GAP = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_DEPTH = 200  # deeper than any settings; Python's own limit comes later
_PAIRS = {"{": "}", "[": "]"}


class Malformed(ValueError):  # noqa: N818  # told as a line of its own
    """The text is no JSON that we would dare to change."""


class Entry(Record):
    """A member of an object, or an item of an array (`key` None). `start` is where its key begins."""

    key: str | None
    start: int
    node: Node


class Node(Record):
    """A value with its place in the text: `text[start:end]`. `entries` only of objects and arrays."""

    start: int
    end: int
    value: Any
    entries: list[Entry] = []  # noqa: RUF012  # a record's default is never changed in place

    def get(self, key: str) -> Node | None:
        """The value of a member; Malformed if the key is there twice, since programs differ about that."""
        found = [entry.node for entry in self.entries if entry.key == key]
        if len(found) > 1:
            raise Malformed(f"the key {key!r} is there {len(found)} times")
        return found[0] if found else None


def parse(text: str) -> Node:
    """The whole text as one value. Malformed says what is wrong and in which line."""
    reader = _Reader(text)
    node = reader.value(reader.gap(0), 0)
    end = reader.gap(node.end)
    if end != len(text):
        raise reader.wrong(end, "something follows the end")
    return node


class _Reader:
    """Recursive descent; positions in, positions out."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.decoder = json.JSONDecoder()

    def wrong(self, at: int, what: str) -> Malformed:
        """An error with its line."""
        return Malformed(f"{what} (line {self.text.count(chr(10), 0, at) + 1})")

    def gap(self, at: int) -> int:
        """Where blanks and comments end."""
        found = _GAP.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Node:
        """The value that begins here."""
        opener = self.text[at : at + 1]
        if depth > _DEPTH:
            raise self.wrong(at, "nested too deeply")
        if opener in ("{", "["):
            return self._container(at, opener, depth)
        if opener == '"' or _SCALAR.match(self.text, at):
            return self._scalar(at)
        raise self.wrong(at, "a value is missing" if opener else "the text ends too early")

    def _scalar(self, at: int) -> Node:
        """A string, number or word."""
        try:
            value, end = self.decoder.raw_decode(self.text, at)
        except ValueError as error:
            raise self.wrong(at, str(error).partition(":")[0]) from error
        return Node(at, end, value)

    def _container(self, at: int, opener: str, depth: int) -> Node:
        """An object or array."""
        entries: list[Entry] = []
        closer, pos = _PAIRS[opener], self.gap(at + 1)
        while self.text[pos : pos + 1] != closer:
            entry = self._entry(pos, opener, depth)
            entries.append(entry)
            pos = self.gap(entry.node.end)
            if self.text[pos : pos + 1] == ",":
                pos = self.gap(pos + 1)
            elif self.text[pos : pos + 1] != closer:
                raise self.wrong(pos, f"a comma or {closer} is missing")
        value: Any = [entry.node.value for entry in entries]
        if opener == "{":
            value = {entry.key: entry.node.value for entry in entries}
        return Node(at, pos + 1, value, entries)

    def _entry(self, at: int, opener: str, depth: int) -> Entry:
        """One member or item."""
        if opener == "[":
            return Entry(None, at, self.value(at, depth + 1))
        if self.text[at : at + 1] != '"':
            raise self.wrong(at, "a key is missing")
        key = self._scalar(at)
        colon = self.gap(key.end)
        if self.text[colon : colon + 1] != ":":
            raise self.wrong(colon, "a colon is missing")
        return Entry(key.value, at, self.value(self.gap(colon + 1), depth + 1))


class Style(Record):
    """How a file is written: line end, indent of one level, several lines or one, blanks after colons."""

    newline: str
    unit: str
    several: bool
    tight: bool


def style(text: str, root: Node) -> Style:
    """Read the style off a text; ours where there is nothing to read."""
    newline = "\r\n" if "\r\n" in text else "\n"
    several = "\n" in text[root.start : root.end] or not root.entries
    unit = _lead(text, root.entries[0].start) if root.entries else None
    return Style(newline, unit or "  ", several, not several and '": ' not in text)


def insert(text: str, node: Node, key: str | None, value: object, depth: int) -> str:
    """Put a member or item at the end of a container. `depth` is that of the container, the root's is 0."""
    look = style(text, parse(text))
    head = "" if key is None else json.dumps(key, ensure_ascii=False) + (":" if look.tight else ": ")
    if not (look.several if not node.entries else "\n" in text[node.start : node.end]):
        return _insert_inline(text, node, head + _inline(value, look), look)
    first = _lead(text, node.entries[0].start) if node.entries else None
    lead = look.unit * (depth + 1) if first is None else first
    shown = look.newline + lead + head + _block(value, lead, look)
    return _insert_block(text, node, shown, look.newline + look.unit * depth)


def replace(text: str, node: Node, value: object, depth: int) -> str:
    """Another value in the place of this one."""
    look = style(text, parse(text))
    shown = _block(value, look.unit * depth, look) if look.several else _inline(value, look)
    return text[: node.start] + shown + text[node.end :]


def _inline(value: object, look: Style) -> str:
    """A value on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if look.tight else None)


def _block(value: object, lead: str, look: Style) -> str:
    """A value on several lines, all but the first led in."""
    shown = json.dumps(value, ensure_ascii=False, indent=look.unit)
    return shown.replace("\n", look.newline + lead)


def _lead(text: str, at: int) -> str | None:
    """The blanks before this place, if nothing else stands before it on its line."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if "\n" in text[:at] and not before.strip() else None


def _comma(text: str, entry: Entry) -> int | None:
    """Where the comma after an entry is, None if there is none."""
    found = _GAP.match(text, entry.node.end)
    at = found.end() if found else entry.node.end
    return at if text[at : at + 1] == "," else None


def _insert_inline(text: str, node: Node, shown: str, look: Style) -> str:
    """Into a container that stands on one line."""
    if not node.entries:
        return text[: node.start + 1] + shown + text[node.end - 1 :]
    last = node.entries[-1]
    comma = _comma(text, last)
    blank = "" if look.tight else " "
    if comma is not None:
        return text[: comma + 1] + blank + shown + "," + text[comma + 1 :]
    return text[: last.node.end] + "," + blank + shown + text[last.node.end :]


def _insert_block(text: str, node: Node, shown: str, closing: str) -> str:
    """Into a container of several lines, behind the comments that stand after its last entry."""
    closer = node.end - 1
    end = node.start + 1 + len(text[node.start + 1 : closer].rstrip())
    tail = text[end:closer]
    if not node.entries:
        return text[:end] + shown + (tail if "\n" in tail else closing) + text[closer:]
    last = node.entries[-1]
    comma = _comma(text, last)
    if comma is not None:
        return text[:end] + shown + "," + text[end:]
    return text[: last.node.end] + "," + text[last.node.end : end] + shown + text[end:]


def remove(text: str, node: Node, index: int) -> str:
    """Take one member or item out, with the comma and the blanks that came with it."""
    entry = node.entries[index]
    comma = _comma(text, entry)
    end = entry.node.end if comma is None else comma + 1
    start = len(text[: entry.start].rstrip())
    closer = node.end - 1
    if len(node.entries) == 1 and start == node.start + 1 and not text[end:closer].strip():
        return text[:start] + text[closer:]
    if comma is None and index:
        start, end, text = _without_comma_before(text, node.entries[index - 1], start, end)
    if start == node.start + 1 and "\n" not in text[start : entry.start]:
        end += len(text[end:]) - len(text[end:].lstrip(" "))
    kept = text[start : entry.start] if _in_comment(text, start) and not _ends_line(text, end) else ""
    return text[:start] + kept + text[end:]


def _without_comma_before(text: str, previous: Entry, start: int, end: int) -> tuple[int, int, str]:
    """The last entry goes, so the comma behind the one before it goes too."""
    comma = _comma(text, previous)
    if comma is None or comma >= start:
        return start, end, text
    if comma == start - 1:
        return len(text[:comma].rstrip()), end, text
    return start - 1, end - 1, text[:comma] + text[comma + 1 :]


def _in_comment(text: str, at: int) -> bool:
    """Whether this place may be at the end of a line comment: then its line end has to stay."""
    return "//" in text[text.rfind("\n", 0, at) + 1 : at]


def _ends_line(text: str, at: int) -> bool:
    """Whether only blanks follow on this line."""
    return not text[at:].partition("\n")[0].strip()
