"""`serve`: whatever is due in one box gets its wake. Senders and the sweep call the same function.

Kept true: a row is written by compare-and-set before anything that costs a turn is done, so
two who serve the same box wake once; a live wait costs nothing and needs no row.
"""

from __future__ import annotations

import os

from bus import bell, crash, limits, notify, process
from bus.operations import present
from bus.records import Record
from bus.rules import route, visible
from bus.store import agents, db, events, mail, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.store.agents import Agent
    from bus.store.db import Bus

STATION = "station:"


class Delivery(Record):
    """What became of one box: the public status, transport and state of design 3.3.5."""

    box: str
    status: str
    transport: str | None = None
    state: str = "queued"
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields that a sender sees."""
        found: dict[str, Any] = {
            "delivery_status": self.status,
            "delivery_transport": self.transport,
            "delivery_state": self.state,
        }
        return found | ({"reason": self.reason} if self.reason else {})


def serve(bus: Bus, box: str, *, rang: bool, now: int) -> Delivery:
    """Wake whoever reads this box, if something in it is due. `rang`: its room's bell was rung just now."""
    if not box.startswith(STATION):
        return _agent(bus, box, box, rang=rang, now=now)
    there = agents.at_station(bus.con, box.removeprefix(STATION))
    ranked = sorted(
        ((_rank(bus, agent), agent.last_seen, agent.id) for agent in there if not _gone(bus, agent, now)),
    )
    if not ranked:
        return Delivery(box, "waiting", None, "queued", "nobody is at this station")
    return _agent(bus, ranked[0][2], box, rang=False, now=now)


def _gone(bus: Bus, agent: Agent, now: int) -> bool:
    """Is this session proven gone?"""
    return present.Sign(bus, agent, now).gone


def _rank(bus: Bus, agent: Agent) -> int:
    """Best route first."""
    return ("wait", "monitor", "line").index(route.choose(present.reach(bus, agent.id)))


def _agent(bus: Bus, agent: str, box: str, *, rang: bool, now: int) -> Delivery:
    """Wake one agent for what is due in one box."""
    way = route.choose(present.reach(bus, agent))
    if way == "wait":
        if not rang:
            bell.ring(bus.agent_bell(agent))
        return Delivery(box, "receiver", "wait", "woken")
    known = agents.get(bus.con, agent)
    if known is None or known.kind != "harness":
        return Delivery(box, "not_woken", None, "queued", "people read when they look")
    offered = _offer(bus, known, box, way, now)
    if offered is None:
        return Delivery(box, "pending")
    return _append_line(bus, known, box, way, offered)


class _Offer(Record):
    """A wake whose row is written and whose act is still to be done."""

    wake: int
    seq: int


def _offer(bus: Bus, agent: Agent, box: str, way: str, now: int) -> _Offer | None:
    """Write the wake's row, unless nothing is due or another wake is open."""
    if not mail.due(bus.con, box):
        return None
    with db.Write(bus.con) as con:
        there = wakes.open_of(con, agent.id, agent.generation)
        rows = [seq for seq, _ in mail.due(con, box)]
        if not rows or (there is not None and now - there.at < limits.UNSEEN_WAKE):
            return None
        if there is not None:
            wakes.close(con, there.id, now)
            rows = [seq for seq, _ in mail.due(con, box)]
        attempt = wakes.Attempt(
            agent=agent.id,
            generation=agent.generation,
            route=way,
            by=process.anchor(os.getpid()),
            upto=rows[-1],
            at=now,
        )
        wake = wakes.begin(con, attempt)
        mail.cover(con, box, rows, wake)
    return _Offer(wake, rows[-1])


def _append_line(bus: Bus, agent: Agent, box: str, way: str, offer: _Offer) -> Delivery:
    """Append the notify line; a live monitor makes it a wake, else it only waits in the file."""
    event = events.get(bus.con, offer.seq)
    crash.point("before_notify")
    line = notify.line(event.at, event.sender, visible.subject(event)) if event else b""
    done = notify.append(bus.notify_path(agent.id), line)
    crash.point("after_notify")
    with db.Write(bus.con) as con:
        wakes.finish(con, offer.wake, "sent" if done else "failed", None if done else "notify_append_failed")
        if not done:
            mail.uncover(con, offer.wake)
    if way == "monitor" and done:
        return Delivery(box, "monitor", "monitor", "woken")
    return Delivery(box, "unreachable", None, "queued", "nothing is listening for it" if done else "no notify file")


def report(done: list[Delivery]) -> dict[str, Any]:
    """What the sender of a message is told."""
    if not done:
        return {"delivery_status": "not_woken", "delivery_transport": None, "delivery_state": "queued"}
    if len(done) == 1:
        return done[0].as_json()
    ranked = sorted(done, key=lambda one: one.status not in ("receiver", "monitor"))
    return ranked[0].as_json() | {"deliveries": [{"to": one.box} | one.as_json() for one in done]}
