"""The beginning of every command: which bus, which room, who is calling."""

from __future__ import annotations

import os

from bus import bell, clock, datadir, identity, places
from bus.errors import BusError
from bus.operations import where
from bus.records import Record
from bus.store import agents, db, members, rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from bus.identity import Caller
    from bus.operations.where import Stand
    from bus.places import Place
    from bus.store.db import Bus
    from bus.store.members import Member
    from bus.store.rooms import Room


class Context(Record):
    """One command's view of the world; `me` is the caller's agent id on this bus."""

    env: Mapping[str, str]
    place: Place
    caller: Caller
    bus: Bus
    me: str
    found: Room | None
    stand: Stand
    now: int

    @property
    def room(self) -> Room:
        """The room of the path, as it was when the command began."""
        if self.found is None:
            raise no_room(self.place)
        return self.found

    def station(self) -> str | None:
        """The caller's station: the one of its recorded working tree."""
        return self.stand.station

    def close(self) -> None:
        """Close the bus."""
        self.bus.close()


def no_room(place: Place) -> BusError:
    """There is no room for this path yet."""
    return BusError(
        "room_not_found",
        f"no room at {place.requested}",
        "make one with `tt join`",
        path=place.requested,
    )


def enter(
    path: str | None = None,
    *,
    agent: str | None = None,
    make: bool = False,
    need_room: bool = True,
    env: Mapping[str, str] | None = None,
    exact: bool = False,
) -> Context:
    """Find bus, room and caller. `make` brings the bus into being when there is none.

    Raises room_not_found (no bus, or no room and one is needed), session_ended, and what
    finding places, opening stores and identifying callers raise. Writes nothing but a new bus.
    """
    env = os.environ if env is None else env
    place = places.find(path, env, exact=exact)
    caller = identity.caller(env, os.getpid(), agent=agent)
    if not places.has_bus(place.bus_dir):
        if not make:
            _refuse_unreadable(places.data_dir(env))
            raise no_room(place)
        make_bus(place, env)
    bus = db.open_bus(place.bus_dir)
    try:
        me = _bound(bus, caller)
        here = place if path is None else _here(env, place)
        ctx = Context(
            env=env,
            place=place,
            caller=caller,
            bus=bus,
            me=me,
            found=room_of(bus, place),
            stand=where.of_caller(bus.con, caller, here, env, me),
            now=clock.now(),
        )
        if need_room:
            _ = ctx.room  # raises when there is none
    except BaseException:
        bus.close()
        raise
    return ctx


def _refuse_unreadable(data: str) -> None:
    """Not being allowed to look is no proof that there is no room: `tt join` would be the wrong advice."""
    try:
        os.listdir(data)
    except FileNotFoundError:
        return
    except OSError as error:
        raise datadir.store_error(error, data) from error


def _here(env: Mapping[str, str], place: Place) -> Place | None:
    """Where the caller's shell stands, whatever path it names; None outside this bus."""
    try:
        here = places.find(None, env)
    except BusError:
        return None
    return here if here.bus_dir == place.bus_dir else None


def make_bus(place: Place, env: Mapping[str, str]) -> None:
    """Make the data directory and the bus of a place."""
    from bus.store import migrate  # needs filelock, and a bus is made once

    places.ensure_private(places.data_dir(env))
    migrate.make_bus(place.bus_dir, place.repo, place.key)
    bell.ring(os.path.dirname(place.bus_dir))  # monitors of sessions that began without a bus wait there


def room_of(bus: Bus, place: Place) -> Room | None:
    """The room of a place: by the index, else by its root.

    A crash between the commit of a join and the index entry must not hide the room.
    """
    return rooms.by_path(bus.con, place.room or place.root) if place.room or place.root else None


def room_or_bus(con: sqlite3.Connection, ctx: Context) -> int:
    """Where an event of this command belongs: its room, or the bus where there is none, or no more since it began."""
    return ctx.found.id if ctx.found is not None and rooms.by_id(con, ctx.found.id) is not None else rooms.BUS


def _bound(bus: Bus, caller: Caller) -> str:
    """The agent that the caller's session is: by the recorded binding, else by its own id.

    A harness in the environment or the ancestry never speaks under a person's name.
    """
    if caller.kind == "person" and not caller.person:
        raise BusError(
            "agent_id_required",
            f"this command was started by an agent, which cannot be {caller.agent_id}",
            "keep the harness's variables, or name the agent: --agent NAME:ID (tt whoami --explain)",
            agent_id=caller.agent_id,
        )
    if caller.source in ("flag", "TT_HARNESS_AGENT_ID"):
        return caller.agent_id
    bound = agents.session(bus.con, caller.session_key)
    if bound is None:
        return caller.agent_id
    agent, state = bound
    if state != "live":
        raise BusError(
            "session_ended",
            f"the session of {agent} has ended; its late commands change nothing",
            "start or resume a session, then `tt join`",
            agent_id=agent,
        )
    return agent


def seated(ctx: Context) -> Member:
    """The caller's membership of the room.

    Raises not_joined when it never joined (or left by itself), unknown_member when it was removed.
    """
    member = members.get(ctx.bus.con, ctx.me, ctx.room.id)
    if member is not None and member.left_at is None:
        return member
    removed = member is not None and member.left_why != "left"
    code, what = ("unknown_member", "was removed from") if removed else ("not_joined", "has not joined")
    raise BusError(
        code,
        f"{ctx.me} {what} the room at {ctx.room.path}",
        "join it with `tt join`",
        agent_id=ctx.me,
        path=ctx.room.path,
        **({"reason": member.left_why} if removed and member else {}),
    )
