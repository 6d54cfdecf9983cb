"""What hooks report of a session: it begins, is cleared, ends; where it stands.

Kept true: one agent per client process, also across `/clear`; a session that ended answers no
late command; a session's end or `/clear` surrenders its turn with a handoff; hooks make
neither bus nor room, and join nothing.
"""

from __future__ import annotations

import os

from bus import clock, gitdir, identity, ids, limits, marks, places, process, quickjson
from bus.operations import handover, present, receive, where
from bus.operations.enter import Context, room_of
from bus.operations.outcome import Outcome, Wakes
from bus.records import Record
from bus.store import agents, db, members, rooms, wakes
from bus.store import events as log
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from bus.identity import Caller
    from bus.places import Place
    from bus.rules.fairness import Seat
    from bus.store.agents import Agent

SCAFFOLDING = (".talking-stick/", ".claude/settings.local.json")
CHANGED_MOST = 200


class Seen(Record):
    """Where a hook runs and for whom, before any store was opened: the process may still fork."""

    env: Mapping[str, str]
    place: Place
    caller: Caller


def enter(env: Mapping[str, str], cwd: str, harness: str | None, session_id: str | None) -> Context | None:
    """A hook's view: the bus of its directory and the agent of its session. None where there is no bus.

    Gives up on a busy store after 250 ms. Whether the session may act, `live` says.
    """
    seen = locate(env, cwd, harness, session_id)
    return None if seen is None else arrive(seen)


def locate(env: Mapping[str, str], cwd: str, harness: str | None, session_id: str | None) -> Seen | None:
    """The bus of a directory and the session that calls; None without a bus or a session. Opens nothing."""
    place = places.find(cwd, env)
    if not places.has_bus(place.bus_dir):
        return None
    data = places.data_dir(env)
    caller = identity.caller(env, os.getpid(), harness=harness, session_id=session_id, data=data)
    if caller.person or caller.kind != "harness":
        return None
    return Seen(env, place, caller)


def arrive(seen: Seen) -> Context:
    """Open the bus."""
    env, place, caller = seen.env, seen.place, seen.caller
    bus = db.open_bus(place.bus_dir, busy_ms=limits.BUSY_HOOK)
    bound = agents.session(bus.con, caller.session_key)
    me = bound[0] if bound else caller.agent_id
    return Context(
        env=env,
        place=place,
        caller=caller,
        bus=bus,
        me=me,
        stand=where.of_caller(bus.con, caller, place, {}, me),
        found=room_of(bus, place),
        now=clock.now(),
    )


def live(ctx: Context) -> bool:
    """May this session still act? Not after its end, nor after `/clear` made another of it."""
    bound = agents.session(ctx.bus.con, ctx.caller.session_key)
    return bound is None or bound[1] == "live"


def begin(ctx: Context, source: str, told: dict[str, Any]) -> Outcome:
    """SessionStart: which agent this session is. `told` is what the hook saw (permission_mode, …).

    `clear`: the agent of the same process goes on with a new generation, and its turn is
    surrendered, since the conversation that held it is gone. Another process (resume): a new
    generation too, since whatever the old one was woken for it never saw. Idempotent: several
    hooks of one start run at once.
    """
    con = ctx.bus.con
    before = _predecessor(ctx, source)
    seats = _seats(ctx, before.id) if before is not None else {}
    wakes_due = Wakes()
    agent = before.id if before is not None else _own_agent(ctx)
    with db.Write(con):
        # Two hooks of one start run at once: who comes second finds the session bound.
        bound = agents.session(con, ctx.caller.session_key)
        already = agents.get(con, bound[0]) if bound is not None and bound[1] == "live" else None
        if already is not None and already.anchor == ctx.caller.anchor:
            agent = already.id
        else:
            wakes_due = _clear(con, ctx, before, seats) if before is not None else _start(con, ctx, agent)
            # Before the commit: a hook that comes second must not close a turn that a prompt has opened.
            marks.write(ctx.bus, agent, marks.read(ctx.bus, agent).replace(opened=False, at=ctx.now))
        ctx.me = agent
        present.register(con, ctx)
        _note(con, ctx, told)
    return Outcome({"status": "session", "agent_id": agent}, wakes_due + Wakes(boxes=receive.boxes(con, agent)))


def for_others(ctx: Context, waking: Wakes) -> Wakes:
    """What a start has to tell others: the session itself is served by the hook that lets it speak."""
    own = receive.boxes(ctx.bus.con, ctx.me)
    return waking.replace(boxes=[box for box in waking.boxes if box not in own], bells=[])


def _predecessor(ctx: Context, source: str) -> Agent | None:
    """The agent whose conversation this one replaces: same process, another session, after `/clear`."""
    caller = ctx.caller
    if source != "clear" or caller.shared_daemon or not caller.anchor or not caller.harness:
        return None
    found = agents.by_anchor(ctx.bus.con, caller.anchor, caller.harness)
    if caller.harness != "claude" and agents.live_at(ctx.bus.con, caller.anchor, caller.harness) > 1:
        return None  # several threads in one process: nothing says which of them was cleared
    if found is None or agents.live_session_of(ctx.bus.con, found.id) == caller.session_key:
        return None
    return found


def _own_agent(ctx: Context) -> str:
    """The agent of a session that begins or resumes; a new id where two terminals would share one."""
    con, caller = ctx.bus.con, ctx.caller
    bound = agents.session(con, caller.session_key)
    agent = bound[0] if bound is not None else caller.agent_id
    known = agents.get(con, agent)
    if known is None:
        return agent
    other = agents.live_session_of(con, agent)
    taken = other is not None and other != caller.session_key
    lives = bool(known.anchor and known.anchor != caller.anchor and process.liveness(known.anchor) == "alive")
    if taken or (lives and known.ended_at is None and not caller.shared_daemon):
        return f"{caller.harness}:{ids.new_id('', 4)}"
    return agent


def _start(con: sqlite3.Connection, ctx: Context, agent: str) -> Wakes:
    """Bind a session. In another process than before nothing of the old one reaches it any more."""
    known = agents.get(con, agent)
    agents.bind_session(con, ctx.caller.session_key, agent, ctx.now)
    if known is not None and (known.ended_at is not None or known.anchor != ctx.caller.anchor):
        wakes.close_of(con, agent, ctx.now)
        agents.next_generation(con, agent)
        agents.set_endpoints(con, agent, None)
    return Wakes(bells=[agent])


def _clear(con: sqlite3.Connection, ctx: Context, before: Agent, seats: dict[int, list[Seat]]) -> Wakes:
    """The same agent, a new conversation."""
    old = agents.live_session_of(con, before.id)
    if old is not None:
        agents.set_session(con, old, "cleared", ctx.now)
    agents.bind_session(con, ctx.caller.session_key, before.id, ctx.now)
    wakes.close_of(con, before.id, ctx.now)
    agents.next_generation(con, before.id)
    return _surrender(con, ctx, before.id, "cleared", seats)


def _seats(ctx: Context, agent: str) -> dict[int, list[Seat]]:
    """Who could take over what the agent holds, by room. Probes processes: before the transaction."""
    held = [room.id for room in rooms.every(ctx.bus.con) if agent in (room.owner, room.reserved_for)]
    return {room: present.seats(ctx.bus, room, ctx.now) for room in held}


def _surrender(con: sqlite3.Connection, ctx: Context, agent: str, why: str, seats: dict[int, list[Seat]]) -> Wakes:
    """Every turn or reservation of an agent goes on to who comes next."""
    told = presence(agents.get(con, agent))
    gone = handover.Leaver(agent, why, {"branch": told.get("branch"), "changed_files": told.get("changed", [])})
    waking = Wakes()
    for room in rooms.every(con):
        waking += handover.give_up(con, room, gone, seats.get(room.id, []), ctx.now)
    return waking


def publish(ctx: Context, told: dict[str, Any]) -> Outcome:
    """Presence. Written when it says something new, or the last sign is a minute old; else nothing is."""
    con = ctx.bus.con
    known = agents.get(con, ctx.me)
    before = presence(known)
    fresh = known is not None and ctx.now - known.last_seen < limits.LAST_SEEN
    if known is None or before | told != before or not fresh or present.moved(known, ctx.caller):
        with db.Write(con):
            present.register(con, ctx)  # refuses a session that ended while git looked at its files
            _note(con, ctx, told)
    return Outcome({"status": "published", "agent_id": ctx.me})


def _note(con: sqlite3.Connection, ctx: Context, told: dict[str, Any]) -> None:
    """Merge what was seen into the presence of the agent."""
    merged = presence(agents.get(con, ctx.me)) | told
    agents.set_presence(con, ctx.me, quickjson.dumps(merged, sort_keys=True), ctx.now)


def stored(ctx: Context) -> dict[str, Any]:
    """What the last hook reported of the caller's session."""
    return presence(agents.get(ctx.bus.con, ctx.me))


def presence(known: Agent | None) -> dict[str, Any]:
    """What hooks reported of an agent, as it is stored."""
    found = quickjson.loads(known.presence) if known is not None and known.presence else {}
    return found if isinstance(found, dict) else {}


def working_tree(ctx: Context) -> dict[str, Any]:
    """Branch and changed files of the session's worktree, without our own scaffolding."""
    found = gitdir.status(ctx.place.root, ctx.env) if ctx.place.root else None
    if found is None:
        return {}
    changed = [path for path in found.changed if not path.startswith(SCAFFOLDING)]
    return {"branch": found.branch, "changed": sorted(changed)[:CHANGED_MOST], "head": found.head}


def end(ctx: Context, reason: str) -> Outcome:
    """SessionEnd. Nothing for `clear`: the agent goes on. Else memberships end and the turn goes on.

    Only the very process of the session ends it: a copy of its id in another process does not.
    """
    con = ctx.bus.con
    known = agents.get(con, ctx.me)
    if reason == "clear" or known is None or (known.verified and known.anchor != ctx.caller.anchor):
        return Outcome({"status": "ignored", "agent_id": ctx.me})
    seats = _seats(ctx, ctx.me)
    with db.Write(con):
        waking = _surrender(con, ctx, ctx.me, "session_ended", seats)
        for number in members.rooms_of(con, ctx.me):
            members.leave(con, ctx.me, number, ctx.now, "session_ended")
            body = {"agent_id": ctx.me, "reason": "session_ended"}
            others = members.of_room(con, number)
            log.append(con, Draft(number, "leave", ctx.me, ctx.now, body, public=bool(others)))
            waking += Wakes(rooms=[number])
        agents.set_session(con, ctx.caller.session_key, "ended", ctx.now)
        agents.set_endpoints(con, ctx.me, None)
        agents.end(con, ctx.me, ctx.now)
    return Outcome({"status": "ended", "agent_id": ctx.me}, waking + Wakes(bells=[ctx.me]))


def must_stay(ctx: Context) -> str | None:
    """Why the session must not end its turn now: it holds an unexpired stick, or one waits for it. Reads only."""
    for room in rooms.every(ctx.bus.con):
        if room.owner == ctx.me and (room.lease_until or 0) > ctx.now:
            ways = "`tt release --status … --next-action …` or `tt pass --to …`"
            return f"{ctx.me} still holds turn {room.turn_id} of {room.path}. Hand it over first: {ways}."
        if room.reserved_for == ctx.me and (room.reserved_until or 0) > ctx.now:
            ways = "`tt try` to take it, or `tt standby` to let it go on"
            return f"The turn of {room.path} is reserved for {ctx.me}. {ways}."
    return None
