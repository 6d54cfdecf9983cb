"""Settings of a bus, and what an agent says it is doing."""

from __future__ import annotations

from bus import gitdir, ids, limits, places
from bus.errors import BusError
from bus.operations import present, where
from bus.operations.outcome import Outcome
from bus.records import Record
from bus.rules import roles
from bus.store import agents, config, db

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context

HOURS_MOST = 24 * 365


class Setting(Record):
    """A key: its default, what it means, and whether the expo may change it too."""

    default: str
    meaning: str
    by_expo: bool = False


KEYS: dict[str, Setting] = {
    "retention": Setting("168", "hours without activity after which a room is archived; 0 keeps rooms for ever"),
    "topology": Setting("open", "open, or strict-hub: stations write only to expo, sous and people", by_expo=True),
    "expo": Setting("", "the worktree that is the expo, where there is no main worktree"),
    "sous": Setting("", "the agent or station that composes tickets for the expo", by_expo=True),
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
    """Change a setting. Raises unknown_config_key, invalid_input, not_permitted.

    People change every setting; the expo changes the topology and names the sous.
    """
    known = _known(key)
    role = where.actor(ctx).role
    if role != roles.PERSON and not (role == roles.EXPO and known.by_expo):
        who = "people and the expo change" if known.by_expo else "only a person changes"
        raise BusError("not_permitted", f"{who} {key}", "ask them", key=key)
    checked = _CHECKS[key](ctx, value)
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        if checked:
            config.put(con, key, checked)
        else:
            config.drop(con, key)
        if key == "sous" and ":" in checked:
            agents.set_station(con, checked, roles.SOUS)  # from now on it reads the mail of no other station
    return Outcome({"status": "config", "key": key, "value": checked, "default": not checked})


def _hours(_ctx: Context, value: str) -> str:
    """Whole hours."""
    digits = value.isascii() and value.isdigit()
    if not digits or len(value) > 9 or int(value) > HOURS_MOST:
        raise BusError("invalid_input", f"retention takes whole hours from 0 to {HOURS_MOST}", key="retention")
    return str(int(value))


def _topology(_ctx: Context, value: str) -> str:
    """One of the two."""
    if value not in roles.TOPOLOGIES:
        raise BusError("invalid_input", f"there is no topology {value[:40]!r}", " or ".join(roles.TOPOLOGIES))
    return value


def _expo(ctx: Context, value: str) -> str:
    """A worktree of this repository, by its real path; only where no main worktree is the expo already."""
    if not _bare(ctx):
        raise BusError("invalid_input", "the main worktree is the expo of this repository", key="expo")
    place = places.find(value, ctx.env)
    if place.bus_dir != ctx.bus.dir or not place.root:
        raise BusError("invalid_input", f"{value[:200]!r} is no working tree of this repository", key="expo")
    return place.root


def _bare(ctx: Context) -> bool:
    """Is this a repository without a main worktree?"""
    done = gitdir.git(["--git-dir", ctx.place.key, "rev-parse", "--is-bare-repository"], ctx.env)
    return done is not None and done.out.strip() == b"true"


def _sous(ctx: Context, value: str) -> str:
    """An agent that is known here, or a station; nothing for nobody."""
    if not value:
        return ""
    known = agents.get(ctx.bus.con, value)
    if known is not None and known.kind == "harness":
        return value
    if value not in ids.RESERVED and where.exists(ctx.bus.con, value):
        return value
    raise BusError("station_not_found", f"there is no agent or station {value[:64]!r}", "see `tt stations`", key="sous")


_CHECKS = {"retention": _hours, "topology": _topology, "expo": _expo, "sous": _sous}


def focus(ctx: Context, text: str | None = None, *, clear: bool = False, station: str | None = None) -> Outcome:
    """Say in one line what the caller is doing; without text, look. The expo and people may say it for a station."""
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
    """The agent at a station, for the expo or a person who speaks for it."""
    if where.actor(ctx).role not in (roles.PERSON, roles.EXPO):
        raise BusError("not_permitted", "only the expo and people set another's focus", "leave --station out")
    there = agents.at_station(ctx.bus.con, station)
    if not there:
        raise BusError("station_not_found", f"nobody is at a station {station[:64]!r}", "see `tt state --all`")
    return there[-1].id
