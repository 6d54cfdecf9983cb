"""The envelope: unread events as text that is put before a model. Pure.

Kept true: an unindented line is only ever ours, so no body, sender or path can make a header,
an end or another event; whole events only; what does not fit stays unread.
"""

from __future__ import annotations

from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

HEAD, END = "[talking-stick]", "[/talking-stick]"
LABEL_CHARS = 64
PATH_CHARS = 200
_OFFER = r"(?:id|tt ack) ([0-9a-f]{24})\b"
_UNSAFE = r"[^A-Za-z0-9 ._:@/~+-]"
# Everything that ends a line or hides one, for any reader: controls, separators, bidi and zero-width marks.
# Lone surrogates can't be written as UTF-8: one such body would keep all mail of its reader from being shown.
_HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


class Envelope(Record):
    """`text` as it is shown, `seqs` of the events that are whole in it, `left` how many did not fit."""

    text: str
    seqs: list[int]
    left: int = 0


def build(
    events: list[dict[str, Any]],
    token: str | None,
    *,
    ack: bool,
    max_bytes: int,
    max_events: int,
    bus: str = "",
) -> Envelope:
    """As many whole events as fit, oldest first, one envelope for each room.

    `ack`: the header asks for `tt ack TOKEN` (where no hook reads prompts); without a token it names
    none. One event alone too large gives a body-free line, and `seqs` is empty: it is read with `tt inbox`.
    """
    kept: list[tuple[str, str, int]] = []
    size = 0
    for event in events[:max_events]:
        where = f"room {label(event['room'], PATH_CHARS)}" if event.get("room") else f"bus {label(bus, PATH_CHARS)}"
        text = entry(event)
        size += len(text.encode()) + len(where.encode()) + 120
        if size > max_bytes:
            break
        kept.append((where, text, event["event_seq"]))
    if not kept and events:
        return Envelope(too_large(events[0], bus), [], len(events))
    parts = []
    note = "" if token is None else f" · ack: tt ack {token} --json" if ack else f" · id {token}"
    for where in dict.fromkeys(place for place, _, _ in kept):
        body = "\n".join(text for place, text, _ in kept if place == where)
        parts.append(f"{HEAD} {where}{note}\n{body}\n{END}")
    return Envelope("\n".join(parts), [seq for _, _, seq in kept], len(events) - len(kept))


def too_large(event: dict[str, Any], bus: str) -> str:
    """The fixed line for what cannot be put before a model in one piece, and for cmux."""
    where = label(event.get("room") or bus, PATH_CHARS)
    return f"{HEAD} {label(event['from'])} wrote to you in {where}: read it with `tt wait --json`"


def entry(event: dict[str, Any]) -> str:
    """One event: a head of ours, then everything foreign indented."""
    kind = "" if event["type"] == "message" else f"{label(event['type'])} "
    to = event["to"] if isinstance(event["to"], str) else ",".join(event["to"])
    urgent = " ‼ urgent" if event.get("interrupt") else ""
    head = f"#{event['event_seq']} {kind}{label(event['from'])} → {label(to)}{urgent}"
    return "\n".join([head, *(f"  {line}" for line in lines(event))])


def lines(event: dict[str, Any]) -> Iterable[str]:
    """The content of an event, a line each, without anything that could end or hide a line."""
    if isinstance(event.get("text"), str):
        return clean(event["text"])
    handoff = event.get("handoff")
    if isinstance(handoff, dict):
        return [line for text in _handoff(handoff) for line in clean(text)]
    rest = {key: event[key] for key in ("hint", "reason", "why", "by", "agent_id") if event.get(key)}
    return [line for key, value in rest.items() for line in clean(f"{key}: {value}")]


def _handoff(handoff: dict[str, Any]) -> Iterable[str]:
    """A handoff in words."""
    yield f"status: {handoff.get('status', '')}"
    yield f"next: {handoff.get('next_action', '')}"
    for artifact in handoff.get("artifacts", []):
        if isinstance(artifact, dict):
            yield "artifacts: " + " ".join(str(artifact[key]) for key in ("path", "lines", "note") if artifact.get(key))
        else:
            yield f"artifacts: {artifact}"
    for question in handoff.get("open_questions", []):
        yield f"question: {question}"
    for thing in handoff.get("do_not", []):
        yield f"do not: {thing}"
    if handoff.get("verification"):
        yield f"verification: {handoff['verification']}"


def clean(text: str) -> list[str]:
    """Foreign text as lines: every kind of line end ends one, what is invisible is dropped."""
    import re  # enum and all: 8 ms that only who builds an envelope pays

    found = re.split("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text.replace("\t", "    "))
    return [re.sub(_HIDDEN, "", line) for line in found]


def label(text: str, most: int = LABEL_CHARS) -> str:
    """A name or path in one of our own lines: only harmless characters, bounded."""
    import re

    return re.sub(_UNSAFE, "_", text)[:most]


def tokens(prompt: str) -> list[str]:
    """The envelope tokens that a prompt carries. They are unguessable, so where they stand does not matter."""
    if HEAD not in prompt:
        return []
    import re

    return list(dict.fromkeys(re.findall(_OFFER, prompt)))[:50]
