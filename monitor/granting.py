"""Getting the turn: guardian first, then the commit, then a second look at the guardian.

`try` and `take` are here, and the step that a wait takes when the rules say grant.
"""

from __future__ import annotations

from bus import clock, limits, locks
from bus.deliver import guardian
from bus.errors import BusError
from bus.operations import answers, grant, looking, present, receive, sweep
from bus.operations.enter import seated
from bus.operations.outcome import Guard, Outcome, Wakes
from bus.store import agents, db, members, rooms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context
    from bus.operations.grant import Granted
    from bus.operations.looking import Look
    from bus.store.agents import Agent
    from bus.store.db import Bus
    from bus.store.rooms import Room

ATTEMPTS = 20  # looks of one try while others move the room


def obtain(ctx: Context, seen: Room, reason: str, *, takes: bool = False, why: str | None = None) -> Granted | None:
    """Take the turn of a room as it was seen; None when somebody was faster.

    The guardian runs and holds the lease's lock before the commit; a loser's guardian ends
    with the pipe. Afterwards the lock is probed once more and a dead guardian replaced.
    """
    lease = grant.new_lease()
    guard = Guard(seen.id, lease, ctx.me, ctx.caller.anchor)
    started = guardian.start(ctx.bus, guard)
    if started is None:
        return None
    claim = grant.Claim(seen, reason, lease, started.pid, takes, why)
    try:
        given = grant.commit(ctx, claim)
    except BaseException:
        started.close()  # a wait goes on after a busy store: the guardian must not wait for its whole life
        raise
    if given is None:
        started.close()
        return None
    if not locks.held(ctx.bus.lease_lock(lease)):
        given.result["guardian_pid"] = replace_guardian(ctx.bus, guard)
    return given


def replace_guardian(bus: Bus, guard: Guard, *, announced: bool = False) -> int:
    """Start another guardian for a lease whose own has died, and note it. Raises cli_error.

    Once the turn was `announced` it needs no granter: the pipe of a wait that blocks on would keep it
    beyond the end of its lease.
    """
    started = guardian.start(bus, guard)
    if started is None:
        room = rooms.by_id(bus.con, guard.room)
        return (room.guardian_pid or 0) if room else 0
    with db.Write(bus.con) as con:
        rooms.renew(con, guard.room, guard.lease, clock.now() + limits.LEASE, started.pid)
    if announced:
        started.close()
    return started.pid


def ensure_guarded(ctx: Context, seen: Look) -> None:
    """The caller owns the turn: a missing guardian is replaced, a lease that ran out is renewed."""
    room = seen.room
    if room is None or room.lease_id is None or seen.guarded:
        return
    guard = Guard(room.id, room.lease_id, ctx.me, ctx.caller.anchor)
    room.guardian_pid = replace_guardian(ctx.bus, guard, announced=seen.announced)


def arrive(ctx: Context, *, park: bool) -> None:
    """The caller is here now: seen, and active or parked. Raises what membership raises."""
    receive.confirm(ctx.bus, ctx.me, ctx.now)
    if not needs_arrival(ctx, park=park):
        return
    member = seated(ctx)
    with db.Write(ctx.bus.con) as con:
        known = agents.get(con, ctx.me)
        if _to_be_noted(ctx, known):
            present.register(con, ctx)
        if member.intent == "parked" and not park:
            members.set_intent(con, ctx.me, ctx.room.id, "active")


def needs_arrival(ctx: Context, *, park: bool) -> bool:
    """Would `arrive` write anything?"""
    member = seated(ctx)
    known = agents.get(ctx.bus.con, ctx.me)
    return _to_be_noted(ctx, known) or (member.intent == "parked" and not park)


def _to_be_noted(ctx: Context, known: Agent | None) -> bool:
    """Is the caller new, in another process than before, or unseen for a while?"""
    return known is None or present.moved(known, ctx.caller) or ctx.now - known.last_seen >= limits.LAST_SEEN


def try_once(ctx: Context, *, park: bool = False, after: int | None = None) -> Outcome:
    """One evaluation: the turn, if it is the caller's to have; else how things stand, and what is unread."""
    observer(ctx)
    arrive(ctx, park=park)
    wish = looking.Wish(park=park)
    for _ in range(ATTEMPTS):
        seen = looking.look(ctx.bus, ctx.me, ctx.room.id, wish, clock.now())
        outcome = _answer(ctx, seen, park=park, after=after)
        if outcome is not None:
            return outcome
    raise BusError("store_busy", "the room moves too fast", "try again")


def observer(ctx: Context) -> None:
    """Consoles only watch."""
    if ctx.caller.kind == "console":
        raise BusError(
            "observer_cannot_hold_turn", "a console cannot hold the turn", "use an agent or a person's shell"
        )


def _answer(ctx: Context, seen: Look, *, park: bool, after: int | None) -> Outcome | None:
    """The outcome of one look, or None when the room moved and must be looked at again."""
    seen.batch = receive.claim(ctx.bus, ctx.me, seen.batch, "try", clock.now())
    if seen.room is None:
        return answers.closed(ctx.bus, ctx.me, seen, ctx.room.path)
    if seen.decision.kind == "step":
        ring(ctx.bus, sweep.advance(ctx.bus, seen.room, clock.now()))
        return None
    if seen.decision.kind == "own":
        ensure_guarded(ctx, seen)
        return replay(ctx, answers.owned(ctx.bus, ctx.me, seen, "try", "turn"), after)
    if seen.decision.kind == "grant":
        given = obtain(ctx, seen.room, seen.decision.reason or "open_claim")
        if given is None:
            return None
        return replay(ctx, answers.granted(ctx.bus, ctx.me, seen, given, "try"), after)
    if seen.decision.kind == "takeover":
        return replay(ctx, answers.takeover(ctx.bus, ctx.me, seen, "try"), after)
    return replay(ctx, answers.not_yet(ctx.bus, ctx.me, seen, "try", "event", park=park), after)


def replay(ctx: Context, outcome: Outcome, after: int | None) -> Outcome:
    """With `--after N` the events are what came since, received or not; nothing of them is marked.

    A turn that is announced by this result is still marked: whoever prints it is told.
    """
    if after is None:
        return outcome
    from bus.operations import views  # rarely asked for

    shown = views.event_view(ctx, after=after, limit=limits.RESULT_EVENTS).result
    outcome.result["events"] = shown["events"]
    outcome.result.pop("more", None)
    if shown.get("more"):
        outcome.result["more"] = True
    receipt = outcome.receipt
    if receipt is not None:
        claimed = [row for row in receipt.mail if receipt.claim is not None and _of_claim(ctx, row, receipt.claim)]
        outcome.receipt = receipt.replace(mail=claimed, cursors={}, notices=[])
    return outcome


def _of_claim(ctx: Context, row: tuple[str, int], claim: int) -> bool:
    """Is this row the claim itself, or the handoff that came with it?"""
    box, seq = row
    return (box == ctx.me and seq == claim) or box.startswith("turn:")


def take_back(ctx: Context, outcome: Outcome) -> None:
    """Nobody could read the result: the turn that it gave and the shared mail that it took go back.

    A turn that was taken from somebody stays taken: its former holder was told so already.
    """
    lease = outcome.result.get("lease_id")
    fresh = outcome.receipt is not None and outcome.receipt.claim is not None and not outcome.result.get("repeated")
    if fresh and lease and "revoked_agent_id" not in outcome.result:
        ring(ctx.bus, grant.give_back(ctx.bus, str(lease), ctx.room.id))
    receive.unclaim(ctx.bus, ctx.me, outcome.receipt, clock.now())


def ring(bus: Bus, wakes: Wakes) -> None:
    """Carry out wakes that belong to no result of the caller."""
    from bus import deliver  # its module imports ours

    deliver.send(bus, wakes)


def take(ctx: Context, *, reason: str | None = None, operator_requested: bool = False, force: bool = False) -> Outcome:
    """Take the turn from its owner, or a reservation from its reservee.

    Allowed when the owner may be replaced, or a person asked for it; a live, active holder also
    needs `force`. Raises takeover_not_available, takeover_ineligible, target_active, invalid_input.
    """
    observer(ctx)
    seated(ctx)
    if reason is not None and len(reason.encode()) > limits.REASON_BYTES:
        raise BusError("invalid_input", f"a reason has at most {limits.REASON_BYTES} bytes")
    if not ctx.caller.person and not operator_requested and not (reason or "").strip():
        raise BusError("invalid_input", "say why you take the turn", "add --reason TEXT, or --operator-requested")
    for _ in range(ATTEMPTS):
        now = clock.now()
        seen = looking.look(ctx.bus, ctx.me, ctx.room.id, looking.Wish(claim=True), now)
        if seen.room is None:
            raise BusError("room_closed", f"the room at {ctx.room.path} was closed", "join it anew with `tt join`")
        why = _allowed(ctx, seen, operator_requested=operator_requested, force=force, now=now)
        arrive(ctx, park=False)  # only now: a refusal writes nothing
        given = obtain(ctx, seen.room, why, takes=True, why=reason)
        if given is not None:
            return _taken(ctx, seen, given)
    raise BusError("store_busy", "the room moves too fast", "try again")


def _allowed(ctx: Context, seen: Look, *, operator_requested: bool, force: bool, now: int) -> str:
    """The reason by which the turn may be taken, or the refusal."""
    room = seen.room
    if room is None or room.owner == ctx.me:
        raise BusError("takeover_not_available", "the turn is yours already", "see it with `tt try`")
    asked = operator_requested or ctx.caller.person
    if room.owner is None:
        if room.reserved_for in (None, ctx.me):
            raise BusError("takeover_not_available", "nobody holds the turn", "use `tt wait --claim`")
        if not (operator_requested or force):
            message = f"the turn is reserved for {room.reserved_for}"
            raise BusError(
                "takeover_ineligible", message, "add --operator-requested or --force", owner=room.reserved_for
            )
        return "operator_requested"
    eligible = seen.decision.reason if seen.decision.kind == "takeover" else None
    if eligible:
        return eligible
    if not asked:
        message = f"{room.owner} holds the turn and is not to be replaced"
        raise BusError(
            "takeover_ineligible",
            message,
            "wait, or ask the person for --operator-requested",
            owner=room.owner,
        )
    owner = agents.get(ctx.bus.con, room.owner)
    if not force and owner is not None and not present.Sign(ctx.bus, owner, now).gone:
        message = f"this interrupts the work of {room.owner}, which is alive"
        raise BusError("target_active", message, "add --force to take the turn all the same", owner=room.owner)
    return "operator_requested"


def _taken(ctx: Context, seen: Look, given: Granted) -> Outcome:
    """The result: the turn, whose work it interrupts, and every handoff that still counts, newest first."""
    outcome = answers.granted(ctx.bus, ctx.me, seen, given, "try")
    result = outcome.result
    last = [result["handoff"]] if result.get("handoff") else []
    result["handoffs"] = last + result.pop("earlier_handoffs", [])
    if given.result.get("revoked_agent_id"):
        result["hint"] = (
            f"you interrupt the work of {given.result['revoked_agent_id']}: read the handoffs, then look around"
        )
    return outcome
