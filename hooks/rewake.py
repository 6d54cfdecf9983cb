"""The rewake: blocks beside an idle session and ends with its mail, which starts a turn.

One per session, by a lock. Kept true: its wake row is written before it prints; it never fires
while a wait of the agent lives (but for an interrupt), never for what an open wake covers, and
not a fourth time in a row without a receipt; it never outlives its client.
"""

from __future__ import annotations

import gc
import site

from bus import bell, clock, crash, deliver, locks, marks, process
from bus.operations import offer, receive, session
from bus.operations.outcome import Wakes
from bus.store import agents, mail
from hooks.entry import Answer, attended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context
    from bus.operations.offer import Offered
    from hooks.entry import Call

KINDS = {"opencode": "plugin"}  # the lock of the listener; OpenCode's plugin runs this same program


def run(call: Call) -> Answer | None:
    """Block until there is mail that may be said now; then exit 2 with its envelope on stderr."""
    if call.event.subagent or not attended(call.env):
        return None
    ctx = session.enter(call.env, call.cwd, call.harness, call.event.session_id or None)
    if ctx is None or not ctx.caller.verified:
        return None  # without a client to watch it would outlive its session
    if call.event.kind == "session_start":
        begun = session.begin(ctx, call.event.source, {})
        deliver.send(ctx.bus, session.for_others(ctx, begun.wakes))  # mail for this agent is our own first look
    if not session.live(ctx):
        return None
    if agents.get(ctx.bus.con, ctx.me) is None:  # the bus is younger than the session
        session.publish(ctx, {})
    held = locks.hold(ctx.bus.lock(ctx.me, KINDS.get(call.harness or "", "rewake")))
    if held is None:
        return None
    offered = Rewake(ctx).wait()
    if offered is None:
        return None

    def after() -> None:
        offer.done(ctx.bus, offered, "sent", None, clock.now())
        held.release()
        deliver.send(ctx.bus, Wakes(boxes=[ctx.me]))  # who wrote while we were ending has rung for nobody

    return Answer(2, stderr=offered.text + "\n", after=after)


class Rewake:
    """One blocked rewake."""

    def __init__(self, ctx: Context) -> None:
        """The caller holds the lock."""
        self.ctx = ctx
        self.bus = ctx.bus
        self.me = ctx.me

    def wait(self) -> Offered | None:
        """Look, arm, look again, block; None when the client or its session is over."""
        anchor = self.ctx.caller.anchor or ""
        pid = process.anchor_pid(anchor)
        if pid is None:
            return None
        try:
            client = process.ExitWatch(pid, process.anchor_start(anchor))
        except (ProcessLookupError, OSError):
            return None
        with client:
            found = self._look()
            if found is not None or self._over():
                return found
            gc.enable()  # this one may live for days
            site.main()  # started without site-packages, and watchdog lives there
            with bell.Ears([self.bus.agent_bell(self.me)], [client]) as ears:
                ears.arm()
                while True:
                    found = self._look()
                    if found is not None or self._over():
                        return found
                    if client in ears.wait(self._deadline()):
                        return None

    def _over(self) -> bool:
        """The session ended. After `/clear` the same agent goes on, and so does this."""
        known = agents.get(self.bus.con, self.me)
        return known is None or known.ended_at is not None

    def _look(self) -> Offered | None:
        """Something to say now, its wake row written; or None."""
        now = clock.now()
        known = agents.get(self.bus.con, self.me)
        if known is None:
            return None
        offer.unheard(self.bus, known, now)
        levels = offer.levels(self.bus.con, receive.boxes(self.bus.con, self.me), now)
        if not levels or offer.silenced(self.bus, self.me):
            return None
        if mail.INTERRUPT not in levels and locks.held(self.bus.lock(self.me, "wait")):
            return None  # the wait's own end is the wake; should it be killed, the mail is still due
        found = offer.offer(self.bus, known, offer.Way("rewake"), now)
        if found is not None:
            crash.point("before_print")
        return found

    def _deadline(self) -> int | None:
        """The only timer: the end of an open turn's mark that mail is waiting for."""
        mark = marks.read(self.bus, self.me)
        now = clock.now()
        waiting = offer.levels(self.bus.con, receive.boxes(self.bus.con, self.me), now)
        return mark.closes_at() if waiting and mark.is_open(now) else None
