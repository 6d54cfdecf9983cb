"""Offering unread mail as an envelope: one wake row by compare-and-set, before anything costs a turn.

Rewakes, native routes and delivery hooks share this. Kept true: what an open wake covers is
not offered again; an agent's normal message never joins an open turn.
"""

from __future__ import annotations

import os

from bus import envelope, ids, limits, marks, process
from bus.errors import BusError
from bus.operations import receive
from bus.operations.outcome import Outcome, Wakes
from bus.records import Record
from bus.store import agents, db, events, mail, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from bus.operations.enter import Context
    from bus.store.agents import Agent
    from bus.store.db import Bus

SILENT_AFTER = 3  # rewakes in a row without a receipt
LINE = wakes.LINE


class Way(Record):
    """How the offer travels."""

    route: str
    ack: bool = False
    max_bytes: int = limits.ENVELOPE_BYTES
    max_events: int = limits.ENVELOPE_EVENTS


class Offered(Record):
    """A wake whose row is written; `text` is the envelope, `line` its body-free form, `level` the loudest in it."""

    wake: int
    token: str
    text: str
    line: str
    level: int
    first: int


def levels(con: sqlite3.Connection, boxes: list[str], now: int) -> list[int]:
    """How loudly each due row may wake. An interrupt that nobody could dispatch in time is one no more."""
    found = []
    for box in boxes:
        for seq, level in mail.due(con, box):
            if level == mail.INTERRUPT:
                event = events.get(con, seq)
                late = event is None or now - event.at > limits.INTERRUPT_EXPIRY
                found.append(mail.AFTER_TURN if late else level)
            else:
                found.append(level)
    return found


def unheard(bus: Bus, agent: Agent, now: int) -> None:
    """Give up a wake that was only a line in the file while nothing listened: it reached nobody.

    Called by whoever listens now; else its mail would count as offered and wake nobody.
    """
    there = wakes.open_of(bus.con, agent.id, agent.generation)
    found = {there.id} if there is not None and there.route == LINE else set()
    for box in receive.boxes(bus.con, agent.id):
        if box != agent.id:  # a line to somebody else at the station is no claim either
            found |= wakes.covering(bus.con, box, LINE)
    for wake in found:
        reopen(bus, wake, now)


def may_join(found: list[int], mark: marks.Mark, now: int) -> bool:
    """Is something due that may be said now? What agents write waits for the end of an open turn."""
    return any(level > mail.AFTER_TURN for level in found) or (bool(found) and not mark.is_open(now))


def offer(bus: Bus, agent: Agent, way: Way, now: int) -> Offered | None:
    """Write the wake and build its envelope from all unread mail; None when there is nothing to offer now."""
    boxes = receive.boxes(bus.con, agent.id)
    mark = marks.read(bus, agent.id)
    if not may_join(levels(bus.con, boxes, now), mark, now):
        return None
    repo = bus.repository()
    with db.Write(bus.con) as con:
        known = agents.get(con, agent.id)
        found = levels(con, boxes, now)
        if known is None or known.ended_at is not None or not may_join(found, mark, now):
            return None
        urgent = mail.INTERRUPT in found
        there = wakes.open_of(con, agent.id, known.generation)
        if there is not None and not urgent:
            if now - there.at < limits.UNSEEN_WAKE:
                return None
            wakes.close(con, there.id, now)
        return _write(con, repo, known, way, max(found), now)


def _write(con: sqlite3.Connection, repo: str, agent: Agent, way: Way, level: int, now: int) -> Offered:
    """Row, cover and envelope."""
    batch = receive.look(con, agent.id)
    token = ids.new_id("", 12)
    shown = receive.shown(con, agent.id, [item.event for item in batch.items])
    built = envelope.build(shown, token, ack=way.ack, max_bytes=way.max_bytes, max_events=way.max_events, bus=repo)
    inside = set(built.seqs)
    kept = receive.Batch([item for item in batch.items if item.event.seq in inside], more=False)
    told = receive.receipt(kept, agent.id, way.route)
    attempt = wakes.Attempt(
        agent=agent.id,
        generation=agent.generation,
        route=way.route,
        by=process.anchor(os.getpid()),
        upto=batch.items[-1].event.seq if batch.items else 0,
        at=now,
        shown={"mail": told.mail, "cursors": told.cursors},
        token=token,
    )
    wake = wakes.begin(con, attempt)
    covered = kept.items or batch.items[:1]  # a body-free line offers the one event that it speaks of
    rows = [(item.box, item.event.seq) for item in covered if item.box is not None]
    taken = [mail.cover(con, box, [seq], wake) for box, seq in rows]
    if not any(taken):
        # Only broadcasts fit. Without a row of mail the wake would not be open, and the next rewake
        # would say the same again; its receipt makes these due once more.
        for box in receive.boxes(con, agent.id):
            mail.cover(con, box, [seq for seq, _ in mail.due(con, box)], wake)
    line = envelope.too_large(shown[0], repo) if shown else built.text
    return Offered(wake, token, built.text, line, level, covered[0].event.seq if covered else 0)


def done(bus: Bus, offered: Offered, state: str, error: str | None, now: int) -> None:
    """What became of it; a definite failure gives the mail back."""
    with db.Write(bus.con) as con:
        wakes.finish(con, offered.wake, state, error)
        if state == "failed":
            wakes.close(con, offered.wake, now)


def reopen(bus: Bus, wake: int, now: int) -> None:
    """Give up a delivery that brought no answer: its mail is due again."""
    with db.Write(bus.con) as con:
        wakes.close(con, wake, now)


def silenced(bus: Bus, agent: str) -> bool:
    """Three rewakes in a row brought no receipt: silent until a person speaks."""
    spoke = marks.read(bus, agent).person_at
    return wakes.unreceived(bus.con, agent, "rewake", spoke) >= SILENT_AFTER


def receipt(bus: Bus, agent: str, tokens: list[str], now: int) -> list[int]:
    """Tokens that came back in a prompt, or by `tt ack`: what they showed is received. The event numbers.

    A token of another agent changes nothing.
    """
    found = [wake for token in tokens if (wake := wakes.by_token(bus.con, token)) and wake.agent == agent]
    open_ones = [wake for wake in found if wake.seen_at is None]
    if open_ones:
        with db.Write(bus.con) as con:
            for wake in open_ones:
                receive.mark(con, agent, wakes.shown_of(wake), now)
                wakes.see(con, wake.id, now)
                mail.uncover(con, wake.id)  # what it covered and did not show is due again
    return sorted({seq for wake in found for _, seq in wakes.shown_of(wake)["mail"]} | _broadcasts(found))


def ack(ctx: Context, token: str) -> Outcome:
    """`tt ack TOKEN`: exactly what that envelope showed is received. Claims nothing.

    Raises unknown_ack_token, foreign_ack_token.
    """
    wake = wakes.by_token(ctx.bus.con, token)
    if wake is None:
        raise BusError("unknown_ack_token", "no envelope on this bus has that token", "read mail with `tt inbox`")
    if wake.agent != ctx.me:
        raise BusError("foreign_ack_token", "that envelope was for another agent", "read your own with `tt inbox`")
    before = wake.seen_at is not None
    seqs = receipt(ctx.bus, ctx.me, [token], ctx.now)
    status = "already_acknowledged" if before else "acknowledged"
    return Outcome({"status": status, "event_seqs": seqs}, Wakes(boxes=[ctx.me]))


def _broadcasts(found: list[wakes.Wake]) -> set[int]:
    """The highest broadcast of each room that was shown."""
    return {seq for wake in found for seq in wakes.shown_of(wake)["cursors"].values()}
