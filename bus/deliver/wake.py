"""`serve`: whatever is due in one box gets its wake. Senders and the sweep call the same function.

Kept true: a row is written by compare-and-set before anything that costs a turn is done, so
two who serve the same box wake once; a live wait costs nothing and needs no row; after an
attempt with an unknown outcome nothing else is tried.
"""

from __future__ import annotations

import os

from bus import bell, crash, limits, marks, notify, process, quickjson
from bus.deliver import native
from bus.operations import offer, present, receive
from bus.records import Record
from bus.rules import route, visible
from bus.store import agents, db, events, mail, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.rules.route import Reach
    from bus.store.agents import Agent
    from bus.store.db import Bus

STATION = "station:"


class Delivery(Record):
    """What became of one box: the public status, transport and state of a delivery, as senders see them."""

    box: str
    status: str
    transport: str | None = None
    state: str = "queued"
    reason: str | None = None
    interrupt: str | None = None
    also_receiver: bool = False

    def as_json(self) -> dict[str, Any]:
        """The fields that a sender sees."""
        found: dict[str, Any] = {
            "delivery_status": self.status,
            "delivery_transport": self.transport,
            "delivery_state": self.state,
        }
        if self.reason:
            found["reason"] = self.reason
        if self.interrupt:
            found["interrupt_status"] = self.interrupt
        if self.also_receiver:
            found["also_receiver"] = True
        return found


def serve(bus: Bus, box: str, *, rang: bool, now: int) -> Delivery:
    """Wake whoever reads this box, if something in it is due. `rang`: its room's bell was rung just now."""
    if not box.startswith(STATION):
        return _serve_agent(bus, box, box, rang=rang, now=now)
    there = agents.at_station(bus.con, box.removeprefix(STATION))
    living = [(agent, present.Sign(bus, agent, now)) for agent in there]
    ranked = sorted(
        (route.ORDER.index(route.choose(sign.reach)), agent.last_seen, agent.id)
        for agent, sign in living
        if not sign.gone
    )
    if not ranked:
        return Delivery(box, "waiting", None, "queued", "nobody is at this station")
    done = _serve_agent(bus, ranked[0][2], box, rang=False, now=now)
    for place, _, agent in ranked[1:]:
        if done.state != "failed" or route.ORDER[place] == offer.LINE:
            break  # only a definite failure hands it to the next one, and only to one that listens
        done = _serve_agent(bus, agent, box, rang=False, now=now)
    return done


def readers(bus: Bus, box: str) -> list[str]:
    """The agents that read a box."""
    if not box.startswith(STATION):
        return [box]
    return [agent.id for agent in agents.at_station(bus.con, box.removeprefix(STATION))]


def _serve_agent(bus: Bus, agent: str, box: str, *, rang: bool, now: int) -> Delivery:
    """Wake one agent for what is due in one box."""
    known = agents.get(bus.con, agent)
    reach = present.reach(bus, agent, known)
    if known is not None and box.startswith(STATION) and reach.reachable():
        offer.unheard(bus, known, now)
    # Before the bell: whoever hears it may have read everything a moment later.
    levels = offer.levels(bus.con, [box], now)
    if not rang and (reach.wait or not (reach.rewake or reach.plugin)):
        bell.ring(bus.agent_bell(agent))  # with no wait it is for who follows; a rewake is rung once its state is known
    heard = Delivery(box, "receiver", "wait", "woken")
    if known is None or known.kind != "harness":
        return heard if reach.wait else Delivery(box, "not_woken", None, "queued", "people read when they look")
    urgent = mail.INTERRUPT in levels
    turn_open = marks.read(bus, agent).is_open(now)
    if reach.wait and not urgent and route.wait_serves(known.harness, turn_open=turn_open):
        return heard
    found = _by_other_routes(bus, known, box, reach, levels, now)
    if urgent:
        found.interrupt = _interrupted(found)
        found.also_receiver = reach.wait
    return heard if reach.wait and found.status in ("unreachable", "pending") and not urgent else found


def _interrupted(found: Delivery) -> str:
    """How an interrupt went, in one word."""
    if found.state == "ambiguous":
        return "unknown"
    if found.status in ("rewake", "endpoint", "monitor"):
        return "injected" if found.transport in ("rewake", "claude_inbox") else "queued"
    return "unsupported"


def _by_other_routes(bus: Bus, agent: Agent, box: str, reach: Reach, levels: list[int], now: int) -> Delivery:
    """Rewake, plugin, monitor line, native: the first that is there. `levels`: how loud what is due was."""
    mark = marks.read(bus, agent.id)
    deferred = bool(levels) and not offer.may_join(levels, mark, now)
    urgent = mail.INTERRUPT in levels
    if reach.rewake or reach.plugin:
        return _rewake(bus, agent, box, reach, now, deferred=deferred, urgent=urgent)
    if deferred:
        return Delivery(box, "pending", None, "queued", "turn_open")
    if reach.reachable():
        offer.unheard(bus, agent, now)
    if reach.endpoints and (urgent or not reach.monitor):
        return _native(bus, agent, box, reach, now)
    return _line(bus, agent, box, reach, now)


def _rewake(bus: Bus, agent: Agent, box: str, reach: Reach, now: int, *, deferred: bool, urgent: bool) -> Delivery:
    """Ring it; it decides by itself. What it will not say now is no wake yet."""
    # Looked at before the bell: afterwards the open wake may be the one that carries this very message.
    there = wakes.open_of(bus.con, agent.id, agent.generation)
    covered = there is not None and there.route != offer.LINE and now - there.at < limits.UNSEEN_WAKE
    silenced = offer.silenced(bus, agent.id)
    bell.ring(bus.agent_bell(agent.id))
    name = "rewake" if reach.rewake else "opencode_plugin"
    if deferred:
        return Delivery(box, "rewake", name, "queued", "turn_open")
    if covered and not urgent:
        return Delivery(box, "pending")
    if silenced:
        return Delivery(box, "pending", None, "queued", "wakes are paused until a person speaks")
    return Delivery(box, "rewake", name, "woken")


def _native(bus: Bus, agent: Agent, box: str, reach: Reach, now: int) -> Delivery:
    """One native submission; the next endpoint only after a definite failure."""
    last: Delivery | None = None
    for name in reach.endpoints:
        if name == "cmux" and not _cmux_allowed(bus, agent, now):
            continue
        if name == "cmux" and _surface_changed(bus, agent):
            last = Delivery(box, "unreachable", name, "failed", "interrupt_session_changed")
            continue
        offered = offer.offer(bus, agent, offer.Way(name, ack=name != "claude_inbox"), now)
        if offered is None:
            return last or Delivery(box, "pending")
        _append(bus, agent, offered.first)
        state, error = native.submit(agent, name, offered)
        offer.done(bus, offered, state, error, now)
        if state == "sent":
            return Delivery(box, "endpoint", name, "queued")
        if state == "ambiguous":
            return Delivery(box, "endpoint", name, "ambiguous", error)
        last = Delivery(box, "unreachable", name, "failed", error)
    if last is None or reach.monitor:
        return _line(bus, agent, box, reach, now)
    # Every endpoint refused. The line is in the file already; with its row the sweep does not try all again.
    failed = _offer_line(bus, agent, box, offer.LINE, now)
    if failed is not None:
        _finish(bus, failed, done=True, now=now)
    return last


def _cmux_allowed(bus: Bus, agent: Agent, now: int) -> bool:
    """Typing into a terminal is only for who stands by, and for interrupts."""
    parked = any(row.intent == "parked" for row in present.memberships(bus.con, agent.id))
    return parked or mail.INTERRUPT in offer.levels(bus.con, receive.boxes(bus.con, agent.id), now)


def _surface_changed(bus: Bus, agent: Agent) -> bool:
    """Does something else run in the agent's terminal by now? Its words and its Enter would go to a stranger.

    Its process is proven gone, or another session that may live was seen there since.
    """
    if _dead(agent):
        return True
    surface = _surface(agent)
    later = [other for other in agents.every(bus.con) if other.last_seen > agent.last_seen]
    return any(_surface(other) == surface and not _dead(other) for other in later)


def _dead(agent: Agent) -> bool:
    """Is its process proven gone?"""
    return bool(agent.anchor) and process.liveness(agent.anchor or "") == "gone"


def _surface(agent: Agent) -> object:
    """The terminal that an agent registered."""
    ends = quickjson.loads(agent.endpoints) if agent.endpoints else {}
    return (ends.get("cmux") or {}).get("surface")


class _Offer(Record):
    """A line whose row is written and which is still to be appended."""

    wake: int
    seq: int


def _line(bus: Bus, agent: Agent, box: str, reach: Reach, now: int) -> Delivery:
    """Append the notify line; a live monitor makes it a wake, else it only waits in the file."""
    way = "monitor" if reach.monitor else offer.LINE
    offered = _offer_line(bus, agent, box, way, now)
    if offered is None:
        return Delivery(box, "pending")
    appended = _append(bus, agent, offered.seq)
    _finish(bus, offered, done=appended, now=now)
    if way == "monitor" and appended:
        return Delivery(box, "monitor", "monitor", "woken")
    reason = reach.withheld or ("nothing is listening for it" if appended else "the notify file cannot be written")
    return Delivery(box, "unreachable", None, "queued", reason)


def _finish(bus: Bus, offered: _Offer, *, done: bool, now: int) -> None:
    """What became of a line. Rings: a rewake that started since we probed takes over what reached nobody."""
    with db.Write(bus.con) as con:
        wakes.finish(con, offered.wake, "sent" if done else "failed", None if done else "notify_append_failed")
        if not done:
            wakes.close(con, offered.wake, now)
        row = wakes.get(con, offered.wake)
    if row is not None:
        bell.ring(bus.agent_bell(row.agent))


def _offer_line(bus: Bus, agent: Agent, box: str, way: str, now: int) -> _Offer | None:
    """Write the wake's row, unless nothing is due or another wake is open."""
    if not mail.due(bus.con, box):
        return None
    with db.Write(bus.con) as con:
        there = wakes.open_of(con, agent.id, agent.generation)
        rows = mail.due(con, box)
        urgent = any(level == mail.INTERRUPT for _, level in rows)
        if not rows or (there is not None and not urgent and now - there.at < limits.UNSEEN_WAKE):
            return None
        if there is not None and not urgent:
            wakes.close(con, there.id, now)
            rows = mail.due(con, box)
        seqs = [seq for seq, _ in rows]
        attempt = wakes.Attempt(
            agent=agent.id,
            generation=agent.generation,
            route=way,
            by=process.anchor(os.getpid()),
            upto=seqs[-1],
            at=now,
        )
        wake = wakes.begin(con, attempt)
        mail.cover(con, box, seqs, wake)
    return _Offer(wake, seqs[-1])


def _append(bus: Bus, agent: Agent, seq: int) -> bool:
    """One line for a monitor, armed by us or by hand."""
    event = events.get(bus.con, seq)
    crash.point("before_notify")
    line = notify.line(event.at, event.sender, visible.subject(event)) if event else b""
    done = notify.append(bus.notify_path(agent.id), line)
    crash.point("after_notify")
    return done


def report(done: list[Delivery]) -> dict[str, Any]:
    """What the sender of a message is told."""
    if not done:
        return {"delivery_status": "not_woken", "delivery_transport": None, "delivery_state": "queued"}
    if len(done) == 1:
        return done[0].as_json()
    best = ("receiver", "rewake", "monitor", "endpoint", "pending", "waiting", "not_woken", "unreachable")
    ranked = sorted(done, key=lambda one: best.index(one.status))
    return ranked[0].as_json() | {"deliveries": [{"to": one.box} | one.as_json() for one in done]}
