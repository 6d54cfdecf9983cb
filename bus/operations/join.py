"""Joining and leaving a room, and removing somebody from it."""

from __future__ import annotations

from bus import clock, limits, places
from bus.errors import BusError
from bus.operations import archive, handover, present, recipients
from bus.operations.enter import seated
from bus.operations.outcome import SYSTEM, Outcome, Wakes
from bus.store import agents, db, events, mail, members, notes, rooms
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from bus.operations.enter import Context
    from bus.rules.fairness import Seat
    from bus.store.rooms import Room

HANDOFF_TEMPLATE = {
    "status": "what is done, what is not, how you know",
    "next_action": "the one thing to do next",
    "artifacts": [{"path": "src/file.py", "lines": "10-40", "note": "why to look"}],
    "open_questions": [],
    "do_not": [],
    "verification": "the command that proves it",
}


def join(ctx: Context, *, force_new: bool = False) -> Outcome:
    """Become a member of the room at the path, making the room when there is none.

    With `force_new` the context was entered with an exact path. A `join` event is written only
    for a genuinely new membership with somebody else present.
    """
    data = places.data_dir(ctx.env)
    existed = ctx.found is not None
    path = ctx.found.path if ctx.found is not None else ctx.place.root
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        room, restored = _room(con, ctx, path)
        new = members.join(con, ctx.me, room.id, ctx.now, events.newest(con))
        others = [member for member in members.of_room(con, room.id) if member.agent != ctx.me]
        if new and others and ctx.caller.kind != "console":
            body = {"agent_id": ctx.me}
            events.append(con, Draft(room.id, "join", ctx.me, ctx.now, body, sender_station=ctx.station(), public=True))
        rooms.touch(con, room.id, ctx.now)
    places.index_add(data, room.path, ctx.bus.dir, str(room.id), place=ctx.place)
    result = _joined(ctx, room, existed=existed)
    warnings = _warnings(ctx, existed=existed, force_new=force_new, restored=restored)
    if warnings:
        result["warning"] = "; ".join(warnings)
    return Outcome(result, Wakes(rooms=[room.id] if new else [], bells=[ctx.me] if new else []))


def _room(con: sqlite3.Connection, ctx: Context, path: str) -> tuple[Room, int]:
    """The room of this path, new or not, and how many handoffs its archive gave back."""
    found = rooms.by_path(con, path)
    if found is not None:
        return found, 0
    number = rooms.make(con, path, ctx.now)
    restored = archive.restore(con, ctx.bus, number, path, ctx.now)
    made = rooms.by_id(con, number)
    if made is None:
        raise BusError("store_unusable", "the room that was just made is not there")
    return made, restored


def _warnings(ctx: Context, *, existed: bool, force_new: bool, restored: int) -> list[str]:
    """What may surprise who joins."""
    told = list(ctx.place.warnings)
    if force_new and existed:
        told.append("--force-new had no effect: there is a room at exactly this path")
    if restored:
        told.append(
            f"{restored} pending handoff{'s' if restored > 1 else ''} of the room that was here before wait for you"
        )
    return told


def _joined(ctx: Context, room: Room, *, existed: bool) -> dict[str, Any]:
    """The result of a join."""
    con = ctx.bus.con
    reach = present.reach(ctx.bus, ctx.me)
    return {
        "status": "joined",
        "agent_id": ctx.me,
        "station": ctx.station(),
        "room_id": room.id,
        "path": room.path,
        "bus": ctx.bus.name,
        "requested_path": ctx.place.requested,
        "workspace_root": ctx.place.root,
        "joined_existing_room": existed,
        "cursor_event_seq": events.newest(con),
        "members": seen_members(ctx, room),
        "room_state": room.state,
        "handoff_template": HANDOFF_TEMPLATE,
        "notify_path": ctx.bus.notify_path(ctx.me),
        "wake_transports": reach.transports(),
        "hint": "wait for your turn or for messages with one `tt wait`",
    }


def seen_members(ctx: Context, room: Room) -> list[dict[str, Any]]:
    """The roster of a room."""
    found = []
    for seat in present.seats(ctx.bus, room.id, ctx.now):
        known = agents.get(ctx.bus.con, seat.agent)
        if known is not None:
            found.append(
                {
                    "agent_id": seat.agent,
                    "station": known.station,
                    "status": word(seat, room),
                    "observer": seat.observer,
                    "last_seen_at": clock.iso(known.last_seen),
                }
            )
    return found


def word(seat: Seat, room: Room) -> str:
    """How a member stands, in one word."""
    if room.owner == seat.agent:
        return "owner_gone" if seat.gone else "holding"
    if room.reserved_for == seat.agent:
        return "recipient_gone" if seat.gone else "up_next"
    if seat.gone:
        return "gone"
    if seat.waiting:
        return "waiting"
    if seat.parked:
        return "standby"
    if not seat.present:
        return "dormant"
    return "active" if seat.reachable or seat.fresh else "deaf"


def leave(ctx: Context) -> Outcome:
    """End one's membership. A turn that was held goes on with its handoff, or with a recovery one."""
    seated(ctx)
    wakes = depart(ctx, ctx.me, "left", {"agent_id": ctx.me})
    return _after_departure(ctx, "left", ctx.me, wakes)


def kick(ctx: Context, target: str, *, reason: str | None = None, force: bool = False) -> Outcome:
    """Remove another member. A live or unknown one needs `force`.

    Raises cannot_kick_self, unknown_member, target_active, not_permitted (consoles).
    """
    if not ctx.caller.person:
        seated(ctx)
    if reason is not None and len(reason.encode()) > limits.REASON_BYTES:
        raise BusError("invalid_input", f"a reason has at most {limits.REASON_BYTES} bytes")
    chosen = recipients.member(ctx, target)
    if chosen == ctx.me:
        raise BusError("cannot_kick_self", "you cannot kick yourself", "use `tt leave`")
    seat = next((seat for seat in present.seats(ctx.bus, ctx.room.id, ctx.now) if seat.agent == chosen), None)
    if seat is None:
        raise BusError("unknown_member", f"{chosen} is no member of this room", target=chosen)
    if seat.observer:
        raise BusError("not_permitted", f"{chosen} is a console; its person closes it", target=chosen)
    if not seat.gone and not force:
        message = f"{chosen} is not proven gone"
        raise BusError("target_active", message, "add --force to remove it all the same", target=chosen)
    wakes = depart(ctx, chosen, "kicked", {"agent_id": chosen, "reason": reason, "by": ctx.me})
    return _after_departure(ctx, "kicked", chosen, wakes)


def depart(ctx: Context, agent: str, why: str, body: dict[str, Any]) -> Wakes:
    """End a membership in one transaction: turn, reservation, mail and roster."""
    seats = [seat for seat in present.seats(ctx.bus, ctx.room.id, ctx.now) if seat.agent != agent]
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        room = rooms.by_id(con, ctx.room.id)
        member = members.get(con, agent, ctx.room.id)
        if room is None or member is None or member.left_at is not None:
            raise BusError("unknown_member", f"{agent} is no longer a member of this room", target=agent)
        wakes = handover.give_up(con, room, handover.Leaver(agent, why, {}), seats, ctx.now)
        members.leave(con, agent, room.id, ctx.now, why)
        kind = "kick" if why == "kicked" else "leave"
        draft = Draft(room.id, kind, ctx.me, ctx.now, body, sender_station=ctx.station(), public=bool(seats))
        seq, _ = events.append(con, draft)
        if why == "kicked":
            mail.post(con, seq, [agent], mail.NO_WAKE)
        undelivered = end_agent(con, agent, ctx.now)
    return wakes + Wakes(rooms=[room.id], bells=[agent]) + Wakes(bells=undelivered)


def end_agent(con: sqlite3.Connection, agent: str, now: int) -> list[str]:
    """An agent without any room and without hooks that report it is gone from the bus.

    Its unread mail stays its own; each sender is told once, without a wake.
    """
    known = agents.get(con, agent)
    if known is None or known.kind != "harness" or known.presence or members.rooms_of(con, agent):
        return []
    agents.end(con, agent, now)
    unread = events.several(con, mail.pending(con, agent))
    told: dict[str, list[int]] = {}
    for event in unread:
        if event.sender not in (agent, SYSTEM) and event.type == "message":
            told.setdefault(event.sender, []).append(event.seq)
    for sender, seqs in told.items():
        body = {"agent_id": agent, "event_seqs": seqs}
        seq, _ = events.append(con, Draft(rooms.BUS, "undelivered", SYSTEM, now, body))
        mail.post(con, seq, [sender], mail.NO_WAKE)
    return list(told)


def _after_departure(ctx: Context, status: str, agent: str, wakes: Wakes) -> Outcome:
    """The room ends with its last member, unless something in it waits for somebody."""
    room = rooms.by_id(ctx.bus.con, ctx.room.id)
    deleted = False
    if room is not None and archive.removable(ctx.bus, room, ctx.now, idle=False):
        deleted = archive.remove(ctx.bus, places.data_dir(ctx.env), room, ctx.now)
    left = [] if deleted else [member.agent for member in members.of_room(ctx.bus.con, ctx.room.id)]
    result: dict[str, Any] = {
        "status": "room_deleted" if deleted else status,
        "agent_id": agent,
        "room_id": ctx.room.id,
        "path": ctx.room.path,
        "remaining_members": left,
    }
    if not deleted:
        waiting = mail.pending(ctx.bus.con, mail.turn_box(ctx.room.id))
        kept = [] if left else _kept(ctx, waiting)
        if kept:
            result["kept_for"] = kept
        if any(":chat:" in member for member in left):
            result["hint"] = "a console is here: next time `tt standby` keeps you reachable"
    return Outcome(result, wakes)


def _kept(ctx: Context, waiting: list[int]) -> list[str]:
    """Why a room without members stays."""
    reasons = [
        ("pending_handoff", bool(waiting)),
        ("unresolved_notes", bool(notes.unresolved(ctx.bus.con, ctx.room.id))),
        ("unread_mail", mail.unread_in_room(ctx.bus.con, ctx.room.id) > len(waiting)),
    ]
    return [name for name, there in reasons if there]
