"""Stop: a session that holds the turn is kept from ending its turn, once per prompt."""

from __future__ import annotations

from bus import marks
from bus.operations import session
from hooks.entry import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.marks import Mark
    from bus.operations.enter import Context
    from hooks.entry import Call


def run(call: Call) -> Answer | None:
    """Block with exit 2 and the ways out, or let go and close the turn. Reads the store, writes only the mark."""
    event = call.event
    if event.kind != "stop" or event.subagent:
        return None
    if call.harness == "grok" and event.reason and event.reason != "end_turn":
        return None  # an error or the user's own interrupt ends this turn
    ctx = session.enter(call.env, call.cwd, call.harness, event.session_id or None)
    if ctx is None:
        return None
    try:
        return _decide(call, ctx)
    finally:
        ctx.close()


def _decide(call: Call, ctx: Context) -> Answer | None:
    """At most one block in one turn of the client."""
    mark = marks.read(ctx.bus, ctx.me)
    why = session.must_stay(ctx) if session.live(ctx) else None
    if why is None or _blocked_before(call, mark):
        if mark.opened:
            marks.write(ctx.bus, ctx.me, mark.replace(opened=False, at=ctx.now))
        return None
    blocked = mark.replace(opened=True, at=ctx.now, blocked=call.event.prompt_id or mark.blocked)
    if not marks.write(ctx.bus, ctx.me, blocked) and call.event.stop_hook_active:
        return None  # what can't be noted is not done again and again
    return Answer(code=2, stderr=f"talking-stick: {why}\n")


def _blocked_before(call: Call, mark: Mark) -> bool:
    """By prompt where the client names it; `stop_hook_active` is true in every turn that a rewake started."""
    if call.event.prompt_id:
        return mark.blocked == marks.word(call.event.prompt_id)
    return call.event.stop_hook_active
