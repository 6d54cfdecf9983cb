"""What harnesses send, reduced to one internal event, or to nothing.

Names come in snake, camel and kebab spelling. What is unknown is nothing, not an error.
"""

from __future__ import annotations

from bus import quickjson
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The internal events, by every spelling's bare letters.
KINDS = {
    "sessionstart": "session_start",
    "sessionend": "session_end",
    "userpromptsubmit": "prompt",
    "beforeagent": "prompt",
    "beforesubmitprompt": "prompt",
    "stop": "stop",
    "afteragent": "stop",
    "stopfailure": "stop_failure",
    "notification": "notification",
    "posttooluse": "tool_done",
    "posttoolusefailure": "tool_done",
    "aftertool": "tool_done",
    "subagentstop": "subagent_stop",
}
TEXT_MOST = 4_000_000


class Event(Record):
    """One hook call. Texts are empty where the harness said nothing.

    `subagent`: it speaks of a sub-agent, which never counts as the session itself.
    """

    kind: str
    name: str
    session_id: str = ""
    cwd: str = ""
    source: str = ""
    reason: str = ""
    prompt: str = ""
    prompt_id: str = ""
    permission_mode: str = ""
    transcript: str = ""
    agent_transcript: str = ""
    agent_type: str = ""
    stop_hook_active: bool = False
    subagent: bool = False


def parse(raw: bytes, env: Mapping[str, str], told: str = "") -> Event | None:
    """The event in a payload, or None. `told`: the event's name where the payload has none (Antigravity)."""
    try:
        found = quickjson.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    fields: dict[str, Any] = {}
    for key, value in found.items():
        if value not in ("", None):  # a harness that sends two spellings may leave one of them empty
            fields.setdefault(_letters(key), value)
    name = _text(fields, "hook_event_name", "event_name", "event") or told or env.get("GROK_HOOK_EVENT", "")
    kind = KINDS.get(_letters(name))
    if kind is None:
        return None
    return Event(
        kind=_notified(kind, fields),
        name=name,
        session_id=_text(fields, "session_id", "conversation_id", "thread_id"),
        cwd=_text(fields, "cwd", "workspace_root", "workspace") or _first(fields, "workspace_paths"),
        source=_text(fields, "source"),
        reason=_text(fields, "reason", "stop_reason"),
        prompt=_text(fields, "prompt", "user_prompt", "message"),
        prompt_id=_text(fields, "prompt_id", "turn_id"),
        permission_mode=_text(fields, "permission_mode"),
        transcript=_text(fields, "transcript_path"),
        agent_transcript=_text(fields, "agent_transcript_path"),
        agent_type=_text(fields, "agent_type", "subagent_type"),
        stop_hook_active=fields.get(_letters("stop_hook_active")) is True,
        subagent=bool(_text(fields, "agent_id", "subagent_type", "subagent_id")),
    )


def _notified(kind: str, fields: dict[str, Any]) -> str:
    """Of notifications only one matters: the client sits idle."""
    if kind != "notification":
        return kind
    return "idle" if _text(fields, "notification_type") == "idle_prompt" else "other"


def _text(fields: dict[str, Any], *names: str) -> str:
    """The first of these fields that is text."""
    for name in names:
        value = fields.get(_letters(name))
        if isinstance(value, str) and value:
            return value[:TEXT_MOST]
    return ""


def _first(fields: dict[str, Any], name: str) -> str:
    """The first text of a list (Antigravity runs its hooks in a directory of its own)."""
    value = fields.get(_letters(name))
    return next((one for one in value if isinstance(one, str)), "") if isinstance(value, list) else ""


def _letters(name: str) -> str:
    """Only the letters: `hookEventName`, `hook-event-name`, `HookEventName`, `hook_event_name` are one name."""
    return "".join(char for char in name.lower() if char.isalpha())
