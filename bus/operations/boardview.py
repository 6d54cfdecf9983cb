"""`tt board`: peers, collisions, mail, asks and tickets at one look, and the hash of what counts.

The hash takes facts only (who is there, how, on what; tickets; asks), never a time: it changes
when something happened, and not because time passed or because of who looks.
"""

from __future__ import annotations

from bus import digest, limits, marks, quickjson
from bus.operations import board, present, receive, session, tasks, usage, where
from bus.operations.outcome import Outcome
from bus.rules import tasks as rules
from bus.store import agents, mail, members, rooms, tickets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.enter import Context
    from bus.store.agents import Agent

OFFLINE_MS = 15 * limits.MINUTE
WORKING_MS = limits.MINUTE
HASH_CHARS = 16


def view(ctx: Context, *, since_hash: str | None = None, verbose: bool = False) -> Outcome:
    """The board; `unchanged` in one line when nothing that counts has changed since `since_hash`."""
    peers = [_peer(ctx, agent) for agent in agents.every(ctx.bus.con) if agent.id != ctx.me and _counts(agent)]
    active = tickets.listing(ctx.bus.con, tickets.Filter(tickets.TICKET, rules.ACTIVE, (), limits.VIEW_MOST))
    asks = tickets.listing(ctx.bus.con, tickets.Filter(tickets.ASK, (rules.ASK_OPEN,), (), limits.VIEW_MOST))
    now = state_hash(peers, active, asks)
    if since_hash is not None and since_hash == now:
        return Outcome({"status": "unchanged", "state_hash": now})
    for peer in peers:
        del peer["fact"]
    result: dict[str, Any] = {
        "status": "board",
        "agent_id": ctx.me,
        "station": ctx.station(),
        "topology": where.topology(ctx.bus.con),
        "peers": peers,
        "collisions": board.collisions_now(ctx),
        "unread": mail.unread_count(ctx.bus.con, ctx.me, receive.boxes(ctx.bus.con, ctx.me)),
        "tickets": [tasks.shown(ctx, task) for task in active],
        "asks": [tasks.shown(ctx, task) for task in asks],
        "state_hash": now,
    }
    if verbose:
        result["usage"] = usage.totals(ctx, limits.USAGE).result["usage"]
    return Outcome(result)


def _counts(agent: Agent) -> bool:
    """People and consoles are no peers on the board."""
    return agent.kind == "harness"


def _peer(ctx: Context, agent: Agent) -> dict[str, Any]:
    """One other session: how it stands now, and (`fact`) what of that is no matter of time."""
    sign = present.Sign(ctx.bus, agent, ctx.now)
    told = session.presence(agent)
    fact = _fact(ctx, agent, sign)
    return {
        "agent_id": agent.id,
        "station": agent.station,
        "state": _state(ctx, agent, sign, fact),
        "fact": fact,
        "branch": told.get("branch"),
        "changed": len(told.get("changed", [])),
        "focus": agent.focus,
    }


def _fact(ctx: Context, agent: Agent, sign: present.Sign) -> str:
    """Holder, parked, deaf, gone, or just there."""
    if sign.gone:
        return "gone"
    if any(room.owner == agent.id for room in rooms.every(ctx.bus.con)):
        return "holding"
    if any(row.intent == "parked" for row in present.memberships(ctx.bus.con, agent.id)):
        return "standby"
    return "there" if sign.reach.reachable() else "deaf"


def _state(ctx: Context, agent: Agent, sign: present.Sign, fact: str) -> str:
    """The word that people read; a blocked agent is never offline."""
    if fact == "gone" or (not sign.reach.reachable() and sign.silent >= OFFLINE_MS):
        return "offline"
    if fact in ("standby", "deaf"):
        return fact
    return "working" if fact == "holding" or ctx.now - agent.last_seen < WORKING_MS else "idle"


def state_hash(peers: list[dict[str, Any]], active: list[tickets.Task], asks: list[tickets.Task]) -> str:
    """A short hash of the facts."""
    facts = {
        "peers": sorted(
            (peer["agent_id"], peer["station"] or "", peer["fact"], peer["branch"] or "", peer["focus"] or "")
            for peer in peers
        ),
        "tickets": sorted((task.id, task.assignee or "", task.state) for task in active),
        "asks": sorted(task.id for task in asks),
    }
    return digest.digest(quickjson.dumps(facts).encode())[:HASH_CHARS]


def delta(ctx: Context) -> tuple[Outcome, board.Delta | None]:
    """`board --delta`: what the board hook would show; settled by the caller after the flush."""
    receive.confirm(ctx.bus, ctx.me, ctx.now)
    idle = not ctx.caller.person and not marks.read(ctx.bus, ctx.me).is_open(ctx.now)
    found = board.delta(ctx, fresh_turn=idle)
    joined = members.get(ctx.bus.con, ctx.me, rooms.BUS) is not None
    text = found.text if found is not None else ""
    return Outcome({"status": "delta", "text": text, "known": joined}, receipt=found.receipt if found else None), found
