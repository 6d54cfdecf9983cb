"""Receiving: collect what is unread, claim what is shared, mark what was flushed.

Kept true: nothing is marked before it was printed and flushed; what a result showed is
marked exactly, no more; an item of a shared box is shown to one reader at a time.
"""

from __future__ import annotations

import os

from bus import crash, limits, process
from bus.operations import present
from bus.operations.outcome import Outcome, Receipt
from bus.records import Record
from bus.rules import visible
from bus.store import agents, db, events, mail, members, rooms, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from bus.operations.enter import Context
    from bus.store.db import Bus
    from bus.store.events import Event
    from bus.store.mail import Item
    from bus.store.wakes import Wake

READS = ("receiver", "wait", "try", "inbox", "board")  # routes of looks: their claim ends with the look
OVERHEAD = 400  # bytes of JSON around the body of an event


class Batch(Record):
    """Unread events as a whole, oldest first; `more` says that the next look has more."""

    items: list[Item]
    more: bool

    def claims_needed(self, me: str, *, own: bool) -> bool:
        """Is something from a box that others read as well, or (`own`) from any box?"""
        return any(item.box is not None and (own or item.box != me) for item in self.items)


def boxes(con: sqlite3.Connection, me: str) -> list[str]:
    """The boxes an agent reads: its own and its station's."""
    known = agents.get(con, me)
    if known is None or known.kind != "harness" or not known.station:
        return [me]
    return [me, mail.station_box(known.station)]


def look(con: sqlite3.Connection, me: str, *, limit: int | None = None) -> Batch:
    """What is unread, at most 500 events or 1 MiB. Writes nothing."""
    most = min(limit or limits.RESULT_EVENTS, limits.RESULT_EVENTS)
    items: list[Item] = []
    size = 0
    for item in mail.unread(con, me, boxes(con, me), most + 1):
        size += len(item.event.body.encode()) + OVERHEAD
        if len(items) == most or (items and size > limits.RESULT_BYTES):
            return Batch(items, more=True)
        items.append(item)
    return Batch(items, more=False)


def claim(bus: Bus, me: str, batch: Batch, route: str, now: int, *, own: bool = False) -> Batch:
    """Before printing: take what comes from shared boxes, or leave it to who was faster.

    `own`: also what is addressed to the reader alone. A client that runs a hook once for each of its
    registrations would otherwise show the same mail as often.
    """
    if not batch.claims_needed(me, own=own):
        return batch
    known = agents.get(bus.con, me)
    attempt = wakes.Attempt(
        agent=me,
        generation=known.generation if known else 1,
        route=route,
        by=process.anchor(os.getpid()),
        upto=batch.items[-1].event.seq,
        at=now,
    )
    dead = _dead_claims(bus, me) if own else set()
    with db.Write(bus.con) as con:
        wake = wakes.begin(con, attempt)
        kept = []
        for item in batch.items:
            free = item.box is None or (item.box == me and not own)
            if free or _taken(con, item, _Reader(me, wake, now, dead if own else None)):
                kept.append(item)
        if not wakes.covers(con, wake):
            wakes.drop(con, wake)  # others were faster: nobody was woken
    return Batch(kept, batch.more)


class _Reader(Record):
    """Who claims, by which wake. `dead`: its looks that are proven over; None: this look takes from an earlier one."""

    me: str
    wake: int
    now: int
    dead: set[int] | None

    def gives_way(self, holder: Wake) -> bool:
        """Is another look of the same agent about to show this? One that hangs is waited for so long, and no longer."""
        if self.dead is None or holder.agent != self.me or holder.route not in READS or holder.state != "sending":
            return False
        return holder.id not in self.dead and self.now - holder.at < limits.UNSEEN_WAKE


def _taken(con: sqlite3.Connection, item: Item, reader: _Reader) -> bool:
    """Cover one row by this wake; false where another agent's wake covers it, or it was received since the look."""
    box, seq = item.box or "", item.event.seq
    if mail.cover(con, box, [seq], reader.wake):
        return True
    holder = wakes.claimed_by(con, [seq], box).get(seq)
    if holder is None or reader.gives_way(holder):
        return False
    mine = holder.agent == reader.me
    if holder.route == wakes.LINE or (mine and holder.route in READS):
        # A line that nobody heard is no claim, and an earlier look of mine that was not confirmed goes on as this one.
        wakes.close(con, holder.id, reader.now)
        return bool(mail.cover(con, box, [seq], reader.wake))
    return mine


def unclaim(bus: Bus, me: str, told: Receipt | None, now: int) -> None:
    """A result that nobody could read: give back at once what it had claimed."""
    if told is None or not told.mail:
        return
    with db.Write(bus.con) as con:
        for box, seq in told.mail:
            holder = wakes.claimed_by(con, [seq], box).get(seq)
            claimed = holder is not None and (box.startswith("station:") or holder.route == told.route)
            if holder is not None and claimed and holder.agent == me:
                wakes.finish(con, holder.id, "failed", "not_printed")
                wakes.close(con, holder.id, now)


def receipt(batch: Batch, me: str, route: str) -> Receipt:
    """What is to be marked once the batch was flushed."""
    cursors: dict[int, int] = {}
    for item in batch.items:
        if item.event.public:
            cursors[item.event.room] = max(item.event.seq, cursors.get(item.event.room, 0))
    rows = [(item.box, item.event.seq) for item in batch.items if item.box is not None]
    return Receipt(agent=me, route=route, mail=rows, cursors=cursors)


def shown(con: sqlite3.Connection, me: str, found: list[Event]) -> list[dict[str, Any]]:
    """Events as JSON."""
    addressed = mail.boxes_of(con, [event.seq for event in found])
    paths = {room.id: room.path for room in rooms.every(con)} if any(event.room for event in found) else {}
    return [visible.shown(event, me, addressed.get(event.seq, []), paths) for event in found]


def settle(bus: Bus, told: Receipt | None, now: int) -> None:
    """Mark what was flushed: mail received, cursors moved, wakes seen, one row for the log.

    Raises what a busy or broken store raises; the events then simply come again.
    """
    if told is None or told.empty():
        return
    crash.point("after_flush")
    with db.Write(bus.con) as con:
        done = mark(con, told.agent, {"mail": _still_theirs(con, told), "cursors": told.cursors}, now)
        for draft in told.notices:
            seq, _ = events.append(con, draft.replace(at=now))
            mail.post(con, seq, [told.agent], mail.NO_WAKE)
            mail.receive(con, [(told.agent, seq)], told.agent, now)
        _log(con, told, now, done)
    crash.point("after_mark")


def _still_theirs(con: sqlite3.Connection, told: Receipt) -> list[tuple[str, int]]:
    """The rows to mark. A turn that was taken back before this left its handoff for the next holder."""
    claim = mail.letter(con, told.agent, told.claim) if told.claim is not None else None
    if claim is None or claim.received_by != mail.VOID:
        return told.mail
    return [(box, seq) for box, seq in told.mail if not box.startswith("turn:")]


def mark(con: sqlite3.Connection, agent: str, shown_there: dict[str, Any], now: int) -> set[int]:
    """Mail received, cursors moved, and the wakes that offered it seen; their numbers."""
    done = mail.receive(con, shown_there["mail"], agent, now)
    wakes.seen(con, done, now)
    for room, seq in shown_there["cursors"].items():
        members.move_cursor(con, agent, room, seq)
    return done


def defer(bus: Bus, told: Receipt | None, now: int) -> None:
    """Printed where the end of a background command wakes nobody: received at the next sign of the session."""
    if told is None or told.empty():
        return
    if told.claim is not None or not (told.mail or told.cursors):
        settle(bus, told, now)
        return
    with db.Write(bus.con) as con:
        known = agents.get(con, told.agent)
        shown_there = {"mail": told.mail, "cursors": told.cursors}
        upto = max([seq for _, seq in told.mail] + list(told.cursors.values()))
        attempt = wakes.Attempt(
            agent=told.agent,
            generation=known.generation if known else 1,
            route=wakes.WAITED,
            by=None,
            upto=upto,
            at=now,
            state="sent",
            shown=shown_there,
        )
        wakes.begin(con, attempt)


def confirm(bus: Bus, me: str, now: int) -> None:
    """A sign of the session: what its last wait printed is received now, and what dead readers held is free."""
    found = wakes.unconfirmed(bus.con, me)
    dead = _dead_claims(bus, me)
    if not found and not dead:
        return
    with db.Write(bus.con) as con:
        for held in dead:
            wakes.close(con, held, now)
        for wake in found:
            mark(con, me, wakes.shown_of(wake), now)
            wakes.see(con, wake.id, now)


def _dead_claims(bus: Bus, me: str) -> set[int]:
    """Claims of mail that I read by looks that died before they were confirmed."""
    found = set()
    for box in boxes(bus.con, me):
        for wake in wakes.covering(bus.con, box):
            row = wakes.get(bus.con, wake)
            if row is None or row.state != "sending" or row.route not in READS or not row.by:
                continue
            if process.liveness(row.by) == "gone":
                found.add(wake)
    return found


def _log(con: sqlite3.Connection, told: Receipt, now: int, done: set[int]) -> None:
    """The row of the wake log: a wait that returned cost a turn, a look that the agent asked for did not.

    A look that claimed shared mail has its row already.
    """
    known = agents.get(con, told.agent)
    if known is None or not (told.mail or told.cursors):
        return
    agents.touch(con, told.agent, now)
    upto = max([seq for _, seq in told.mail] + list(told.cursors.values()))
    if any(row is not None and row.route == told.route and row.agent == told.agent for row in _rows(con, done)):
        return
    attempt = wakes.Attempt(
        agent=told.agent,
        generation=known.generation,
        route=told.route,
        by=None,
        upto=upto,
        at=now,
        state="sent",
        shown={"mail": told.mail, "cursors": told.cursors},
        seen_at=now,
    )
    wakes.begin(con, attempt)


def _rows(con: sqlite3.Connection, found: set[int]) -> list[Wake | None]:
    """The rows of these wakes."""
    return [wakes.get(con, wake) for wake in found]


def _come(ctx: Context) -> None:
    """A session whose first command this is comes to its station now: what waits there is for it too."""
    if ctx.station() and ctx.caller.kind == "harness" and agents.get(ctx.bus.con, ctx.me) is None:
        with db.Write(ctx.bus.con) as con:
            present.register(con, ctx)


def inbox(ctx: Context, *, peek: bool = False, limit: int | None = None) -> Outcome:
    """Drain the unread mail without blocking, or only look at it. No membership is needed."""
    con = ctx.bus.con
    if not peek:
        _come(ctx)
        confirm(ctx.bus, ctx.me, ctx.now)
    batch = look(con, ctx.me, limit=limit)
    if not peek:
        batch = claim(ctx.bus, ctx.me, batch, "inbox", ctx.now)
    found = [item.event for item in batch.items]
    result: dict[str, Any] = {"status": "inbox", "agent_id": ctx.me, "events": shown(con, ctx.me, found)}
    if batch.more:
        result["more"] = True
        result["unread"] = mail.unread_count(con, ctx.me, boxes(con, ctx.me))
    return Outcome(result, receipt=None if peek else receipt(batch, ctx.me, "inbox"))
