"""Where somebody is, and what that makes of it: stations, roles, topology.

Kept true: a session keeps the working tree in which it was first seen; no name, folder or
variable gives a role that the recorded tree does not give.
"""

from __future__ import annotations

import os

from bus import gitdir, identity, ids, places
from bus.errors import BusError
from bus.records import Record
from bus.rules import roles
from bus.store import agents, config, worktrees

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from bus.identity import Caller
    from bus.operations.enter import Context
    from bus.places import Place
    from bus.store.agents import Agent

MANAGED = "station-"


def name_of(con: sqlite3.Connection, place: Place) -> str | None:
    """The station of a working tree: recorded, `expo` for the main one, else by git's entry name."""
    for directory in gitdir.upwards(place.root) if place.root else ():
        recorded = worktrees.by_path(con, directory)
        if recorded is not None:
            return recorded.station
        if config.get(con, "expo") == directory:
            return roles.EXPO
        if directory == place.key or os.path.lexists(os.path.join(directory, ".git")):
            break  # the top level: what lies above is another tree
    if place.station_hint is None or not place.linked:
        return place.station_hint
    return _derived(con, place.station_hint)


def _managed(name: str) -> bool:
    """Does it look like the name of a worktree that `tt stations add` makes?"""
    return name.startswith(MANAGED) and name.removeprefix(MANAGED).isdigit()


def _derived(con: sqlite3.Connection, entry: str) -> str:
    """The name of a worktree that somebody else made: its entry in git, never one with a meaning of its own."""
    name = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in entry.lower())
    name = name.strip("._-")[:56] or "tree"
    if name in ids.RESERVED or _managed(name) or worktrees.by_station(con, name) is not None:
        return f"wt-{name}"
    return name


class Stand(Record):
    """Where the caller is: its station, and the working tree that gives it."""

    station: str | None
    worktree: str | None


def of_caller(con: sqlite3.Connection, caller: Caller, here: Place | None, env: Mapping[str, str], me: str) -> Stand:
    """The caller's stand. `here` is where its shell is, None outside this bus.

    Raises not_permitted when a variable names another station.
    """
    tree = here.root or None if here is not None else None
    found = name_of(con, here) if here is not None else None
    known = _recorded(con, caller, me)
    if known is not None and known.worktree:
        found, tree = _kept(con, known, env, Stand(found, tree))
    if config.get(con, "sous") == me:
        found = roles.SOUS  # a post of its own: it does not read the mail of the place where it sits
    told = identity.trusted(env, caller)
    for name in ("TT_STATION", "HANDS_ID"):
        if told.get(name) and told[name] != found:
            raise _contradicted(name, told[name], found)
    return Stand(found, tree)


def _contradicted(name: str, claimed: str, found: str | None) -> BusError:
    """A variable names a station that the working tree is not."""
    return BusError(
        "not_permitted",
        f"{name} says {claimed[:64]!r}, but this working tree is {found or 'no station'}",
        "unset the variable: the station follows from the working tree",
        claimed=claimed[:64],
        station=found,
    )


def _recorded(con: sqlite3.Connection, caller: Caller, me: str) -> Agent | None:
    """The session as the bus knows it; a made-up id is the session of the process that made it up.

    A process that runs many sessions says nothing about one of them, and people are no station.
    """
    known = agents.get(con, me)
    if known is not None:
        return known if known.kind == "harness" else None
    if caller.person or caller.shared_daemon or not caller.anchor or not caller.harness:
        return None
    return agents.by_anchor(con, caller.anchor, caller.harness)


def _kept(con: sqlite3.Connection, known: Agent, env: Mapping[str, str], here: Stand) -> tuple[str | None, str | None]:
    """The recorded place. Where its folder is gone the present one counts, but it gives no new rights."""
    if not os.path.isdir(known.worktree or ""):
        rises = here.station in (roles.EXPO, None) and known.station not in (roles.EXPO, None)
        return (known.station, known.worktree) if rises else (here.station, here.worktree)
    if known.station != roles.SOUS:
        return known.station, known.worktree
    try:
        return name_of(con, places.find(known.worktree, env)), known.worktree  # the sous no more
    except BusError:
        return None, known.worktree


def topology(con: sqlite3.Connection) -> str:
    """How stations may talk on this bus."""
    return config.get(con, "topology") or roles.OPEN


def actor(ctx: Context) -> roles.Actor:
    """The caller as the rules of topology and delegation see it."""
    station = ctx.station()
    sous = config.get(ctx.bus.con, "sous")
    return roles.Actor(roles.role(person=ctx.caller.person, station=station, me=ctx.me, sous=sous), station)


def actor_at(con: sqlite3.Connection, box: str) -> roles.Actor:
    """The addressee of a message, by its box, as the rules see it."""
    sous = config.get(con, "sous")
    if box.startswith("station:"):
        named = box.removeprefix("station:")
        return roles.Actor(roles.role(person=False, station=named, me="", sous=sous), named)
    known = agents.get(con, box)
    person = box.startswith("human:") if known is None else known.kind != "harness"
    station = known.station if known is not None else None
    return roles.Actor(roles.role(person=person, station=station, me=box, sous=sous), station)


def exists(con: sqlite3.Connection, station: str) -> bool:
    """Is there such a station: the expo, a recorded one, or one where somebody was seen?"""
    if station == roles.EXPO:
        return True
    return worktrees.by_station(con, station) is not None or agents.station_seen(con, station)


def own_room(ctx: Context) -> bool:
    """Is the room of this command the one of the caller's recorded working tree?"""
    tree = ctx.stand.worktree
    if ctx.found is None or tree is None:
        return False
    if tree == ctx.found.path:
        return True
    try:
        return places.find(tree, ctx.env).room == ctx.found.path
    except BusError:
        return False
