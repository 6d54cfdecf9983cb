"""One string in a list of a TOML file, put in and taken out as text: Codex's `writable_roots`.

The result is parsed and compared with what was meant; whatever the text does not allow simply
(dotted keys, inline tables) is refused, untouched, with the line to write by hand.
"""

from __future__ import annotations

import json
import re
import tomllib

from bus.records import Record
from tt.install.jsontext import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Entry(Record):
    """`value` in the list `key` of the table `table`."""

    table: str
    key: str
    value: str

    def line(self) -> str:
        """How it looks, to be shown to people."""
        return f"[{self.table}]\n{self.key} = [{_quoted(self.value)}]"


def _quoted(value: str) -> str:
    """A TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(value, ensure_ascii=False)


def _parse(text: str) -> Json:
    """The file's values."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Malformed(f"it is no valid TOML: {error}") from error


def _list(values: Json, entry: Entry) -> list[Any] | None:
    """The list, None if there is none."""
    table = values.get(entry.table)
    found = table.get(entry.key) if isinstance(table, dict) else None
    return found if isinstance(found, list) else None


def holds(text: str, entry: Entry) -> bool:
    """Whether the value is in the list."""
    return entry.value in (_list(_parse(text), entry) or [])


def blank(text: str) -> bool:
    """Whether nothing is set in the file."""
    return not _parse(text)


def add(text: str, entry: Entry) -> tuple[str, Json]:
    """The text with the value first in its list, and what `strip` needs."""
    values = _parse(text)
    had = _list(values, entry)
    new = _add(text, entry, in_list=had is not None)
    want: Json = {**values, entry.table: {**values.get(entry.table, {}), entry.key: [entry.value, *(had or [])]}}
    if _parse_or_none(new) != want:
        raise Malformed(f"write this into it by hand: {' '.join(entry.line().split())}")
    memory = {"table": entry.table, "key": entry.key, "value": entry.value, "list": had is not None}
    return new, {**memory, "table_was": entry.table in values}


def _parse_or_none(text: str) -> Json | None:
    """The file's values, None if our edit broke it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _add(text: str, entry: Entry, *, in_list: bool) -> str:
    """Into the list, or a list into the table, or a table at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    header = _header(text, entry)
    if header is None:
        gap = "" if not text or text.endswith("\n\n") else newline if text.endswith("\n") else newline * 2
        return text + gap + entry.line().replace("\n", newline) + newline
    start, end = header.end(), _section_end(text, header.end())
    if not in_list:
        return text[:start] + newline + f"{entry.key} = [{_quoted(entry.value)}]" + text[start:]
    opener = re.compile(rf"^[ \t]*{re.escape(entry.key)}[ \t]*=[ \t]*\[", re.MULTILINE).search(text, start, end)
    if opener is None:
        return text
    rest = text[opener.end() :]
    comma = "" if rest.lstrip().startswith("]") else ", "
    return text[: opener.end()] + _quoted(entry.value) + comma + rest


def _header(text: str, entry: Entry) -> re.Match[str] | None:
    """The line that opens the table, without its line end."""
    return re.compile(rf"^[ \t]*\[[ \t]*{re.escape(entry.table)}[ \t]*\][^\r\n]*", re.MULTILINE).search(text)


def _section_end(text: str, start: int) -> int:
    """Where the next table begins."""
    found = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, start)
    return found.start() if found else len(text)


def strip(text: str, memory: Json) -> str:
    """The text without the value; without the list and the table too if we had made them and they hold no more."""
    if not memory or not text:
        return text
    entry = Entry(memory["table"], memory["key"], memory["value"])
    if not holds(text, entry):
        return text
    quoted = re.escape(_quoted(entry.value))
    shorter = re.sub(rf"{quoted}[ \t]*,[ \t]*|,?[ \t]*{quoted}", "", text, count=1)
    if not memory["list"]:
        shorter = re.sub(
            rf"^[ \t]*{re.escape(entry.key)}[ \t]*=[ \t]*\[\s*\][ \t]*\r?\n", "", shorter, count=1, flags=re.MULTILINE
        )
    if not memory["table_was"] and not _parse(shorter).get(entry.table):
        shorter = re.sub(rf"(\r?\n)?^\[{re.escape(entry.table)}\][ \t]*\r?\n", "", shorter, count=1, flags=re.MULTILINE)
    left = _parse_or_none(shorter)
    if left is None or entry.value in (_list(left, entry) or []):
        raise Malformed(f"take {_quoted(entry.value)} out of {entry.key} by hand")
    return shorter
