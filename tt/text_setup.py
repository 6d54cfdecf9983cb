"""Text of `install`, `uninstall`, `instructions …` and `self-update`."""

from __future__ import annotations

from tt import text_parts as parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Values = Mapping[str, Any]

_STYLES = {"added": "green", "updated": "green", "removed": "green", "failed": "red", "skipped": "yellow"}


def installed(value: Values, paint: parts.Paint) -> list[str]:
    """One line for each thing, and below it what there is to know; with --print what would be written."""
    lines: list[str] = []
    if value.get("status") == "planned":
        lines.append(paint("Nothing is changed; this is what would be done.", "bold"))
    for line in value.get("results", []):
        state = parts.word(line.get("state"))
        head = f"{paint(state.ljust(15), _STYLES.get(state, 'dim'))} {parts.word(line.get('harness'))}"
        lines.append(f"{head} {parts.word(line.get('what'))}  {parts.word(line.get('path'))}")
        if line.get("detail"):
            lines += parts.block(line["detail"])
        for command in line.get("commands", []):
            lines += parts.labelled("run", command, 4)
        for words in [*line.get("adds", []), *([line["text"]] if line.get("text") else [])]:
            lines += parts.block(str(words).rstrip(), 8)
    return lines


def instructions(value: Values, _paint: parts.Paint) -> list[str]:
    """The text itself; of a change, what became of which file."""
    if "text" in value:
        return parts.block(str(value["text"]).rstrip("\n"), 0) if value["text"] else ["(this layer has no file)"]
    return [f"{parts.word(value.get('state')).replace('_', ' ')}: {parts.word(value.get('path'))}"]


def self_update(value: Values, _paint: parts.Paint) -> list[str]:
    """The command, and whether it ran."""
    words = " ".join(parts.word(one) for one in value.get("command", []))
    return [f"{'Ran' if value.get('ran') else 'To update, run'}: {words}"]


def schema(value: Values, paint: parts.Paint) -> list[str]:
    """Each command, below it its statuses with the keys they have; then the parts and the codes."""
    lines: list[str] = []
    for title, statuses in (value.get("commands") or {}).items():
        lines.append(paint(parts.word(title), "bold"))
        for status, keys in statuses.items():
            lines += [f"  {parts.word(status)}", *_keys(keys, 4)]
    for name, keys in (value.get("parts") or {}).items():
        lines += [f"{paint('part', 'dim')} {parts.word(name)}", *_keys(keys, 2)]
    if value.get("error_codes"):
        lines += [paint("error codes", "bold"), *parts.wrapped(value["error_codes"])]
    return lines


def _keys(keys: Values, indent: int) -> list[str]:
    """Which keys are always there, and which sometimes."""
    lines: list[str] = []
    for name in ("always", "sometimes"):
        if keys.get(name):
            lines += parts.wrapped(keys[name], f"{name}: ", indent)
    return lines
