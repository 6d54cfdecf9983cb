"""UserPromptSubmit: opens the turn, takes receipts, and shows what is new. Silent when nothing is."""

from __future__ import annotations

from bus import envelope, quickjson
from bus.operations import board, offer, receive, session
from bus.operations.outcome import Wakes
from bus.store import agents, mail
from hooks.entry import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context
    from hooks.entry import Call


def run(call: Call) -> Answer | None:
    """Receipts first: what a wake has just shown is not shown again."""
    if call.event.subagent or call.event.kind != "prompt":
        return None
    ctx = session.enter(call.env, call.cwd, call.harness, call.event.session_id or None)
    if ctx is None or not session.live(ctx):
        return None
    if agents.get(ctx.bus.con, ctx.me) is None:  # the bus is younger than the session
        session.publish(ctx, {"permission_mode": call.event.permission_mode})
    receive.confirm(ctx.bus, ctx.me, ctx.now)
    received = offer.receipt(ctx.bus, ctx.me, envelope.tokens(call.event.prompt), ctx.now)
    by_person = _by_person(call)
    fresh = board.opened(ctx, call.event.prompt_id, by_person=by_person)
    shown = board.delta(ctx, fresh_turn=fresh)
    if shown is None or not shown.text:
        if shown is not None:
            board.settle(ctx, shown)
        if received or by_person:
            _wake_again(ctx)
        return None
    answer = {"hookSpecificOutput": {"hookEventName": call.event.name, "additionalContext": shown.text}}

    def after() -> None:
        board.settle(ctx, shown)
        _wake_again(ctx)

    return Answer(stdout=quickjson.dumps(answer, ensure_ascii=False) + "\n", after=after)


def _by_person(call: Call) -> bool:
    """Did somebody type this? Wakes arrive as task notifications or carry an envelope."""
    text = call.event.prompt
    return "<task-notification>" not in text and envelope.HEAD not in text


def _wake_again(ctx: Context) -> None:
    """A receipt, or a person's word after a silence, that leaves waking mail unread rings again."""
    due = [box for box in receive.boxes(ctx.bus.con, ctx.me) if mail.due(ctx.bus.con, box)]
    if due:
        from bus import deliver  # 11 ms that a silent board does not pay

        deliver.send(ctx.bus, Wakes(boxes=due))
