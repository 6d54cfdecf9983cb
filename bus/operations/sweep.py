"""The sweep: bounded repair of what a dead process left half done.

Mail whose sender died before its wake is simply still due; a lease whose guardian died has a
free lock; a room past its deadline has not moved. Whoever writes next finds them.
"""

from __future__ import annotations

import os

from bus import clock, crash, limits, locks, process
from bus.errors import BusError
from bus.operations import archive, handover, join, present
from bus.operations.outcome import Guard, Wakes
from bus.rules import fairness, turn
from bus.store import agents, config, db, mail, members, rooms, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.store.db import Bus
    from bus.store.rooms import Room
    from bus.store.wakes import Wake


def due(bus: Bus, *, besides: tuple[str, ...] = ()) -> Wakes:
    """Boxes with something due, but for those that were just served. One indexed read, no write."""
    return Wakes(boxes=[box for box in mail.due_boxes(bus.con, limits.SWEEP_BOXES) if box not in besides])


def sweep(bus: Bus, *, data: str | None = None) -> Wakes:
    """A whole sweep, at most once a second per bus; what is to be rung and started."""
    crash.point("before_sweep")
    if not _my_turn(bus):
        return Wakes()
    now = clock.now()
    _close_void(bus, now)
    crash.point("in_sweep")
    found = due(bus) + Wakes(guards=unguarded(bus, now))
    for room in rooms.needing_care(bus.con, now):
        found += advance(bus, room, now)
    for room in rooms.left_lying(bus.con, now - limits.FAIRNESS_GRACE):
        found += _hand_on(bus, room, now)
    _remove_ended(bus, now)
    if data is not None:
        _remove_idle_rooms(bus, data, now)
    return found


def _my_turn(bus: Bus) -> bool:
    """One sweeper at a time, and not within a second of the last one.

    A file's time, not a row: looking whether to sweep must not cost a commit.
    """
    path = os.path.join(bus.dir, "swept")
    held = locks.hold(path)
    if held is None:
        return False
    with held:
        last = os.fstat(held.fd).st_mtime * 1000
        age = clock.file_now() - last
        fresh = os.fstat(held.fd).st_size > 0 and 0 <= age < limits.SWEEP
        if not fresh:
            os.pwrite(held.fd, b".", 0)
        return not fresh


def unguarded(bus: Bus, now: int) -> list[Guard]:
    """Leases that still run and whose guardian's lock is free."""
    return [guard for room in rooms.needing_care(bus.con, now) if (guard := missing_guard(bus, room, now)) is not None]


def missing_guard(bus: Bus, room: Room, now: int) -> Guard | None:
    """The guardian that this room lacks, or None."""
    if room.lease_id is None or room.owner is None or (room.lease_until or 0) <= now:
        return None
    if locks.held(bus.lease_lock(room.lease_id)):
        return None
    owner = agents.get(bus.con, room.owner)
    return Guard(room.id, room.lease_id, room.owner, owner.anchor if owner else None)


def advance(bus: Bus, room: Room, now: int) -> Wakes:
    """Move a room on whose reservation is over; exactly one process does it."""
    if room.reserved_for is None:
        return Wakes()
    seats = present.seats(bus, room.id, now)
    if not turn.reservation_over(room, seats, now):
        return Wakes()
    with db.Write(bus.con) as con:
        again = rooms.by_id(con, room.id)
        same = again is not None and (again.reserved_for, again.reserved_seq, again.reserved_until) == (
            room.reserved_for,
            room.reserved_seq,
            room.reserved_until,
        )
        if again is None or not same:
            return Wakes(rooms=[room.id])
        return handover.expire(con, again, seats, now).wakes


def _hand_on(bus: Bus, room: Room, now: int) -> Wakes:
    """A handoff that nobody took within the grace goes to the fairest who can be reached now."""
    seats = [seat for seat in present.seats(bus, room.id, now) if seat.reachable]
    if fairness.appointed(seats, room.prior_owner) is None:
        return Wakes()
    with db.Write(bus.con) as con:
        if rooms.by_id(con, room.id) != room:
            return Wakes()  # somebody was faster
        return handover.appoint(con, room.id, seats, room.prior_owner, now).wakes


def _close_void(bus: Bus, now: int) -> None:
    """Wakes whose sender died in the act, and claims of shared mail that nobody confirmed."""
    unfinished = wakes.unfinished(bus.con, limits.SWEEP_BOXES)
    void = [wake.id for wake in unfinished if wake.route != "grant" and _is_void(bus, wake, now)]
    half_done = [wake.id for wake in unfinished if wake.route in present.ENDPOINTS and _died(wake)]
    old = now - limits.WAKE_LOG
    if not void and not half_done and not _prunable(bus, old):
        return
    with db.Write(bus.con) as con:
        for wake in half_done:
            wakes.finish(con, wake, "ambiguous", "sender_died")
        for wake in void:
            wakes.close(con, wake, now)
        wakes.prune(con, old)


def _is_void(bus: Bus, wake: Wake, now: int) -> bool:
    """Nobody will confirm this one: whoever was at it, or whom it was for, is gone, or it is too old.

    A native attempt that died half way stays: nobody is woken twice for one event.
    """
    if wake.route not in present.ENDPOINTS and _died(wake):
        return True
    if wake.state == "sending" and not wakes.claims(bus.con, wake.id):
        return False
    known = agents.get(bus.con, wake.agent)
    gone = known is None or known.ended_at is not None or present.Sign(bus, known, now).gone
    return gone or now - wake.at >= limits.UNSEEN_WAKE


def _died(wake: Wake) -> bool:
    """Is the process that was at it proven gone while it was?"""
    return wake.state == "sending" and bool(wake.by) and process.liveness(wake.by or "") == "gone"


def _prunable(bus: Bus, before: int) -> bool:
    """Is there a row of the wake log older than a day?"""
    return wakes.oldest(bus.con) < before


def _remove_ended(bus: Bus, now: int) -> None:
    """Members whose process is proven gone, and who were silent for an hour; never owner or reservee."""
    for room in rooms.every(bus.con):
        kept = (room.owner, room.reserved_for)
        for agent in agents.of_room(bus.con, room.id):
            if agent.id in kept or now - agent.last_seen < limits.ENDED_MEMBER:
                continue
            if present.Sign(bus, agent, now).gone:
                with db.Write(bus.con) as con:
                    again = rooms.by_id(con, room.id)
                    same = agents.get(con, agent.id) == agent  # else it came back since it was probed
                    if same and again is not None and agent.id not in (again.owner, again.reserved_for):
                        members.leave(con, agent.id, room.id, now, "process_ended")
                        join.end_agent(con, agent.id, now)


def _remove_idle_rooms(bus: Bus, data: str, now: int) -> None:
    """Rooms without activity for days and without anybody provably alive go to the archive."""
    set_here = config.get(bus.con, "retention")
    limit = limits.IDLE_ROOM if set_here is None else int(set_here) * limits.HOUR
    if limit <= 0:
        return
    for room in rooms.every(bus.con):
        if now - room.active_at >= limit and archive.removable(bus, room, now, idle=True):
            try:
                archive.remove(bus, data, room, now)
            except (BusError, OSError):
                continue  # the next sweep tries again; nothing was deleted
