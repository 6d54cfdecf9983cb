"""Pieces of text for people: foreign text made harmless, times, events, handoffs.

Whatever somebody else wrote can move no cursor, change no colour and forge no line of ours:
escape sequences and controls are removed, and every line of it is indented.
"""

from __future__ import annotations

import re

from bus import clock, limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Values = Mapping[str, Any]

# Escape sequences first (CSI; OSC, DCS and the like up to their end; two-byte ones), then every
# control that is left, C1 and the bidirectional ones included.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Paint:
    """Colours if they are wanted. Only our own words are painted."""

    def __init__(self, *, on: bool) -> None:
        """Keep whether there are colours."""
        self.on = on

    def __call__(self, words: str, style: str) -> str:
        """The words in a style, or as they are."""
        return f"\x1b[{_STYLES[style]}m{words}\x1b[0m" if self.on and words else words


def clean(foreign: object) -> str:
    """Foreign text with nothing in it but characters, tabs and line ends."""
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", str(foreign)))
    return _CONTROLS.sub("", text)


def word(foreign: object) -> str:
    """Foreign text on one line; a dash for nothing."""
    if foreign is None or foreign == "":
        return "-"
    return " ".join(clean(foreign).split())


def block(foreign: object, indent: int = 4) -> list[str]:
    """Foreign text as indented lines, none left out."""
    return [" " * indent + line for line in clean(foreign).split("\n")]


def labelled(label: str, foreign: object, indent: int = 2) -> list[str]:
    """`label: text`; further lines stand under the text."""
    first, *rest = clean(foreign).split("\n")
    lead = " " * indent + label + ": "
    return [lead + first, *(" " * len(lead) + line for line in rest)]


def ms(iso: object) -> int | None:
    """Milliseconds of an ISO time, None if it is none."""
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(str(iso)).timestamp() * 1000)
    except ValueError:
        return None


def ago(iso: object) -> str:
    """How long ago, or in how long: `just now`, `3 min ago`, `in 44 min`; dates beyond two days."""
    at = ms(iso) if iso else None
    if at is None:
        return word(iso)
    away = at - clock.now()
    if abs(away) >= 2 * limits.DAY:
        return word(iso)[:10]
    if abs(away) < limits.SECOND:
        return "just now"
    return f"in {span(away)}" if away > 0 else f"{span(-away)} ago"


def span(length: int) -> str:
    """A duration in its largest fitting unit."""
    if length < limits.SECOND:
        return f"{length} ms"
    if length < limits.MINUTE:
        return f"{length // limits.SECOND} s"
    if length < limits.HOUR:
        return f"{length // limits.MINUTE} min"
    hours, rest = divmod(length // limits.MINUTE, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def pick(values: Values, *names: str) -> Any:
    """The first of these keys that says something."""
    return next((values[name] for name in names if values.get(name) not in (None, "", [], {})), None)


def several(count: int, one: str, many: str = "") -> str:
    """`1 event`, `3 events`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def table(rows: Iterable[Iterable[object]], indent: int = 2) -> list[str]:
    """Columns under each other, without a trailing space."""
    cells = [[word(cell) if cell != "" else "" for cell in row] for row in rows]
    if not cells:
        return []
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    return [(" " * indent + "  ".join(row)).rstrip() for row in padded]


def wrapped(values: Iterable[object], label: str = "", indent: int = 2) -> list[str]:
    """`label: a, b, c` on as many lines as it takes."""
    import textwrap

    lead = " " * indent
    return textwrap.wrap(
        ", ".join(map(word, values)), 100, initial_indent=lead + label, subsequent_indent=lead + " " * len(label)
    )


def handoff(value: Any, indent: int = 4) -> list[str]:
    """A handoff as an envelope shows it: status, next, artifacts, questions, what not to do."""
    if not isinstance(value, dict):
        return block(value, indent) if value else []
    lines: list[str] = []
    for label, name in (("status", "status"), ("next", "next_action")):
        if value.get(name):
            lines += labelled(label, value[name], indent)
    for artifact in value.get("artifacts") or []:
        lines += labelled("artifact", _artifact(artifact), indent)
    for label, name in (("question", "open_questions"), ("do not", "do_not")):
        for entry in value.get(name) or []:
            lines += labelled(label, entry, indent)
    if value.get("verification"):
        lines += labelled("verified", value["verification"], indent)
    return lines


def _artifact(value: Any) -> str:
    """`path:lines (role) note`."""
    if not isinstance(value, dict):
        return word(value)
    lines = f":{word(value['lines'])}" if value.get("lines") else ""
    role = f" ({word(value['role'])})" if value.get("role") else ""
    note = f" – {word(value['note'])}" if value.get("note") else ""
    return f"{word(value.get('path'))}{lines}{role}{note}"


def events(values: Iterable[Values], paint: Paint) -> list[str]:
    """Events, oldest first."""
    lines: list[str] = []
    for value in values:
        lines += event(value, paint)
    return lines


# What the head of an event shows; everything else in it is its content.
_HEAD = {
    "event_seq",
    "event_id",
    "type",
    "from",
    "from_station",
    "to",
    "created_at",
    "room",
    "turn_id",
    "thread",
    "interrupt",
    "in_reply_to",
    "agent_id",
}

# What the text of a ticket or a question says already.
_TOLD = ("ticket_id", "ask_id", "state", "title", "options")


def event(value: Values, paint: Paint) -> list[str]:
    """`#12 claude:ab (expo) → you  2 min ago`, and below it, indented, what it says."""
    head = [paint(f"#{word(value.get('event_seq'))}", "cyan")]
    kind = value.get("type")
    if kind != "message":
        head.append(word(kind))
    station = f" ({word(value['from_station'])})" if value.get("from_station") else ""
    whom = value.get("to")
    names = ", ".join(word(one) for one in whom) if isinstance(whom, list) else word(whom)
    shown = "" if names in ("-", "log", "next_holder") else f" → {names}"
    head.append(f"{word(value.get('from'))}{station}{shown}")
    if value.get("interrupt"):
        head.append(paint("urgent", "red"))
    return [" ".join(head) + paint(f"  {ago(value.get('created_at'))}", "dim"), *_content(value)]


def _content(value: Values) -> list[str]:
    """What an event says: its text, its handoff, its other fields."""
    lines = block(value["text"]) if value.get("text") else []
    lines += handoff(value.get("handoff"))
    told = _TOLD if value.get("text") else ()
    for key, entry in value.items():
        if key not in _HEAD and key not in ("text", "handoff", "handoffs", *told) and entry not in (None, "", [], {}):
            lines += ["  " + line for line in _fact(key, entry)]
    whose = value.get("agent_id")
    if whose and whose != value.get("from"):
        lines.append(f"    who: {word(whose)}")
    return lines


def facts(values: Values, skip: Iterable[str] = ()) -> list[str]:
    """Fields as they are, for what has no text of its own."""
    lines: list[str] = []
    left_out = {"status", "hint", *skip}
    for key, value in values.items():
        if key in left_out or value is None or value in ("", [], {}):
            continue
        lines += _fact(key, value)
    return lines


def _fact(key: str, value: Any) -> list[str]:
    """One field: lists and objects one entry a line."""
    label = word(key.replace("_", " "))
    if isinstance(value, dict):
        inner = [f"{word(name)} {short(name, entry)}" for name, entry in value.items() if entry is not None]
        return [f"  {label}: {', '.join(inner)}"]
    if isinstance(value, list):
        return [f"  {label}: {', '.join(short(key, entry) for entry in value)}"]
    if isinstance(value, str) and "\n" in value:
        return [f"  {label}:", *block(value)]
    return [f"  {label}: {short(key, value)}"]


def short(name: str, value: Any) -> str:
    """A value within a line: yes and no, times relative."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{word(key)} {short(key, entry)}" for key, entry in value.items()) + ")"
    if name.endswith(("_at", "_until")) and isinstance(value, str):
        return ago(value)
    if name.endswith("_until") and isinstance(value, int):
        return ago(clock.iso(value))
    return word(value)
