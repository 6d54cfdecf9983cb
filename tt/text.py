"""Results as text for people. Every result has one; what is unknown is shown field by field.

`tt.text_turns` and `tt.text_views` hold the renderers, `tt.text_parts` what they share. A
renderer takes the result and a `Paint` and gives lines.
"""

from __future__ import annotations

from tt import text_parts as parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from bus.errors import BusError

    Values = Mapping[str, Any]
    Renderer = Callable[[Values, parts.Paint], list[str]]

_RENDERERS = {
    "wait": "text_turns:received",
    "try": "text_turns:received",
    "take": "text_turns:received",
    "inbox": "text_turns:inbox",
    "standby": "text_turns:standby",
    "release": "text_turns:handed_over",
    "pass": "text_turns:handed_over",
    "assign": "text_turns:handed_over",
    "join": "text_views:join",
    "leave": "text_views:leave",
    "kick": "text_views:kick",
    "list": "text_views:rooms",
    "state": "text_views:state",
    "health": "text_health:health",
    "events": "text_views:events",
    "msg recv": "text_views:events",
    "msg send": "text_views:sent",
    "msg reply": "text_views:sent",
    "notes add": "text_views:note",
    "notes resolve": "text_views:note",
    "notes list": "text_views:notes",
    "wakes": "text_health:wakes",
    "whoami": "text_health:whoami",
    "config get": "text_health:config",
    "config set": "text_health:config",
    "config list": "text_health:config",
    "focus": "text_health:focus",
    "ack": "text_health:ack",
    "monitor": "text_health:monitor",
    "stations list": "text_tasks:stations",
    "stations add": "text_tasks:stations",
    "stations remove": "text_tasks:removed",
    "stations attach": "text_tasks:attach",
    "delegate": "text_tasks:ticket",
    "tickets list": "text_tasks:tickets",
    **{f"tickets {verb}": "text_tasks:ticket" for verb in ("show", "assign", "start", "return", "done", "cancel")},
    "ask": "text_tasks:ask",
    "answer": "text_tasks:ask",
    "asks list": "text_tasks:asks",
    "asks escalate": "text_tasks:ask",
    "journal": "text_tasks:journal",
    "board": "text_tasks:board",
    "usage": "text_tasks:usage",
    "install": "text_setup:installed",
    "uninstall": "text_setup:installed",
    "instructions show": "text_setup:instructions",
    "instructions edit": "text_setup:instructions",
    "instructions update": "text_setup:instructions",
    "instructions reset": "text_setup:instructions",
    "self-update": "text_setup:self_update",
    "schema": "text_setup:schema",
}


# Lists that their renderers show whole.
_SHOWN = (
    *("events", "handoff", "handoffs", "members", "rooms", "notes"),
    *("stations", "tickets", "asks", "entries", "peers", "usage"),
)


def render(args: Values, value: Values, paint: bool) -> str:
    """The whole text of a result, its hint last; with `--verbose` every field there is."""
    brush = parts.Paint(on=paint)
    name = _RENDERERS.get(args.get("command", ""))
    lines = _load(name)(value, brush) if name else _plain(value, brush)
    if args.get("verbose") and name:
        lines += ["", *parts.facts(value, _SHOWN)]
    if value.get("hint"):
        lines += parts.labelled(brush("hint", "yellow"), value["hint"], 0)
    return "\n".join(lines)


def render_item(value: Values, paint: bool) -> str:
    """One object of a stream: an event, or what ends it."""
    brush = parts.Paint(on=paint)
    if parts.pick(value, "event_seq", "seq") is not None:
        return "\n".join(parts.event(value, brush))
    return "\n".join(_plain(value, brush))


def render_error(problem: BusError, paint: bool) -> str:
    """One line, and a hint. Messages quote what users and agents gave."""
    brush = parts.Paint(on=paint)
    said = f"{problem.message} {problem.hint}".replace(",", " ").replace("?", " ").split()
    lines = [f"{brush('tt:', 'red')} {parts.word(problem.message)}"]
    for name in ("candidates", "nearest", "suggestions"):
        unsaid = [one for one in map(parts.word, problem.details.get(name) or ()) if one not in said]
        if unsaid:
            lines.append("  " + ", ".join(unsaid))
    if problem.hint:
        lines.append(f"{brush('hint', 'yellow')}: {parts.word(problem.hint)}")
    return "\n".join(lines)


def _load(name: str) -> Renderer:
    """The renderer of a name; loaded when its text is wanted."""
    module, _, function = name.partition(":")
    found: Renderer = getattr(__import__("tt." + module, fromlist=[function]), function)
    return found


def _plain(value: Values, brush: parts.Paint) -> list[str]:
    """Status and fields."""
    return [brush(parts.word(value.get("status")), "bold"), *parts.facts(value)]
