"""What harnesses send, in every spelling, and what comes of garbage."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks import wire

CLAUDE = {
    "session_id": "S",
    "transcript_path": "/home/u/.claude/projects/p/S.jsonl",
    "cwd": "/home/u/proj",
    "prompt_id": "P",
    "permission_mode": "bypassPermissions",
    "hook_event_name": "Stop",
    "stop_hook_active": True,
    "last_assistant_message": "all done",
    "background_tasks": [{"id": "a", "agent_type": "general-purpose"}],
}
CODEX = {
    "session_id": "T",
    "turn_id": "U",
    "transcript_path": "/home/u/.codex/sessions/rollout-T.jsonl",
    "cwd": "/home/u/proj",
    "hook_event_name": "Stop",
    "model": "gpt-5.5",
    "permission_mode": "default",
    "stop_hook_active": False,
}
GROK = {"hookEventName": "stop", "sessionId": "G", "workspaceRoot": "/home/u/proj", "reason": "end_turn"}
GEMINI = {
    "session_id": "M",
    "transcript_path": "/t",
    "cwd": "/home/u/proj",
    "hook_event_name": "AfterAgent",
    "timestamp": "2026-11-30T00:00:00Z",
    "prompt": "hi",
    "prompt_response": "ho",
    "stop_hook_active": False,
}
ANTIGRAVITY = {
    "conversationId": "C",
    "transcriptPath": "/t",
    "workspacePaths": ["/home/u/proj", "/else"],
    "terminationReason": "NO_TOOL_CALL",
    "fullyIdle": True,
}


def parse(payload, env=None, told=""):
    return wire.parse(json.dumps(payload).encode(), env or {}, told)


def camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


SPELLINGS = {
    "snake": lambda name: name,
    "camel": camel,
    "pascal": lambda name: camel("_" + name),
    "kebab": lambda name: name.replace("_", "-"),
    "acronym": lambda name: camel(name).replace("Id", "ID"),
    "screaming": str.upper,
}


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("event", ["stop", "session_start", "user_prompt_submit", "post_tool_use", "subagent_stop"])
def test_every_spelling_is_one_event(spelled, event):
    spell = SPELLINGS[spelled]
    told = {"hook_event_name": spell(event), "session_id": "S", "prompt_id": "P", "permission_mode": "plan"}
    told |= {"agent_transcript_path": "/a", "stop_hook_active": True, "cwd": "/c", "source": "clear"}
    found = parse({spell(key): value for key, value in told.items()})
    assert found.kind == wire.KINDS[event.replace("_", "")]
    assert found.name == spell(event)
    assert (found.session_id, found.prompt_id, found.permission_mode) == ("S", "P", "plan")
    assert (found.agent_transcript, found.stop_hook_active, found.cwd, found.source) == ("/a", True, "/c", "clear")


@pytest.mark.parametrize(
    ("payload", "told", "expected"),
    [
        (CLAUDE, "", ("stop", "S", "/home/u/proj", "P", True)),
        (CODEX, "", ("stop", "T", "/home/u/proj", "U", False)),
        (GROK, "", ("stop", "G", "/home/u/proj", "", False)),
        (GEMINI, "", ("stop", "M", "/home/u/proj", "", False)),
        (ANTIGRAVITY, "Stop", ("stop", "C", "/home/u/proj", "", False)),
    ],
)
def test_each_harness(payload, told, expected):
    found = parse(payload, told=told)
    assert (found.kind, found.session_id, found.cwd, found.prompt_id, found.stop_hook_active) == expected
    assert not found.subagent


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("BeforeAgent", "prompt"),
        ("AfterTool", "tool_done"),
        ("PostToolUseFailure", "tool_done"),
        ("StopFailure", "stop_failure"),
        ("post_tool_use", "tool_done"),
        ("SessionEnd", "session_end"),
    ],
)
def test_names_of_events(name, kind):
    assert parse({"hook_event_name": name}).kind == kind


@pytest.mark.parametrize("name", ["PreToolUse", "PreCompact", "PermissionRequest", "Interrupt", "x", "", None, 7, []])
def test_what_is_unknown_is_nothing(name):
    assert parse({"hook_event_name": name}) is None


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b'"Stop"', b"7", b"{", b"\xff\xfe", b"[" * 100_000, b"{}"])
def test_garbage_is_nothing(raw):
    assert wire.parse(raw, {}) is None


def test_only_the_idle_notification_matters():
    idle = {"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": "waiting"}
    assert parse(idle).kind == "idle"
    assert parse(idle | {"notification_type": "permission_prompt"}).kind == "other"


@pytest.mark.parametrize("field", ["agent_id", "agentId", "subagentType", "subagent_id"])
def test_a_subagent_is_never_the_session(field):
    assert parse(CLAUDE | {field: "a86f"}).subagent


def test_an_agent_type_alone_is_the_session_itself():
    """`claude --agent NAME` says its type in every payload."""
    assert not parse(CLAUDE | {"agent_type": "reviewer"}).subagent


def test_a_payload_without_a_name_takes_it_from_the_command_or_from_grok():
    assert parse({}, told="Stop").kind == "stop"
    assert parse({}, env={"GROK_HOOK_EVENT": "user_prompt_submit"}).kind == "prompt"
    assert parse({"hook_event_name": "Stop"}, env={"GROK_HOOK_EVENT": "session_end"}).kind == "stop"


def test_an_empty_spelling_hides_no_other():
    assert (
        parse({"sessionId": "", "session_id": "S", "hookEventName": None, "hook_event_name": "Stop"}).session_id == "S"
    )


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
    max_leaves=8,
)
field_names = st.sampled_from([*CLAUDE, *GROK, *ANTIGRAVITY, "agent_id", "prompt"]) | st.text(max_size=20)


@given(st.dictionaries(field_names, any_json, max_size=12), st.sampled_from(["", "Stop", "nope"]))
def test_any_object_is_reduced_to_texts(payload, told):
    found = wire.parse(json.dumps(payload).encode(), {}, told)
    if found is None:
        return
    for name in type(found).fields:  # type: ignore[attr-defined]
        kind = bool if name in ("stop_hook_active", "subagent") else str
        assert type(getattr(found, name)) is kind
    assert found.kind in {*wire.KINDS.values(), "idle", "other"} - {"notification"}


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(raw):
    assert wire.parse(raw, {}) is None or raw


@given(st.integers(0, len(json.dumps(CLAUDE)) - 1))
def test_a_truncated_payload_is_nothing(cut):
    assert wire.parse(json.dumps(CLAUDE).encode()[:cut], {}) is None
