"""Looking: whoami, list, state, health, events, wakes. Nothing here writes."""

from __future__ import annotations

import os

from bus import clock, gitdir, identity, limits, locks, places
from bus.errors import BusError
from bus.operations import grant, join, offer, present, receive, where
from bus.operations.outcome import Outcome
from bus.store import agents, db, events, listeners, mail, members, notes, rooms, wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bus.identity import Caller
    from bus.operations.enter import Context
    from bus.store.rooms import Room


def whoami(
    env: Mapping[str, str], agent: str | None = None, *, path: str | None = None, explain: bool = False
) -> Outcome:
    """Who is calling, and by which rule. Needs no bus."""
    caller = identity.caller(env, os.getpid(), agent=agent)
    station, said = _station_of(env, caller, path)
    result: dict[str, Any] = {
        "status": "whoami",
        "agent_id": caller.agent_id,
        "kind": caller.kind,
        "source": caller.source,
        "station": station,
        "person": caller.person,
        "detail": f"{caller.name} by {caller.source}",
        "process_metadata": {"anchor": caller.anchor, "verified": caller.verified},
    }
    if said is not None:
        result["refused"] = said
    if explain:
        result["steps"] = [{"rule": rule, "found": found} for rule, found in caller.steps]
    return Outcome(result)


def _station_of(env: Mapping[str, str], caller: Caller, path: str | None) -> tuple[str | None, str | None]:
    """The caller's station, and what is wrong with a variable that names another one."""
    try:
        place = places.find(path, env)
        if not places.has_bus(place.bus_dir):
            return place.station_hint, None
        with db.open_bus(place.bus_dir) as bus:
            bound = agents.session(bus.con, caller.session_key)
            me = bound[0] if bound else caller.agent_id
            return where.of_caller(bus.con, caller, place, env, me).station, None
    except BusError as error:
        return error.details.get("station"), error.message if error.code == "not_permitted" else None


def listing(env: Mapping[str, str], path: str | None = None, *, every: bool = False) -> Outcome:
    """Rooms under a path (default: all), over all buses; ended and quiet ones only with `every`."""
    data = places.data_dir(env)
    above = places.absolute(path) if path is not None else None
    found: list[dict[str, Any]] = []
    unreadable: list[dict[str, str]] = []
    for directory in places.buses(data):
        try:
            with db.open_bus(directory) as bus:
                found += [_listed(bus, room) for room in rooms.every(bus.con) if _below(room.path, above)]
        except BusError as error:
            unreadable.append({"bus": os.path.basename(directory), "error": error.code})
    found.sort(key=lambda room: (room["updated_at"], room["path"]), reverse=True)
    shown = found if every else [room for room in found if room["members"] or room["state"] != "idle"]
    result: dict[str, Any] = {"status": "rooms", "rooms": shown}
    if len(shown) < len(found):
        result["hidden"] = {"shown_count": len(shown), "total_count": len(found)}
    if unreadable:
        result["unreadable"] = unreadable
    return Outcome(result)


def _below(path: str, above: str | None) -> bool:
    """Is the room at or below this directory?"""
    return above is None or path == above or path.startswith(above.rstrip("/") + "/")


def _listed(bus: db.Bus, room: Room) -> dict[str, Any]:
    """One room of the list."""
    return {
        "room_id": room.id,
        "path": room.path,
        "bus": bus.name,
        "state": room.state,
        "owner": room.owner,
        "reserved_for": room.reserved_for,
        "turn_id": room.turn_id,
        "lease_expires_at": clock.iso_or_none(room.lease_until),
        "members": [member.agent for member in members.of_room(bus.con, room.id)],
        "updated_at": clock.iso(room.active_at),
    }


def room_card(ctx: Context, room: Room) -> dict[str, Any]:
    """A room with what is derived when it is looked at."""
    con = ctx.bus.con
    card = _listed(ctx.bus, room)
    del card["members"]
    card["reserved_until"] = clock.iso_or_none(room.reserved_until)
    card["pending_handoffs"] = len(mail.pending(con, mail.turn_box(room.id)))
    card["open_notes"] = notes.unresolved(con, room.id)
    card["derived"] = derived(ctx, room)
    return card


def derived(ctx: Context, room: Room) -> str:
    """The state as it really is: stale_owner, owner_gone, owner_idle, recipient_gone, dormant, or as stored."""
    if room.owner is not None:
        owner = agents.get(ctx.bus.con, room.owner)
        sign = present.Sign(ctx.bus, owner, ctx.now) if owner else None
        if sign is not None and sign.gone:
            return "owner_gone"
        if (room.lease_until or 0) <= ctx.now:
            return "stale_owner"
        if owner is not None and ctx.now - owner.last_seen >= limits.OWNER_IDLE:
            return "owner_idle"
        return room.state
    if room.reserved_for is not None:
        waited = agents.get(ctx.bus.con, room.reserved_for)
        gone = waited is not None and present.Sign(ctx.bus, waited, ctx.now).gone
        return "recipient_gone" if gone else room.state
    there = present.seats(ctx.bus, room.id, ctx.now)
    return room.state if any(seat.present and not seat.gone for seat in there) else "dormant"


def state(ctx: Context, *, every: bool = False) -> Outcome:
    """The room and its members; who was not seen since the day of the newest activity is hidden."""
    card = room_card(ctx, ctx.room)
    roster = join.seen_members(ctx, ctx.room)
    horizon = clock.iso(clock.day_start(ctx.room.active_at))
    kept = (ctx.room.owner, ctx.room.reserved_for, ctx.me)
    shown = [one for one in roster if every or one["last_seen_at"] >= horizon or one["agent_id"] in kept]
    result: dict[str, Any] = {
        "status": "state",
        "agent_id": ctx.me,
        "room": card,
        "members": shown,
        "cursor_event_seq": events.newest(ctx.bus.con),
    }
    if len(shown) < len(roster):
        hidden = len(roster) - len(shown)
        result["hidden"] = {"older_count": hidden, "shown_count": len(shown), "total_count": len(roster)}
    return Outcome(result)


def health(ctx: Context, *, verbose: bool = False) -> Outcome:
    """An action card: who holds the turn, what would wake me, what to do next."""
    con, room = ctx.bus.con, ctx.room
    reach = present.reach(ctx.bus, ctx.me)
    me = members.get(con, ctx.me, room.id)
    row = listeners.get(con, ctx.me, "wait") if reach.wait else None
    last = wakes.newest_of(con, ctx.me)
    result: dict[str, Any] = {
        "status": "health",
        "agent_id": ctx.me,
        "path": room.path,
        "joined": me is not None and me.left_at is None,
        "room_state": derived(ctx, room),
        "owner": room.owner,
        "you_own": room.owner == ctx.me,
        "reserved_for": room.reserved_for,
        "lease": _lease(ctx, room),
        "guardian": _guardian(ctx, room),
        "listener": {"receiver_id": row.id, "pid": row.pid, "intent": row.intent} if row else None,
        "rewake": reach.rewake,
        "monitor": reach.monitor,
        "reachable": reach.reachable() if ctx.caller.kind == "harness" else None,
        "unread": mail.unread_count(con, ctx.me, receive.boxes(con, ctx.me)),
        "wake": {"last": clock.iso(last.at), "status": last.state, "error": last.error} if last else None,
        "wakes": _wake_counts(ctx, ctx.me),
        "git": _git(ctx, room),
        "next_action": "",
    }
    if reach.withheld:
        result["inbound"] = reach.withheld
    if offer.silenced(ctx.bus, ctx.me):
        result["silenced"] = "three wakes in a row were not received; a person's prompt lifts it"
    result["next_action"] = _next_action(ctx, result)
    if verbose:
        result["transports"] = reach.transports()
        result["room"] = room_card(ctx, room)
    return Outcome(result)


def _git(ctx: Context, room: Room) -> dict[str, Any] | None:
    """Branch, and whether there are changes; None outside git."""
    found = gitdir.status(room.path, ctx.env)
    return {"dirty": found.dirty, "branch": found.branch} if found is not None else None


def _lease(ctx: Context, room: Room) -> dict[str, Any] | None:
    """Until when the lease runs, and whether something renews it."""
    if room.lease_id is None:
        return None
    renewing = locks.held(ctx.bus.lease_lock(room.lease_id))
    return {"expires_at": clock.iso_or_none(room.lease_until), "renewing": renewing}


def _guardian(ctx: Context, room: Room) -> dict[str, Any] | None:
    """The guardian of the present lease."""
    if room.lease_id is None:
        return None
    return {"pid": room.guardian_pid, "alive": locks.held(ctx.bus.lease_lock(room.lease_id))}


def _wake_counts(ctx: Context, agent: str) -> dict[str, int]:
    """Wakes that cost the agent a turn, in the last hour and day."""
    costly = [
        wake
        for wake in wakes.log(ctx.bus.con, ctx.now - limits.WAKE_LOG)
        if wake.agent == agent and wake.route in COSTLY and wake.state != "failed"
    ]
    last_hour = sum(1 for wake in costly if wake.at >= ctx.now - limits.HOUR)
    return {"last_hour": last_hour, "last_24h": len(costly)}


# Routes whose rows cost the receiver a model turn; the others were looks that it asked for.
COSTLY = ("receiver", "rewake", "monitor", *present.ENDPOINTS)


def _next_action(ctx: Context, card: dict[str, Any]) -> str:
    """The one thing to do now."""
    if not card["joined"]:
        return "join the room: `tt join`"
    if card["you_own"]:
        if not grant.announced(ctx.bus.con, ctx.room):
            return "the turn is yours and you were not told yet: `tt try`"
        return "you hold the turn: work, then `tt release --status … --next-action …`"
    if ctx.room.reserved_for == ctx.me:
        return "the turn is reserved for you: `tt wait`"
    if card["listener"]:
        return "you are listening: nothing to do until it returns"
    if card["unread"]:
        return "unread mail: `tt inbox`, or start one `tt wait`"
    return "start one `tt wait` (or `tt standby`)"


def event_view(  # a verb's options
    ctx: Context,
    *,
    every: bool = False,
    after: int | None = None,
    limit: int | None = None,
    types: tuple[str, ...] = (),
    target: str = "self",
    bus: bool = False,
    sender: str | None = None,
) -> Outcome:
    """Events as an array, oldest first. Marks nothing.

    Default: the last 50 that concern the caller, of the day of the newest activity. `every`,
    `after` and `limit` reach the rest. Raises invalid_event_type_filter, invalid_cursor, unknown_target.
    """
    con = ctx.bus.con
    wanted = view(ctx, after=after, types=types, target=target, bus=bus, sender=sender)
    newest = events.newest(con)
    if after is not None and after > newest:
        raise BusError("invalid_cursor", f"no event has the number {after} yet; the newest is {newest}", newest=newest)
    most = limits.VIEW_MOST if every and limit is None else limit or limits.VIEW_EVENTS
    if not every and after is None and limit is None and ctx.found is not None:
        wanted.since = clock.day_start(ctx.room.active_at)
    found = events.view(con, wanted.replace(limit=most + 1), newest_first=after is None)
    more = len(found) > most
    if more:
        found = found[:most] if after is not None else found[1:]
    result: dict[str, Any] = {
        "status": "events",
        "events": receive.shown(con, ctx.me, found),
        "cursor_event_seq": newest if not (more and after is not None) else found[-1].seq,
    }
    if more:
        result["more"] = True
    return Outcome(result)


def view(
    ctx: Context,
    *,
    after: int | None = None,
    types: tuple[str, ...] = (),
    target: str = "self",
    bus: bool = False,
    sender: str | None = None,
) -> events.View:
    """The filters of `events`, `msg recv` and followers, checked."""
    unknown = [name for name in types if name not in events.TYPES]
    if unknown:
        raise BusError(
            "invalid_event_type_filter",
            f"there is no event type {unknown[0][:60]!r}",
            f"types: {', '.join(events.TYPES)}",
        )
    con = ctx.bus.con
    who = ctx.me if target == "self" else target
    if target not in ("self", "any") and agents.get(con, target) is None:
        raise BusError("unknown_target", f"no agent is called {target[:100]!r}", "use self, any or an agent id")
    every_room = tuple(room.id for room in rooms.every(con))
    where = every_room if bus or ctx.found is None else (ctx.room.id,)
    if target != "any":
        # What is addressed to somebody reaches it whatever room it was sent from.
        mine = tuple(members.rooms_of(con, who)) if bus else where
        return events.View(
            (rooms.BUS, *(mine or where), *every_room),
            after or 0,
            0,
            (who, *_station(ctx, who)),
            who,
            types,
            sender,
        )
    return events.View((rooms.BUS, *where), after or 0, 0, None, who, types, sender)


def _station(ctx: Context, who: str) -> list[str]:
    """The box of the station of an agent."""
    return [box for box in receive.boxes(ctx.bus.con, who) if box != who]


def wake_log(ctx: Context, last_ms: int = limits.HOUR) -> Outcome:
    """Every wake since then: who, by which route, with what outcome; totals per agent."""
    con = ctx.bus.con
    found = wakes.log(con, ctx.now - min(last_ms, limits.WAKE_LOG))
    totals: dict[str, dict[str, int]] = {}
    for wake in found:
        mine = totals.setdefault(wake.agent, {"wakes": 0, "drains": 0, "failed": 0})
        kind = "failed" if wake.state == "failed" else "wakes" if wake.route in COSTLY else "drains"
        mine[kind] += 1
    for agent, mine in totals.items():
        costly = mine["wakes"]
        mine["suppressed"] = max(0, mail.waking_received(con, agent, ctx.now - last_ms) - costly)
    rows = [
        {
            "at": clock.iso(wake.at),
            "agent_id": wake.agent,
            "route": wake.route,
            "cost": 1 if wake.route in COSTLY and wake.state != "failed" else 0,
            "state": wake.state,
            "event_seq": wake.upto,
            "seen_at": clock.iso_or_none(wake.seen_at),
            "error": wake.error,
        }
        for wake in found
    ]
    return Outcome({"status": "wakes", "wakes": rows, "totals": totals})
