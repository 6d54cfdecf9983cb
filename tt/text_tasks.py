"""Text of stations, tickets, questions, journal, board and usage."""

from __future__ import annotations

from tt import text_parts as parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Values = Mapping[str, Any]

_STATES = {"queued": "yellow", "assigned": "cyan", "in_progress": "cyan", "returned": "yellow", "done": "green"}
_TITLE_CHARS = 72


def stations(value: Values, paint: parts.Paint) -> list[str]:
    """One line for each station: where it is, who is there."""
    found = value.get("stations") or []
    lines = [f"{paint('topology', 'bold')}: {parts.word(value.get('topology'))}"]
    if value.get("status") == "planned":
        lines[0] = paint("Nothing is changed; this is what would be made.", "bold")
    elif value.get("status") == "stations_added":
        lines = [paint(f"Made {parts.several(len(found), 'station')}", "green"), *lines]
    rows = [
        (
            one.get("station"),
            ", ".join(parts.word(agent) for agent in one.get("agents") or []) or "nobody",
            one.get("path"),
        )
        if "agents" in one
        else (one.get("station"), one.get("path"), one.get("branch"))
        for one in found
    ]
    lines += parts.table(rows) or ["  no stations (tt stations add makes one)"]
    if value.get("seed"):
        lines += parts.labelled("seeded in each", value.get("seed_path"), 0)
        lines += parts.block(str(value["seed"]).rstrip())
    if value.get("warning"):
        lines.append(f"{paint('warning', 'yellow')}: {parts.word(value['warning'])}")
    return lines


def removed(value: Values, paint: parts.Paint) -> list[str]:
    """The worktree and its branch are gone."""
    what = f"{parts.word(value.get('path'))} and branch {parts.word(value.get('branch'))}"
    return [paint(f"Removed {parts.word(value.get('station'))}", "green") + f": {what}"]


def attach(value: Values, _paint: parts.Paint) -> list[str]:
    """The command alone, ready to copy."""
    return [parts.word(value.get("command"))]


def ticket(value: Values, paint: parts.Paint) -> list[str]:
    """One ticket with all of its text."""
    lines = [_head(value, paint, "ticket_id")]
    made = f"by {parts.word(value.get('creator'))} {parts.ago(value.get('created_at'))}"
    lines.append(f"  {made}, changed {parts.ago(value.get('changed_at'))}")
    for label, name in (("thread", "thread"), ("body", "body")):
        if value.get(name):
            lines += parts.labelled(label, value[name])
    return lines + _outcome(value) + _delivered(value)


def tickets(value: Values, paint: parts.Paint) -> list[str]:
    """One line for each ticket."""
    found = value.get("tickets") or []
    if not found:
        return ["No tickets"]
    return [_head(one, paint, "ticket_id") for one in found] + _more(value)


def _head(one: Values, paint: parts.Paint, key: str) -> str:
    """`t-12ab  in_progress  station-1 (claude:1a)  title`."""
    state = parts.word(one.get("state"))
    style = _STATES.get(state)
    shown = paint(state, style) if style else state
    if one.get("stalled"):
        shown += paint(" stalled", "red")
    whom = parts.word(one.get("assignee")) if one.get("assignee") else "nobody"
    holder = one.get("holder")
    who = f"{whom} ({parts.word(holder)})" if holder and holder != one.get("assignee") else whom
    urgent = f" {parts.word(one['priority'])}" if one.get("priority") not in (None, "normal") else ""
    title = parts.word(one.get("title"))
    title = title if len(title) <= _TITLE_CHARS or "status" in one else title[: _TITLE_CHARS - 1] + "…"
    return f"{paint(parts.word(one.get(key)), 'cyan')}  {shown}{urgent}  → {who}  {title}"


def _outcome(value: Values) -> list[str]:
    """The result or answer, whole."""
    if value.get("result") is None:
        return []
    return [*parts.labelled("result", value["result"]), f"  by {parts.word(value.get('result_by'))}"]


def _delivered(value: Values) -> list[str]:
    """What became of the wake, where there was one."""
    from tt.text_turns import delivery

    return delivery(value)


def _more(value: Values) -> list[str]:
    """That a list was cut."""
    return ["there are older ones"] if value.get("more") else []


def ask(value: Values, paint: parts.Paint) -> list[str]:
    """One question with its options and its answer."""
    lines = [_head(value, paint, "ask_id")]
    if value.get("body"):
        lines += parts.block(value["body"])
    for option in value.get("options") or []:
        label = parts.word(option.get("label"))
        lines += parts.labelled(label, option["text"], 4) if option.get("text") else [f"    {label}"]
    if value.get("result") is not None:
        lines += parts.labelled("answer", value["result"])
        lines.append(f"  by {parts.word(value.get('result_by'))}")
    return lines + _delivered(value)


def asks(value: Values, paint: parts.Paint) -> list[str]:
    """Every question with what can be answered."""
    found = value.get("asks") or []
    if not found:
        return ["No open questions"]
    return [line for one in found for line in ask(one, paint)] + _more(value)


def journal(value: Values, paint: parts.Paint) -> list[str]:
    """What happened, oldest first, one line each."""
    from bus.operations.journal import line

    found = value.get("entries") or []
    lines = [
        f"{paint(parts.ago(one.get('created_at')), 'dim')}  {parts.word(one.get('from'))} {parts.word(line(one))}"
        for one in found
    ]
    head = ["there are older ones: use --limit"] if value.get("more") else []
    return head + (lines or ["Nothing happened in this time"])


def board(value: Values, paint: parts.Paint) -> list[str]:
    """Peers, collisions, mail, tickets, questions; a delta as it is; `unchanged` in one line."""
    if value.get("status") == "delta":
        return parts.block(value["text"], 0) if value.get("text") else ["Nothing new"]
    if value.get("status") == "unchanged":
        return [f"unchanged ({parts.word(value.get('state_hash'))})"]
    station = f" at {parts.word(value['station'])}" if value.get("station") else ""
    lines = [f"{paint(parts.word(value.get('agent_id')), 'bold')}{station}, {parts.word(value.get('topology'))}"]
    lines += _peers(value, paint)
    for peer, files in (value.get("collisions") or {}).items():
        names = ", ".join(parts.word(name) for name in files)
        lines.append(f"{paint('collision', 'red')} with {parts.word(peer)}: {names}")
    if value.get("unread"):
        lines.append(f"{paint('mail', 'bold')}: {parts.several(value['unread'], 'unread event')} (tt inbox)")
    for name, key in (("tickets", "ticket_id"), ("asks", "ask_id")):
        if value.get(name):
            lines.append(paint(name, "bold"))
            lines += ["  " + _head(one, paint, key) for one in value[name]]
    if value.get("usage"):
        total = sum(int(one.get("output_tokens") or 0) for one in value["usage"])
        lines.append(f"{paint('sub-agents', 'bold')}: {total} output tokens in seven days (tt usage)")
    return [*lines, paint(f"state hash {parts.word(value.get('state_hash'))}", "dim")]


def _peers(value: Values, paint: parts.Paint) -> list[str]:
    """Who else is here, and how."""
    rows = [
        (
            one.get("agent_id"),
            one.get("station"),
            one.get("state"),
            one.get("branch"),
            f"{parts.several(one['changed'], 'changed file')}" if one.get("changed") else "",
            parts.word(one["focus"]) if one.get("focus") else "",
        )
        for one in value.get("peers") or []
    ]
    return [paint("peers", "bold"), *parts.table(rows)] if rows else ["nobody else is here"]


def usage(value: Values, _paint: parts.Paint) -> list[str]:
    """Tokens, the most expensive first."""
    rows = [
        (one.get("agent_id"), one.get("agent_type"), f"{one.get('output_tokens')} tokens", f"{one.get('samples')} runs")
        for one in value.get("usage") or []
    ]
    return [*parts.table(rows, 0), f"{value.get('output_tokens', 0)} tokens in all"] if rows else ["No sub-agents ran"]
