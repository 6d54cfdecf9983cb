"""Whom a name means: exact id, then station, then the one present agent of that name."""

from __future__ import annotations

from bus import identity
from bus.errors import BusError
from bus.operations import present, where
from bus.records import Record
from bus.rules import roles
from bus.store import agents, config, mail, members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context
    from bus.store.agents import Agent


class Target(Record):
    """An addressee: `box` of its mail; `agent` when it is one agent or person."""

    box: str
    agent: str | None = None


def resolve(ctx: Context, text: str) -> Target:
    """Who is meant. Raises unknown_recipient (with the nearest names) or ambiguous_recipient."""
    known = agents.get(ctx.bus.con, text)
    if known is not None:
        if known.ended_at is not None:
            raise _gone(ctx, known)
        return Target(known.id, known.id)
    present_ones = agents.every(ctx.bus.con)
    if text == "human":
        return _human(ctx, present_ones)
    if text == roles.SOUS:
        return _sous(ctx)
    if where.exists(ctx.bus.con, text):
        return Target(mail.station_box(text))
    named = [agent for agent in present_ones if agent.id != ctx.me and agent.name.casefold() == text.casefold()]
    return _one(ctx, text, named, present_ones)


def _sous(ctx: Context) -> Target:
    """Whoever is the sous by the settings: an agent or a station."""
    named = config.get(ctx.bus.con, "sous")
    if named is None:
        raise BusError("station_not_found", "this bus has no sous", "name one: `tt config set sous WHO`")
    return Target(named, named) if ":" in named else Target(mail.station_box(named))


def member(ctx: Context, text: str) -> str:
    """The member of the room that a name means; stations are asked for who is there."""
    here = {row.agent for row in members.of_room(ctx.bus.con, ctx.room.id)}
    if text in here:
        return text
    known = agents.get(ctx.bus.con, text)
    if known is not None:
        raise BusError("unknown_member", f"{text} is no member of this room", "look with `tt state`", target=text)
    there = [agent for agent in agents.of_room(ctx.bus.con, ctx.room.id) if agent.id != ctx.me]
    named = [agent for agent in there if text.casefold() in (agent.name.casefold(), (agent.station or "").casefold())]
    return str(_one(ctx, text, named, there).agent)


def _one(ctx: Context, text: str, named: list[Agent], everybody: list[Agent]) -> Target:
    """The only one, or a refusal that names the choices."""
    living = [agent for agent in named if not present.Sign(ctx.bus, agent, ctx.now).gone]
    if len(living or named) == 1:
        only = (living or named)[0]
        return Target(only.id, only.id)
    if named:
        names = [agent.id for agent in living or named]
        raise BusError(
            "ambiguous_recipient",
            f"{text} could be any of {', '.join(names)}",
            "use one of these ids",
            recipient=text,
            candidates=names,
        )
    raise _unknown(text, everybody)


def _unknown(text: str, everybody: list[Agent]) -> BusError:
    """Nobody is called that; the nearest names help with a typing error."""
    import difflib  # only a refusal pays for it

    names = {name for agent in everybody for name in (agent.id, agent.name, agent.station) if name}
    near = difflib.get_close_matches(text, sorted({*names, "room", "bus"} - {text}), 3, 0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "look who is there with `tt state --all`"
    text = text[:100]
    return BusError("unknown_recipient", f"nobody here is called {text!r}", hint, recipient=text, nearest=near)


def _gone(ctx: Context, agent: Agent) -> BusError:
    """The agent left the bus; who is at its station now?"""
    there = [one.id for one in agents.at_station(ctx.bus.con, agent.station)] if agent.station else []
    hint = f"at {agent.station} now: {', '.join(there)}" if there else "look who is there with `tt state --all`"
    return BusError("unknown_recipient", f"{agent.id} is gone", hint, recipient=agent.id, nearest=there)


def _human(ctx: Context, everybody: list[Agent]) -> Target:
    """The person: the only one known, else the user whose machine this is."""
    people = [agent.id for agent in everybody if agent.kind == "person"]
    if len(people) > 1:
        raise BusError("ambiguous_recipient", "more than one person is here", "use one of these ids", candidates=people)
    box = people[0] if people else f"human:{identity.user_name(ctx.env)}"
    return Target(box, box)
