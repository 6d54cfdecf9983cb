"""Text of the health card, wakes, whoami, settings and focus."""

from __future__ import annotations

from tt import text_parts as parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Values = Mapping[str, Any]


def health(value: Values, paint: parts.Paint) -> list[str]:
    """One screen: the turn, its guard, my ways of being reached, wakes, git; what to do last."""
    rows = [("me", parts.word(value.get("agent_id"))), ("turn", _turn(value))]
    if value.get("joined") is False:
        rows[0] = ("me", f"{parts.word(value.get('agent_id'))}, not a member")
    guardian = value.get("guardian")
    if guardian:
        rows.append(("guardian", _guardian(guardian)))
    if value.get("reachable") is not None:  # people are not woken
        rows.append(("reachable", _reachable(value)))
    if value.get("unread"):
        rows.append(("unread", parts.several(value["unread"], "event")))
    wake = value.get("wake")
    if isinstance(wake, dict) and wake.get("last"):
        failed = f", {parts.word(wake['error'])}" if wake.get("error") else ""
        rows.append(("last wake", f"{parts.ago(wake['last'])}, {parts.word(wake.get('status'))}{failed}"))
    wakes_ = value.get("wakes")
    if isinstance(wakes_, dict):
        rows.append(("wakes", f"{wakes_.get('last_hour', 0)} in 1 h, {wakes_.get('last_24h', 0)} in 24 h"))
    if value.get("inbound"):
        rows.append(("inbound", _thing(value["inbound"])))
    if isinstance(value.get("git"), dict):
        rows.append(("git", _git(value["git"])))
    lines = [f"{paint(label.ljust(10), 'dim')} {said}" for label, said in rows]
    if value.get("next_action"):
        lines += parts.labelled(paint("next", "bold"), value["next_action"], 0)
    return lines


def _turn(value: Values) -> str:
    """Who has it, until when."""
    owner = value.get("owner")
    if not owner:
        kept = value.get("reserved_for")
        return f"free, reserved for {parts.word(kept)}" if kept else "free"
    who = "yours" if value.get("you_own") else parts.word(owner)
    lease = value.get("lease")
    if not isinstance(lease, dict) or not lease.get("expires_at"):
        return who
    renewing = "renewing" if lease.get("renewing") else "not renewed"
    return f"{who}, lease ends {parts.ago(lease['expires_at'])}, {renewing}"


def _guardian(value: Any) -> str:
    """Its process, and whether that lives."""
    if not isinstance(value, dict) or value.get("pid") is None:
        return _thing(value)
    return f"process {parts.word(value['pid'])}, {'alive' if value.get('alive') else 'gone'}"


def _reachable(value: Values) -> str:
    """Whether I can be woken, and by what."""
    ways = [name for name in ("listener", "rewake", "monitor") if _alive(value.get(name))]
    told = value.get("reachable")
    if isinstance(told, str):
        return parts.word(told)
    by = f" by {', '.join(ways)}" if ways else ""
    return f"yes{by}" if told or ways else "no: nothing can wake me (tt wait, or tt standby)"


def _alive(thing: Any) -> bool:
    """Whether a listener lives, however it is described."""
    if isinstance(thing, dict):
        return bool(thing.get("alive", thing.get("live", thing.get("pid"))))
    return thing not in (None, False, "", "none", "gone", "dead")


def _thing(value: Any) -> str:
    """A small value in one line."""
    if isinstance(value, dict):
        said = [(parts.word(key), parts.short(key, entry)) for key, entry in value.items() if entry is not None]
        return ", ".join(f"{key} {entry}" for key, entry in said)
    return parts.short("", value)


def _git(git: Values) -> str:
    """Branch, and whether something is changed."""
    dirty = git.get("dirty")
    changed = "" if dirty is None else ", changed files" if dirty else ", clean"
    return f"{parts.word(git.get('branch'))}{changed}"


def wakes(value: Values, paint: parts.Paint) -> list[str]:
    """Every wake, then totals."""
    found = value.get("wakes") or []
    lines = []
    rows = [
        (
            parts.ago(one.get("at")),
            one.get("agent_id"),
            one.get("route"),
            one.get("state"),
            f"#{parts.word(one['event_seq'])}" if one.get("event_seq") else "",
            parts.word(one["error"]) if one.get("error") else "",
        )
        for one in found
    ]
    heads = ("when", "who", "by", "state", "event", "")
    lines += parts.table([heads, *rows], 0) if rows else ["No wakes"]
    totals = parts.pick(value, "totals", "agents")
    if isinstance(totals, dict):
        totals = [{"agent_id": agent, "total": counts} for agent, counts in totals.items()]
    for one in totals or []:
        counts = one.get("total", {key: count for key, count in one.items() if key != "agent_id"})
        lines.append(paint(parts.word(one.get("agent_id")), "bold") + f": {_thing(counts)}")
    return lines


def whoami(value: Values, paint: parts.Paint) -> list[str]:
    """Who I am; with --explain each step."""
    station = f", station {parts.word(value['station'])}" if value.get("station") else ""
    lines = [paint(parts.word(value.get("agent_id")), "bold") + station]
    source = value.get("source")
    if source:
        login = "the login name; nothing here shows an agent"
        lines.append(f"  known by {login if source == 'human' else parts.word(source)}")
    steps = parts.pick(value, "steps", "explain") or []
    lines += parts.table([_step(step) for step in steps], 4)
    metadata = value.get("process_metadata")
    if steps and isinstance(metadata, dict):
        lines += parts.facts(metadata)
    return lines


def _step(step: Any) -> tuple[Any, Any]:
    """One step of the decision: what was looked at, what it said."""
    if isinstance(step, dict):
        return step.get("rule"), step.get("found")
    if isinstance(step, (list, tuple)) and step:
        return step[0], " ".join(parts.word(one) for one in step[1:])
    return step, ""


def config(value: Values, _paint: parts.Paint) -> list[str]:
    """`key = value`, with the default where it differs."""
    found = parts.pick(value, "settings", "config", "entries")
    if isinstance(found, dict):
        named = [(key, one if isinstance(one, dict) else {"value": one}) for key, one in found.items()]
    elif isinstance(found, list):
        named = [(one.get("key"), one) for one in found]
    else:
        named = [(value.get("key"), dict(value))]
    return [_setting(key, entry) for key, entry in named]


def _setting(key: object, entry: Values) -> str:
    """One setting."""
    note = [" (default)"] if entry.get("default") is True else []
    note += [f"  {parts.word(entry['meaning'])}"] if entry.get("meaning") else []
    return f"{parts.word(key)} = {parts.word(entry.get('value'))}" + "".join(note)


def focus(value: Values, _paint: parts.Paint) -> list[str]:
    """The line, and whose."""
    whose = parts.pick(value, "agent_id", "station")
    said = value.get("focus")
    return [f"{parts.word(whose)}: {parts.word(said) if said else 'nothing in particular'}"]


def ack(value: Values, _paint: parts.Paint) -> list[str]:
    """Which events count as received now."""
    seqs = ", ".join(f"#{parts.word(seq)}" for seq in value.get("event_seqs", []))
    said = "Received" if value.get("status") == "acknowledged" else "Received before"
    return [f"{said}: {seqs or 'nothing'}"]


def monitor(value: Values, _paint: parts.Paint) -> list[str]:
    """The call to arm a monitor by hand, field by field, and what to know of it."""
    lines = [f"{parts.word(key)}: {parts.word(one)}" for key, one in dict(value.get("call", {})).items()]
    return [*lines, f"({parts.word(value.get('note'))})"]
