"""`tt wait`: look, arm, look again, block; print, flush, mark; release the lock, look once more.

Kept true: the lock is the registration, so a second wait of the same agent is refused and a
dead one leaves nothing behind; nothing is marked that was not flushed; while it blocks its
only timer is the nearest deadline that the store names.
"""

from __future__ import annotations

import gc
import os

from bus import bell, clock, crash, deliver, ids, limits, locks, marks, process
from bus.deliver import guardian
from bus.errors import BusError
from bus.operations import answers, looking, receive, sweep, views
from bus.operations.enter import seated
from bus.operations.outcome import Guard, Wakes
from bus.rules import route
from bus.store import agents, db, listeners, members, rooms
from bus.store.listeners import Listener
from monitor import granting

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any, Self

    from bus.operations.enter import Context
    from bus.operations.grant import Granted
    from bus.operations.looking import Look
    from bus.operations.outcome import Outcome
    from bus.store.rooms import Room

    Emit = Callable[[dict[str, Any]], bool]
else:
    import _signal as signal  # the C part: `signal` itself loads enum, 2 ms

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


LATE_GUARDIANS = 3  # guardians in a row that did not answer; then the wait says so


class _SignalledError(Exception):
    """A signal ended the wait while it blocked."""


def wait(  # a verb's options
    ctx: Context,
    *,
    emit: Emit,
    timeout_ms: int | None = None,
    park: bool = False,
    claim: bool = False,
    after: int | None = None,
) -> int:
    """Block until there is something to say, say it through `emit`, mark it. The exit code.

    0, or 128 + n after a signal. Raises invalid_wait_mode, not_joined, unknown_member,
    observer_cannot_hold_turn, duplicate_listener; nothing is registered then.
    """
    if park and claim:
        raise BusError("invalid_wait_mode", "--park and --claim exclude each other", "leave one of them out")
    granting.observer(ctx)
    seated(ctx)
    held = locks.hold(ctx.bus.lock(ctx.me, "wait"))
    if held is None:
        raise _duplicate(ctx)
    waiting = Wait(ctx, looking.Wish(park, claim), emit, after)
    try:
        with Signals() as signals:
            granting.arrive(ctx, park=park)  # with the lock: a refused second wait must not un-park anybody
            return waiting.run(signals, None if timeout_ms is None else clock.now() + timeout_ms)
    finally:
        waiting.close()
        crash.point("before_unlock")
        held.release()
        waiting.last_look()


def _duplicate(ctx: Context) -> BusError:
    """Another wait of this agent lives. It takes its lock before it writes its row, which may be an earlier one's."""
    row = listeners.get(ctx.bus.con, ctx.me, "wait")
    if row is not None and process.liveness(process.anchor(row.pid) or "") != "alive":
        row = None
    room = rooms.by_id(ctx.bus.con, row.room) if row is not None else None
    return BusError(
        "duplicate_listener",
        f"{ctx.me} is waiting already",
        "one wait is enough: it hears everything on this bus; leave it running",
        receiver_id=row.id if row else None,
        receiver_pid=row.pid if row else None,
        path=room.path if room else None,
    )


class Signals:
    """INT, TERM and HUP end a blocking wait at once, and any other step only after it is whole."""

    def __init__(self) -> None:
        """Nothing arrived yet."""
        self.number = 0
        self.interrupt = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take the signals over. One that is ignored (nohup) stays ignored."""
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self.before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self.before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _arrived(self, number: int, _frame: object) -> None:
        """Note it; break off only a wait that blocks."""
        self.number = number
        if self.interrupt:
            self.interrupt = False
            raise _SignalledError

    def check(self) -> None:
        """What arrived before the wait blocked counts as well."""
        if self.number:
            raise _SignalledError


class Wait:
    """One wait: what it wants, what it saw last, and what it blocks on."""

    def __init__(self, ctx: Context, wish: looking.Wish, emit: Emit, after: int | None) -> None:
        """The caller holds the lock already."""
        self.ctx = ctx
        self.bus = ctx.bus
        self.me = ctx.me
        self.wish = wish
        self.emit = emit
        self.after = after
        self.room_id = ctx.room.id
        self.ears: bell.Ears | None = None
        self.blocked = False
        self.deadline: int | None = None
        self.surrender_by: int | None = None
        self.client = _watch_anchor(ctx.caller.anchor) if ctx.caller.verified else None
        self.peer: process.ExitWatch | None = None
        self.peer_pid: int | None = None
        self.directories: list[str] = []
        self.late_guardians = 0

    @property
    def route(self) -> str:
        """The row in the wake log: a wait that blocked cost its agent a turn when it returned."""
        return "receiver" if self.blocked else "wait"

    def run(self, signals: Signals, end: int | None) -> int:
        """The loop. `end` is when an explicit time-out is over."""
        try:
            while not self._client_gone():
                outcome = self._patient_look(expired=end is not None and clock.now() >= end)
                if outcome is not None:
                    return self._finish(outcome)
                signals.check()
                if self._arm():
                    self._block(signals, end)
        except _SignalledError:
            return 128 + signals.number
        return 0  # the client is gone: nobody reads this, so nothing is said and nothing marked

    def _client_gone(self) -> bool:
        """Is the process that would read the result gone? A background task outlives its client."""
        caller = self.ctx.caller
        return bool(caller.verified and caller.anchor and process.liveness(caller.anchor) == "gone")

    def _patient_look(self, *, expired: bool) -> Outcome | None:
        """A blocked wait survives a foreign writer that holds the store; a new one is refused."""
        try:
            return self._look(expired=expired)
        except (BusError, db.Error) as error:
            refused = db.translate(error) if isinstance(error, db.Error) else error
            if refused.code != "store_busy" or not self.blocked:
                raise
            self.deadline = clock.now() + limits.FALLBACK_POLL
            return None

    def _look(self, *, expired: bool) -> Outcome | None:
        """One look at everything: the outcome that ends the wait, or None."""
        seen = looking.look(self.bus, self.me, self.room_id, self.wish, clock.now())
        if seen.batch.items:
            seen.batch = receive.claim(self.bus, self.me, seen.batch, self.route, clock.now())
        self.deadline = seen.decision.deadline
        if seen.decision.kind != "takeover":
            self.surrender_by = None
        if seen.room is None:
            return answers.closed(self.bus, self.me, seen, self.ctx.room.path)
        found = self._turn(seen, seen.room)
        if found is None and (self._news(seen) or expired):
            found = self._answer(seen, "event" if self._news(seen) else "timeout")
        if found is None:
            self._watch_peer(seen, seen.room)
        return found if found is None else granting.replay(self.ctx, found, self.after)

    def _news(self, seen: Look) -> bool:
        """Is there something to return? With `--after N`: anything since, received or not."""
        if self.after is None:
            return bool(seen.batch.items)
        return bool(views.event_view(self.ctx, after=self.after, limit=1).result["events"])

    def _turn(self, seen: Look, room: Room) -> Outcome | None:
        """What the stick alone has to say."""
        kind = seen.decision.kind
        if kind == "step":
            deliver.send(self.bus, sweep.advance(self.bus, room, clock.now()))
            self.deadline = clock.now()
        elif kind == "own":
            granting.ensure_guarded(self.ctx, seen)
            if not seen.announced:
                return answers.owned(self.bus, self.me, seen, self.route, "turn")
        elif kind == "grant":
            given = self._obtain(room, seen.decision.reason or "open_claim")
            if given is not None:
                return answers.granted(self.bus, self.me, seen, given, self.route)
        elif kind == "takeover":
            return self._offer(seen)
        elif seen.decision.reason == "auto_claim_disabled" and not self._told(seen, "handoff_hint"):
            return answers.not_yet(self.bus, self.me, seen, self.route, "turn", park=True)
        return None

    def _obtain(self, room: Room, reason: str) -> Granted | None:
        """The turn; None when somebody was faster, or when a busy machine kept the guardian from answering in time."""
        try:
            given = granting.obtain(self.ctx, room, reason)
        except BusError:
            self.late_guardians += 1
            if self.late_guardians >= LATE_GUARDIANS:
                raise
            given = None
        if given is None:
            self.deadline = clock.now()  # look again at once
        return given

    def _told(self, seen: Look, kind: str) -> bool:
        """Once per turn is enough."""
        return looking.told_before(self.bus, self.me, seen, kind)

    def _offer(self, seen: Look) -> Outcome | None:
        """A takeover ends one wait at a time, once per turn; an idle owner ends none."""
        if seen.decision.reason in looking.IDLE_REASONS or self._told(seen, "takeover_offer"):
            return None
        if seen.decision.reason == "owner_gone" and self._guardian_first():
            return None
        if seen.offer_at is not None and clock.now() < seen.offer_at:
            self.deadline = seen.offer_at
            return None
        return answers.takeover(self.bus, self.me, seen, self.route)

    def _guardian_first(self) -> bool:
        """A grace just ended: a guardian hands the turn on by itself, and both of us wake at that moment.

        Without this head start the wait would offer a takeover that nobody has to decide about.
        """
        if self.surrender_by is None:
            self.surrender_by = clock.now() + limits.GUARDIAN_ADOPT
        self.deadline = self.surrender_by
        return clock.now() < self.surrender_by

    def _answer(self, seen: Look, wake_reason: str) -> Outcome:
        """What is said for an event or a time-out."""
        if seen.mine:
            return answers.owned(self.bus, self.me, seen, self.route, wake_reason)
        if seen.decision.kind == "takeover" and wake_reason == "timeout":
            return answers.takeover(self.bus, self.me, seen, self.route)
        return answers.not_yet(self.bus, self.me, seen, self.route, wake_reason, park=self.wish.park)

    def _watch_peer(self, seen: Look, room: Room) -> None:
        """Watch the guardian of a held turn, or the one for whom it is reserved.

        A lease that nobody guards gets a guardian now; who finds another starter at work
        looks again a little later.
        """
        pid = room.guardian_pid
        if room.lease_id is not None and not seen.guarded and (room.lease_until or 0) > clock.now():
            owner = agents.get(self.bus.con, room.owner or "")
            guard = Guard(room.id, room.lease_id, room.owner or "", owner.anchor if owner else None)
            started = guardian.adopt(self.bus, guard)
            pid = started.pid if started is not None else None
            if started is None:
                again = clock.now() + limits.GUARDIAN_ADOPT
                self.deadline = again if self.deadline is None else min(self.deadline, again)
        if room.reserved_for is not None:
            waited = agents.get(self.bus.con, room.reserved_for)
            alive = waited is not None and waited.anchor and process.liveness(waited.anchor) == "alive"
            pid = process.anchor_pid(waited.anchor) if alive and waited and waited.anchor else None
        self._watch_pid(pid)

    def _watch_pid(self, pid: int | None) -> None:
        """Hold one descriptor for the death that would matter, and no other."""
        if pid == self.peer_pid and (pid is None or self.peer is not None):
            return
        if self.peer is not None:
            self.peer.close()
        self.peer, self.peer_pid = None, pid
        if pid is not None:
            try:
                self.peer = process.ExitWatch(pid)
            except (ProcessLookupError, OSError):
                self.deadline = clock.now() + limits.GUARDIAN_ADOPT

    def _arm(self) -> bool:
        """Register and arm before the second look; true when everything is in place to block."""
        directories = self._bells()
        if self.ears is not None and directories == self.directories:
            return True
        self.directories = directories
        if self.ears is None:
            self._register()
            self.ears = bell.Ears(directories)
            self.ears.arm()
        else:
            self.ears.rearm(directories)
        return False

    def _bells(self) -> list[str]:
        """The agent's own bell, the bus's, and those of the rooms it belongs to; never the bus directory."""
        mine = [rooms.BUS, *members.rooms_of(self.bus.con, self.me)]
        return [self.bus.agent_bell(self.me), *(self.bus.room_bell(room) for room in mine)]

    def _register(self) -> None:
        """Say what this listener is; the lock alone proves that it lives."""
        intent = "parked" if self.wish.park else "claiming" if self.wish.claim else "active"
        row = Listener(self.me, "wait", ids.new_id("r", 6), self.room_id, intent, os.getpid(), clock.now())
        with db.Write(self.bus.con) as con:
            listeners.save(con, row)
        # Others count who is here: a waiter that becomes reachable may be the next one.
        crash.point("after_register")

    def _block(self, signals: Signals, end: int | None) -> None:
        """Sleep until a bell, a death that matters, a deadline or a signal."""
        if self.ears is None:
            return
        times = [time for time in (self.deadline, end) if time is not None]
        self.ears.fds = tuple(watch for watch in (self.client, self.peer) if watch is not None)
        self.blocked = True
        gc.enable()  # the start of a command turned it off; this one may live for days
        signals.interrupt = True
        try:
            signals.check()
            heard = self.ears.wait(min(times) if times else None)
        finally:
            signals.interrupt = False
        if self.peer is not None and self.peer in heard:
            self._watch_pid(None)

    def _finish(self, outcome: Outcome) -> int:
        """Wake others, print and flush, mark. A grant that cannot be printed is given back."""
        if self._client_gone():
            granting.take_back(self.ctx, outcome)
            return 0
        deliver.send(self.bus, outcome.wakes)
        crash.point("before_print")
        if not self.emit(outcome.result):
            granting.take_back(self.ctx, outcome)
            return 0
        try:
            self._settle(outcome)
        except BusError:
            return 0  # it was printed and comes again: at least once
        return 0

    def _settle(self, outcome: Outcome) -> None:
        """Mark what was printed; where a background command's end wakes nobody, only at the session's next sign."""
        turn_open = marks.read(self.bus, self.me).is_open(clock.now())
        if self.blocked and not route.wait_serves(self.ctx.caller.harness, turn_open=turn_open):
            receive.defer(self.bus, outcome.receipt, clock.now())
        else:
            receive.settle(self.bus, outcome.receipt, clock.now())

    def close(self) -> None:
        """Watch no more."""
        for watch in (self.ears, self.client, self.peer):
            if watch is not None:
                watch.close()

    def last_look(self) -> None:
        """After the lock is free: what came between the marking and now needs another way.

        Senders commit, then probe the lock; we release it, then look. One of the two sees the other.
        """
        try:
            boxes = set(receive.boxes(self.bus.con, self.me))
            mine = [box for box in sweep.due(self.bus).boxes if box in boxes]
            deliver.send(self.bus, Wakes(boxes=mine) + sweep.sweep(self.bus))
        except BusError:
            return  # it stays due: the next command on this bus finds it


def _watch_anchor(anchor: str | None) -> process.ExitWatch | None:
    """Watch the client's own process."""
    pid = process.anchor_pid(anchor) if anchor else None
    if pid is None:
        return None
    try:
        return process.ExitWatch(pid, process.anchor_start(anchor or ""))
    except (ProcessLookupError, OSError):
        return None
