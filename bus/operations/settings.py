"""Settings of a bus, and what an agent says it is doing."""

from __future__ import annotations

from bus import limits
from bus.errors import BusError
from bus.operations import present
from bus.operations.outcome import Outcome
from bus.records import Record
from bus.store import agents, config, db

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context

HOURS_MOST = 24 * 365


class Setting(Record):
    """A key: what it means, its default, and how long it may be (hours)."""

    default: str
    meaning: str


KEYS: dict[str, Setting] = {
    "retention": Setting("168", "hours without activity after which a room is archived; 0 keeps rooms for ever"),
}


def _known(key: str) -> Setting:
    """The setting, or a refusal that lists them."""
    if key not in KEYS:
        names = ", ".join(KEYS)
        raise BusError("unknown_config_key", f"there is no setting {key[:60]!r}", f"settings: {names}", key=key[:60])
    return KEYS[key]


def get(ctx: Context, key: str) -> Outcome:
    """One setting. Raises unknown_config_key."""
    default = _known(key).default
    value = config.get(ctx.bus.con, key)
    return Outcome({"status": "config", "key": key, "value": value or default, "default": value is None})


def all_keys(ctx: Context) -> Outcome:
    """Every setting with its value and meaning."""
    set_here = config.everything(ctx.bus.con)
    found = [
        {
            "key": key,
            "value": set_here.get(key, known.default),
            "default": key not in set_here,
            "meaning": known.meaning,
        }
        for key, known in KEYS.items()
    ]
    return Outcome({"status": "config", "settings": found})


def put(ctx: Context, key: str, value: str) -> Outcome:
    """Change a setting. Raises unknown_config_key, invalid_input; not_permitted for an agent."""
    _known(key)
    if not ctx.caller.person:
        raise BusError("not_permitted", "only a person changes the settings of a bus", "ask the person")
    if not value.isascii() or not value.isdigit() or int(value[:9]) > HOURS_MOST:
        raise BusError("invalid_input", f"{key} takes whole hours from 0 to {HOURS_MOST}", key=key)
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        config.put(con, key, str(int(value)))
    return Outcome({"status": "config", "key": key, "value": str(int(value)), "default": False})


def focus(ctx: Context, text: str | None = None, *, clear: bool = False, station: str | None = None) -> Outcome:
    """Say in one line what the caller is doing; without text, look. A person may say it for a station."""
    agent = ctx.me if station is None else _at(ctx, station)
    if text is None and not clear:
        known = agents.get(ctx.bus.con, agent)
        return Outcome({"status": "focus", "agent_id": agent, "focus": known.focus if known else None})
    line = " ".join((text or "").split())
    if len(line) > limits.FOCUS_CHARS:
        raise BusError("invalid_input", f"a focus has at most {limits.FOCUS_CHARS} characters", length=len(line))
    if not line and not clear:
        raise BusError("invalid_body", "a focus needs some text", "or take it away with --clear")
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        agents.set_focus(con, agent, line or None)
    return Outcome({"status": "focus", "agent_id": agent, "focus": line or None})


def _at(ctx: Context, station: str) -> str:
    """The agent at a station, for a person who speaks for it."""
    if not ctx.caller.person:
        raise BusError("not_permitted", "an agent sets only its own focus", "leave --station out")
    there = agents.at_station(ctx.bus.con, station)
    if not there:
        raise BusError("station_not_found", f"nobody is at a station {station[:64]!r}", "see `tt state --all`")
    return there[-1].id
