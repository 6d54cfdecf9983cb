"""PostToolUse (and Stop, where the harness shows what a Stop hook says): delivers mail with an ack token."""

from __future__ import annotations

from bus import limits, quickjson
from bus.operations import offer, receive, session
from bus.store import agents, wakes
from hooks.entry import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context
    from bus.store.agents import Agent
    from hooks.entry import Call


def run(call: Call) -> Answer | None:
    """Nothing pending: no write, no output."""
    if call.event.subagent or call.event.kind not in ("tool_done", "stop"):
        return None
    if call.event.kind == "stop" and call.event.reason and call.event.reason != "end_turn":
        return None
    ctx = session.enter(call.env, call.cwd, call.harness, call.event.session_id or None)
    if ctx is None or not session.live(ctx):
        return None
    known = agents.get(ctx.bus.con, ctx.me)
    if known is None:
        return None
    offer.unheard(ctx.bus, known, ctx.now)
    if not offer.levels(ctx.bus.con, receive.boxes(ctx.bus.con, ctx.me), ctx.now) and not _offer_again(ctx, known):
        return None
    way = offer.Way("hook", ack=True, max_bytes=limits.HOOK_BYTES)
    offered = offer.offer(ctx.bus, known, way, ctx.now)
    if offered is None:
        return None
    shown = {"hookSpecificOutput": {"hookEventName": call.event.name, "additionalContext": offered.text}}
    text = quickjson.dumps(shown, ensure_ascii=False) + "\n"
    return Answer(stdout=text, after=lambda: offer.done(ctx.bus, offered, "sent", None, ctx.now))


def _offer_again(ctx: Context, known: Agent) -> bool:
    """What a hook delivered and nobody acknowledged for a minute is offered once more."""
    there = wakes.open_of(ctx.bus.con, ctx.me, known.generation)
    if there is None or there.route != "hook" or ctx.now - there.at < limits.REOFFER:
        return False
    offer.reopen(ctx.bus, there.id, ctx.now)
    return True
