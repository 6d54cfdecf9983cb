"""Who is there: registering the caller, refreshing its last sign, and the seats of a room."""

from __future__ import annotations

from bus import limits, locks, process
from bus.errors import BusError
from bus.rules.fairness import Seat
from bus.rules.route import Reach
from bus.store import agents, db, events, listeners, members, rooms
from bus.store.agents import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from bus.operations.enter import Context
    from bus.store.db import Bus
    from bus.store.members import Member


def register(con: sqlite3.Connection, ctx: Context) -> None:
    """Inside a writing verb's transaction: the caller is known to the bus and was seen now.

    A new agent's inbox begins here: its place on the bus (room 0) starts at the newest event.
    """
    caller = ctx.caller
    agents.save(
        con,
        Agent(
            id=ctx.me,
            kind=caller.kind,
            harness=caller.harness,
            name=caller.name,
            station=ctx.station(),
            worktree=ctx.place.root or None,
            anchor=caller.anchor,
            verified=int(caller.verified),
            generation=1,
            last_seen=ctx.now,
            ended_at=None,
            focus=None,
            presence=None,
            endpoints=None,
            marks=None,
        ),
    )
    if caller.kind == "harness" and caller.source not in ("flag", "TT_HARNESS_AGENT_ID"):
        agents.bind_session(con, caller.session_key, ctx.me, ctx.now)
    members.join(con, ctx.me, rooms.BUS, ctx.now, events.newest(con))


def refresh(ctx: Context) -> None:
    """After a read: note that the caller was seen, at most once a minute; dropped when the store is busy."""
    con = ctx.bus.con
    known = agents.get(con, ctx.me)
    if known is None or ctx.now - known.last_seen < limits.LAST_SEEN:
        return
    try:
        con.execute("PRAGMA busy_timeout = 0")
        with db.Write(con):
            agents.touch(con, ctx.me, ctx.now)
    except BusError:
        return  # presence is a courtesy; a reader never fails for it
    finally:
        con.execute(f"PRAGMA busy_timeout = {limits.BUSY}")


def reach(bus: Bus, agent: str) -> Reach:
    """By what an agent can be woken now; probes its locks."""
    return Reach(
        wait=locks.held(bus.lock(agent, "wait")),
        rewake=locks.held(bus.lock(agent, "rewake")),
        plugin=locks.held(bus.lock(agent, "plugin")),
        monitor=locks.held(bus.lock(agent, "monitor")),
    )


def grace(agent: Agent) -> int:
    """How long a gone process must have been silent before anything is taken from it."""
    return limits.GONE_GRACE if agent.verified else limits.GONE_GRACE_INFERRED


class Sign:
    """What is known about the life of one agent at this moment."""

    __slots__ = ("gone", "reach", "silent")

    def __init__(self, bus: Bus, agent: Agent, now: int) -> None:
        """Probe process and locks. A verified anchor that is gone outweighs the agent's listeners."""
        self.reach = reach(bus, agent.id)
        life = process.liveness(agent.anchor) if agent.anchor else "unknown"
        listening = self.reach.wait or self.reach.rewake or locks.held(bus.lock(agent.id, "console"))
        self.gone = life == "gone" and (bool(agent.verified) or not listening)
        now_seen = not self.gone and (life == "alive" or listening)
        self.silent = 0 if now_seen else max(0, now - agent.last_seen)


def seats(bus: Bus, room: int, now: int) -> list[Seat]:
    """The members of a room as the rules see them. Probes processes: never call inside a transaction."""
    known = {agent.id: agent for agent in agents.of_room(bus.con, room)}
    return [_seat(bus, member, known[member.agent], now) for member in members.of_room(bus.con, room)]


def _seat(bus: Bus, member: Member, agent: Agent, now: int) -> Seat:
    """One member's seat."""
    sign = Sign(bus, agent, now)
    row = listeners.get(bus.con, agent.id, "wait") if sign.reach.wait else None
    here = row is not None and row.room == member.room
    parked = row.intent == "parked" if row is not None and here else member.intent == "parked"
    return Seat(
        agent=agent.id,
        rank=member.rank,
        last_turn=member.last_turn,
        observer=agent.kind == "console",
        parked=parked,
        present=sign.silent <= limits.PRESENCE,
        fresh=now - agent.last_seen <= limits.BETWEEN_WAITS,
        gone=sign.gone,
        vanished=sign.gone and sign.silent >= grace(agent),
        reachable=sign.reach.reachable(),
        waiting=here and not parked,
    )
