"""What sub-agents cost: samples of a hook, kept for seven days."""

from __future__ import annotations

from bus import limits
from bus.operations.outcome import Outcome
from bus.store import db, usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context


def sample(ctx: Context, kind: str, tokens: int) -> None:
    """Charge one sub-agent's output tokens to the agent that spawned it."""
    with db.Write(ctx.bus.con) as con:
        usage.add(con, ctx.me, kind, tokens, ctx.now)
        usage.prune(con, ctx.now - limits.USAGE)


def totals(ctx: Context, since_ms: int) -> Outcome:
    """Tokens per agent and type since then."""
    found = usage.totals(ctx.bus.con, ctx.now - since_ms)
    rows = [
        {"agent_id": agent, "agent_type": kind, "samples": count, "output_tokens": tokens}
        for agent, kind, count, tokens in found
    ]
    return Outcome({"status": "usage", "usage": rows, "output_tokens": sum(row[3] for row in found)})
