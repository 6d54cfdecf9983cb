"""Messages: to an agent, a person, a station, the room or the bus."""

from __future__ import annotations

from bus import clock
from bus.errors import BusError
from bus.operations import present, recipients, where
from bus.operations.enter import room_or_bus, seated
from bus.operations.outcome import Outcome, Wakes
from bus.records import Record
from bus.rules import roles
from bus.store import agents, db, events, mail, members, rooms
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from bus.operations.enter import Context


class Letter(Record):
    """A message on its way: what it says, and how loudly."""

    text: str
    interrupt: bool = False
    wake: bool = True
    thread: str | None = None
    in_reply_to: str | None = None


def send(  # a verb's options
    ctx: Context,
    recipient: str,
    body: str,
    *,
    interrupt: bool = False,
    wake: bool = True,
    thread: str | None = None,
) -> Outcome:
    """Send a message. Nobody needs to be a member, but a room message of an agent.

    Raises unknown_recipient, ambiguous_recipient, not_joined, room_not_found; nothing is
    written then, not even who the caller is.
    """
    letter = Letter(body, interrupt, wake, thread)
    if recipient in ("room", "all", "everyone"):
        return _broadcast(ctx, letter, _own_room(ctx))
    if recipient == "bus":
        return _broadcast(ctx, letter, rooms.BUS)
    return _directed(ctx, letter, recipients.resolve(ctx, recipient))


def reply(ctx: Context, event_id: str, body: str, *, interrupt: bool = False, wake: bool = True) -> Outcome:
    """Answer the sender of an event, in its thread. Raises event_not_found, unknown_recipient."""
    found = events.by_id(ctx.bus.con, event_id)
    if found is None and event_id.isascii() and event_id.isdigit():
        found = events.get(ctx.bus.con, int(event_id)) if len(event_id) < 16 else None
    if found is None:
        raise BusError("event_not_found", f"there is no event {event_id[:100]!r} on this bus", "see `tt events`")
    thread = found.thread or found.id
    letter = Letter(body, interrupt, wake, thread, in_reply_to=found.id)
    return _directed(ctx, letter, _sender(ctx, found.sender, found.sender_station))


def _sender(ctx: Context, sender: str, station: str | None) -> recipients.Target:
    """Who sent it; if that one is gone, whoever is at its station."""
    known = agents.get(ctx.bus.con, sender)
    if known is not None and known.ended_at is None:
        return recipients.Target(sender, sender)
    if known is not None and station:
        return recipients.Target(mail.station_box(station))
    return recipients.resolve(ctx, sender)


def _own_room(ctx: Context) -> int:
    """The room to speak to: an agent speaks to rooms it belongs to, a person to any."""
    if not ctx.caller.person:
        seated(ctx)
    return ctx.room.id


def _level(ctx: Context, letter: Letter) -> int:
    """How a message may wake: an agent's never joins an open turn."""
    if not letter.wake:
        return mail.NO_WAKE
    if letter.interrupt:
        return mail.INTERRUPT
    return mail.MAY_JOIN if ctx.caller.person else mail.AFTER_TURN


def _write(con: sqlite3.Connection, ctx: Context, letter: Letter, room: int, *, public: bool) -> tuple[int, str]:
    """The event of a message."""
    present.register(con, ctx)
    body: dict[str, object] = {"text": letter.text}
    if letter.interrupt:
        body["interrupt"] = True
    if letter.in_reply_to:
        body["in_reply_to"] = letter.in_reply_to
    draft = Draft(
        room,
        "message",
        ctx.me,
        ctx.now,
        body,
        sender_station=ctx.station(),
        public=public,
        thread=letter.thread,
    )
    written = events.append(con, draft)
    if room:
        rooms.touch(con, room, ctx.now)
    return written


def _permit(ctx: Context, target: str | None, room: int | None) -> None:
    """Topology, before anything is written: a refused message leaves no row, no line, no bell."""
    topology = where.topology(ctx.bus.con)
    if topology == roles.OPEN:
        return
    sender = where.actor(ctx)
    if target is not None:
        refused = roles.message_refused(topology, sender, where.actor_at(ctx.bus.con, target))
    else:
        refused = roles.broadcast_refused(topology, sender, own_room=room != rooms.BUS and where.own_room(ctx))
    if refused:
        raise BusError("topology_refused", refused, "use `tt ask …`, or write to the expo: `tt msg send expo …`")


def _directed(ctx: Context, letter: Letter, target: recipients.Target) -> Outcome:
    """One addressee: an agent, a person or a station."""
    _permit(ctx, target.box, None)
    if target.agent == ctx.me:
        raise BusError("invalid_input", "that is you", "leave yourself a note instead: `tt notes add`")
    with db.Write(ctx.bus.con) as con:
        seq, event = _write(con, ctx, letter, room_or_bus(con, ctx), public=False)
        mail.post(con, seq, [target.box], _level(ctx, letter))
    wakes = Wakes(boxes=[target.box]) if letter.wake else Wakes()
    return Outcome(_sent(ctx, seq, event, target.box), wakes)


def _broadcast(ctx: Context, letter: Letter, room: int) -> Outcome:
    """A room or bus message: read on the next drain; a person's also wakes every agent that is there.

    An agent's wakes nobody, since two agents would answer each other for ever; only its
    interrupt reaches the one who holds the turn.
    """
    _permit(ctx, None, room)
    with db.Write(ctx.bus.con) as con:
        seq, event = _write(con, ctx, letter, room, public=True)
        boxes = _woken(con, ctx, letter, room)
        mail.post(con, seq, boxes, _level(ctx, letter))
    wakes = Wakes(rooms=[room], boxes=boxes) if letter.wake else Wakes()
    return Outcome(_sent(ctx, seq, event, "room" if room else "bus"), wakes)


def _woken(con: sqlite3.Connection, ctx: Context, letter: Letter, room: int) -> list[str]:
    """The agents to which a broadcast is addressed as well."""
    if not ctx.caller.person:
        owner = rooms.by_id(con, room) if letter.interrupt else None
        return [owner.owner] if owner is not None and owner.owner and owner.owner != ctx.me else []
    harness = {agent.id for agent in agents.every(con) if agent.kind == "harness" and agent.id != ctx.me}
    return [member.agent for member in members.of_room(con, room) if member.agent in harness]


def _sent(ctx: Context, seq: int, event: str, to: str) -> dict[str, object]:
    """The result without what delivery adds."""
    return {"status": "sent", "event_seq": seq, "event_id": event, "to": to, "created_at": clock.iso(ctx.now)}
