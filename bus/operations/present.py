"""Who is there: registering the caller, refreshing its last sign, and the seats of a room."""

from __future__ import annotations

from bus import limits, locks, process, quickjson
from bus.errors import BusError
from bus.rules.fairness import Seat
from bus.rules.route import Reach
from bus.store import agents, db, events, listeners, members, rooms
from bus.store.agents import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from bus.identity import Caller
    from bus.operations.enter import Context
    from bus.store.db import Bus
    from bus.store.members import Member


# Native endpoints, best first. cmux types into a terminal, so it is the last resort.
ENDPOINTS = ("claude_inbox", "codex_queue", "cmux")


def register(con: sqlite3.Connection, ctx: Context) -> None:
    """Inside a writing verb's transaction: the caller is known to the bus and was seen now.

    A new agent's inbox begins here: its place on the bus (room 0) starts at the newest event.
    """
    caller = ctx.caller
    anchor, verified = _anchor(agents.get(con, ctx.me), caller)
    agents.save(
        con,
        Agent(
            id=ctx.me,
            # A name gives no right: an agent that calls itself a person is an agent to everybody.
            kind=caller.kind if caller.person or caller.kind == "console" else "harness",
            harness=caller.harness,
            name=caller.name,
            station=ctx.station(),
            worktree=ctx.stand.worktree,
            anchor=anchor,
            verified=verified,
            generation=1,
            last_seen=ctx.now,
            ended_at=None,
            focus=None,
            presence=None,
            endpoints=None,
            marks=None,
        ),
    )
    _keep_endpoints(con, ctx)
    if caller.kind == "harness" and caller.source not in ("flag", "TT_HARNESS_AGENT_ID"):
        bound = agents.session(con, caller.session_key)
        if bound is not None and bound[1] != "live":  # it ended since this command began
            raise BusError("session_ended", f"the session of {bound[0]} has ended", "start or resume a session")
        agents.bind_session(con, caller.session_key, ctx.me, ctx.now)
    members.join(con, ctx.me, rooms.BUS, ctx.now, events.newest(con))


def _anchor(known: Agent | None, caller: Caller) -> tuple[str | None, int]:
    """The process whose death ends the agent. A guess never replaces what the harness named.

    A command that outlives its client finds no client any more; it would make a dead holder
    one that nobody can prove gone.
    """
    if known is not None and known.verified and not caller.verified and known.harness == caller.harness:
        return known.anchor, 1
    return caller.anchor, int(caller.verified)


def moved(known: Agent, caller: Caller) -> bool:
    """Does the agent live in another process than the one that is recorded?"""
    return _anchor(known, caller)[0] != known.anchor


def _keep_endpoints(con: sqlite3.Connection, ctx: Context) -> None:
    """Note where this session can be reached; what its environment does not show is kept."""
    own = own_endpoints(ctx)
    if own:
        known = agents.get(con, ctx.me)
        stored = quickjson.loads(known.endpoints) if known is not None and known.endpoints else {}
        if stored | own != stored:
            agents.set_endpoints(con, ctx.me, quickjson.dumps(stored | own))


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


def reach(bus: Bus, agent: str, known: Agent | None = None) -> Reach:
    """By what an agent can be woken now; probes its locks, and reads which endpoints it registered."""
    known = known or agents.get(bus.con, agent)
    ends, withheld = endpoints(known) if known is not None else ((), None)
    return Reach(
        wait=locks.held(bus.lock(agent, "wait")),
        rewake=locks.held(bus.lock(agent, "rewake")),
        plugin=locks.held(bus.lock(agent, "plugin")),
        monitor=locks.held(bus.lock(agent, "monitor")),
        endpoints=ends,
        withheld=withheld,
    )


def endpoints(agent: Agent) -> tuple[tuple[str, ...], str | None]:
    """The native endpoints of a session, best first, and why its inbox is none."""
    stored = quickjson.loads(agent.endpoints) if agent.endpoints else {}
    told = quickjson.loads(agent.presence) if agent.presence else {}
    withheld = None
    if "claude_inbox" in stored:
        if told.get("inbound") == "refuse":
            withheld = "refused"
        elif told.get("permission_mode") == "bypassPermissions" and told.get("inbound") != "accept":
            withheld = "held_likely"  # the client would keep it in a dialog, for a person to allow
    names = [name for name in ENDPOINTS if name in stored and not (withheld and name == "claude_inbox")]
    return tuple(names), withheld


def own_endpoints(ctx: Context) -> dict[str, dict[str, str]]:
    """What the caller's environment says of its own session. Markers of a surrounding harness are not its own."""
    env, harness = ctx.env, ctx.caller.harness
    found: dict[str, dict[str, str]] = {}
    socket, token = env.get("CLAUDE_CODE_MESSAGING_SOCKET"), env.get("CLAUDE_CODE_MESSAGING_TOKEN")
    if harness == "claude" and socket and token:
        found["claude_inbox"] = {"socket": socket, "token": token}
    thread = env.get("CODEX_THREAD_ID")
    if harness == "codex" and thread:
        found["codex_queue"] = {"thread": thread}
    surface = env.get("CMUX_SURFACE_ID")
    if harness and surface and not ctx.caller.shared_daemon:
        found["cmux"] = {"surface": surface, "workspace": env.get("CMUX_WORKSPACE_ID", "")}
    return found


def memberships(con: sqlite3.Connection, agent: str) -> list[Member]:
    """The agent's rows in all rooms it belongs to."""
    return [row for room in members.rooms_of(con, agent) if (row := members.get(con, agent, room)) is not None]


def grace(agent: Agent) -> int:
    """How long a gone process must have been silent before anything is taken from it."""
    return limits.GONE_GRACE if agent.verified else limits.GONE_GRACE_INFERRED


class Sign:
    """What is known about the life of one agent at this moment."""

    __slots__ = ("gone", "reach", "silent")

    def __init__(self, bus: Bus, agent: Agent, now: int) -> None:
        """Probe process and locks. A verified anchor that is gone outweighs the agent's listeners."""
        self.reach = reach(bus, agent.id, agent)
        life = process.liveness(agent.anchor) if agent.anchor else "unknown"
        live = (self.reach.wait, self.reach.rewake, self.reach.plugin, self.reach.monitor)
        listening = any(live) or locks.held(bus.lock(agent.id, "console"))
        self.gone = life == "gone" and (bool(agent.verified) or not listening)
        now_seen = not self.gone and (life == "alive" or listening)
        age = now - agent.last_seen
        if self.gone and age < -limits.LAST_SEEN:
            age = limits.DAY  # the clock went back: a sign from the future must not keep the dead in their turns
        self.silent = 0 if now_seen else max(0, age)


def seats(bus: Bus, room: int, now: int) -> list[Seat]:
    """The members of a room as the rules see them. Probes processes: never call inside a transaction."""
    with db.Read(bus.con) as con:  # one view: somebody may be joining between the two
        known = {agent.id: agent for agent in agents.of_room(con, room)}
        rows = members.of_room(con, room)
    return [_seat(bus, member, known[member.agent], now) for member in rows]


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
        grace_left=max(0, grace(agent) - sign.silent) if sign.gone else 0,
        reachable=sign.reach.reachable(),
        waiting=here and not parked,
    )
