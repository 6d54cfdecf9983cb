"""SubagentStop: one usage sample, charged to the agent that spawned the sub-agent."""

from __future__ import annotations

import json
import os

from bus.operations import session, usage
from hooks import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hooks.entry import Answer, Call

MOST_BYTES = 64 * 1024 * 1024
LINE_BYTES = 8 * 1024 * 1024


def run(call: Call) -> Answer | None:
    """Read the sub-agent's own transcript once and note what it cost. Prints nothing."""
    if call.event.kind != "subagent_stop" or not call.event.agent_transcript:
        return None
    seen = session.locate(call.env, call.cwd, call.harness, call.event.session_id or None)
    if seen is None or (call.harness == "codex" and not entry.detached()):
        return None
    ctx = session.arrive(seen)
    try:
        if not session.live(ctx):
            return None
        tokens = output_tokens(call.event.agent_transcript)
        if tokens:
            usage.sample(ctx, kind(call.event.agent_transcript) or call.event.agent_type or "unknown", tokens)
    finally:
        ctx.close()
    return None


def output_tokens(path: str) -> int:
    """Output tokens of a transcript: the last value of each message id, summed.

    One message stands in as many records as its answer has parts, each with the full figure.
    """
    last: dict[str, int] = {}
    size = 0
    with open(path, "rb") as file:
        while size < MOST_BYTES:
            line = file.readline(LINE_BYTES)
            if not line:
                break
            size += len(line)
            found = _usage(line)
            if found is not None:
                last[found[0]] = found[1]
    return sum(last.values())


def _usage(line: bytes) -> tuple[str, int] | None:
    """(message id, output tokens) of one record, or None."""
    if b'"usage"' not in line:
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    message = record.get("message") if isinstance(record, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
        return None
    tokens = message["usage"].get("output_tokens")
    return (str(message.get("id")), tokens) if isinstance(tokens, int) and tokens >= 0 else None


def kind(path: str) -> str | None:
    """The type of the sub-agent, by the file beside its transcript."""
    side = os.path.splitext(path)[0] + ".meta.json"
    try:
        with open(side, encoding="utf-8") as file:
            found = json.loads(file.read(1 << 20))
    except (OSError, ValueError):
        return None
    value = found.get("agentType") if isinstance(found, dict) else None
    return value[:64] if isinstance(value, str) and value else None
