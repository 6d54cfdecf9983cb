"""JSON or text, harmless whatever others wrote; nothing is marked that was not printed."""

from __future__ import annotations

import io
import json
import os
import sys
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import clock
from bus.errors import BusError
from tt import output, text, text_parts

ARGS = {"json": False, "text": False, "verbose": False, "agent": None, "path": None, "command": "try"}
JSON = {**ARGS, "json": True}
TEXT = {**ARGS, "text": True}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def rendered(command, value, **more):
    return text.render({**ARGS, "command": command, **more}, value, paint=False)


NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def _still(monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: NOW)


def iso(away=0):
    return clock.iso(NOW + away)


HANDOFF = {
    "event_seq": 11,
    "from_agent_id": "codex:9f21ab04",
    "created_at": iso(-5000),
    "status": "parser done\nall tests pass",
    "next_action": "write the client",
    "artifacts": [{"path": "src/parser.py", "lines": "10-40", "role": "new", "note": "look at the loop"}],
    "open_questions": ["keep v1?"],
    "do_not": ["touch the fixture"],
    "verification": "pytest -q",
}
EVENT = {
    "event_seq": 12,
    "event_id": "e1",
    "type": "message",
    "from": "codex:9f21ab04",
    "from_station": "expo",
    "to": "you",
    "created_at": iso(-125_000),
    "text": "first line\nsecond line",
}
TURN = {
    "status": "your_turn",
    "turn_id": 4,
    "lease_expires_at": iso(44 * 60_000 + 5000),
    "reason": "sequence",
    "handoff": HANDOFF,
    "open_notes": ["n1"],
    "events": [EVENT],
    "hint": "start now",
}


def test_a_turn_reads_well():
    assert rendered("try", TURN).splitlines() == [
        "Your turn: turn 4 – you were next",
        "  lease ends in 44 min, and is renewed while you work",
        "Handoff from codex:9f21ab04  5 s ago",
        "    status: parser done",
        "            all tests pass",
        "    next: write the client",
        "    artifact: src/parser.py:10-40 (new) – look at the loop",
        "    question: keep v1?",
        "    do not: touch the fixture",
        "    verified: pytest -q",
        "open notes: n1 (tt notes list)",
        "#12 codex:9f21ab04 (expo) → you  2 min ago",
        "    first line",
        "    second line",
        "hint: start now",
    ]


CONTROLS = st.text(
    st.one_of(
        st.sampled_from("\x1b[]0;\x07\x9b\r\n\x0b\u2028\u202e\x85\x00mHJ"),
        st.characters(codec="utf-8"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | CONTROLS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CONTROLS, inner, max_size=3),
    max_leaves=6,
)


@given(CONTROLS)
def test_foreign_text_is_indented_and_without_controls(foreign):
    event = {**EVENT, "text": foreign}
    head, *rest = rendered("events", {"status": "ok", "events": [event]}).split("\n")
    assert head.startswith("#12 codex")
    assert all(line.startswith("    ") for line in rest)
    shown = "\n".join(rest)
    assert not any(ord(one) < 32 and one not in "\n\t" for one in shown)
    assert not set("\x7f\x9b\x85\u2028\u202e\u2066") & set(shown)


@pytest.mark.parametrize("field", ["from", "from_station", "type", "to", "created_at", "reason"])
@given(foreign=CONTROLS)
def test_no_field_of_an_event_can_make_a_line_of_ours(field, foreign):
    lines = rendered("events", {"status": "ok", "events": [{**EVENT, field: foreign}]}).split("\n")
    assert lines[0].startswith("#12 ")
    assert all(line.startswith("    ") for line in lines[1:])


@pytest.mark.parametrize(
    ("foreign", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b(0q\x9b2J!", "q!"),
        ("tab\tstays", "tab\tstays"),
        ("abc\u202edef", "abcdef"),
        ("\x1b", ""),
    ],
)
def test_clean(foreign, clean):
    assert text_parts.clean(foreign) == clean


@pytest.mark.parametrize("command", [*text._RENDERERS, "unknown"])
@given(fields=st.dictionaries(st.sampled_from(["status", "hint", "reason", "turn_id", "path"]), CONTROLS))
def test_every_renderer_takes_a_poor_result(command, fields):
    assert isinstance(rendered(command, fields), str)
    assert isinstance(rendered(command, fields, verbose=True), str)


@given(st.dictionaries(CONTROLS, VALUES))
def test_unknown_results_are_shown_field_by_field(fields):
    assert isinstance(rendered("unknown", {"status": "ok", **fields}), str)


@pytest.mark.parametrize(
    ("away", "said"),
    [
        (0, "just now"),
        (-2500, "2 s ago"),
        (-61_000, "1 min ago"),
        (-3_660_500, "1 h 1 min ago"),
        (-7_200_500, "2 h ago"),
        (65_000, "in 1 min"),
    ],
)
def test_times_are_relative(away, said):
    assert text_parts.ago(iso(away)) == said


def test_old_times_are_dates_and_odd_ones_are_shown():
    assert text_parts.ago("2020-01-02T03:04:05.000Z") == "2020-01-02"
    assert text_parts.ago(None) == "-"
    assert text_parts.ago("soon") == "soon"


class Stream:
    """A stdout that may be a terminal, or closed."""

    def __init__(self, *, tty=False, closed=False):
        self.buffer = io.BytesIO()
        self.tty = tty
        if closed:
            self.buffer.close()

    def flush(self):
        pass

    def isatty(self):
        return self.tty

    def text(self):
        return self.buffer.getvalue().decode()


@pytest.fixture
def stdout(monkeypatch):
    def use(**kind):
        stream = Stream(**kind)
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    monkeypatch.setattr(output, "silence", lambda: None)
    for name in ("NO_COLOR", "TT_HARNESS_EXPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return use


def test_json_is_one_compact_line_and_indented_on_a_terminal(stdout):
    stream = stdout()
    assert output.result(JSON, {"status": "ok", "text": "ü"})
    assert stream.text() == '{"status":"ok","text":"ü"}\n'
    stream = stdout(tty=True)
    assert output.result(JSON, {"status": "ok"})
    assert stream.text() == '{\n  "status": "ok"\n}\n'
    assert output.item(JSON, {"event_seq": 1})
    assert stream.text().endswith('{"event_seq":1}\n')


def test_lone_surrogates_stay_json(stdout):
    stream = stdout()
    assert output.result(JSON, {"path": "/tmp/\udcff ü"})
    assert json.loads(stream.text()) == {"path": "/tmp/\udcff ü"}


def test_colours_only_on_a_terminal_and_not_against_no_color(stdout, monkeypatch):
    stream = stdout(tty=True)
    output.result(TEXT, TURN)
    assert "\x1b[32m" in stream.text()
    stream = stdout()
    output.result(TEXT, TURN)
    assert "\x1b" not in stream.text()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = stdout(tty=True)
    output.result(TEXT, TURN)
    assert "\x1b" not in stream.text()


def test_a_closed_stdout_is_told_not_raised(stdout, monkeypatch):
    stdout(closed=True)
    assert output.result(JSON, {"status": "ok"}) is False
    monkeypatch.setattr(sys, "stdout", None)
    assert output.result(JSON, {"status": "ok"}) is False


def test_who_gets_json(monkeypatch):
    caller: Any = types.SimpleNamespace(kind="harness")
    from bus import identity

    monkeypatch.setattr(identity, "json_wanted", lambda _env, who: who.kind == "harness")
    monkeypatch.setattr(identity, "caller", lambda *_a, **_k: types.SimpleNamespace(kind="person"))
    assert output.wants_json(ARGS, caller, {})
    assert not output.wants_json(ARGS, None, {})
    assert output.wants_json(ARGS, None, {"TT_HARNESS_EXPORT": "TRUE"})
    assert not output.wants_json(ARGS, None, {"TT_HARNESS_EXPORT": "0"})
    assert output.wants_json(JSON, None, {})
    assert not output.wants_json({**JSON, "text": True}, caller, {"TT_HARNESS_EXPORT": "1"})


def test_errors_have_details_and_a_hint(monkeypatch):
    stream = Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    problem = BusError("unknown_recipient", "nobody\nfake: line", "try x", nearest=["a", "b"], error="no")
    output.error(JSON, problem)
    assert json.loads(stream.text()) == {
        "error": "unknown_recipient",
        "message": "nobody\nfake: line",
        "nearest": ["a", "b"],
        "hint": "try x",
    }
    stream.buffer.truncate(0)
    stream.buffer.seek(0)
    output.error(TEXT, problem)
    assert stream.text() == "tt: nobody fake: line\n  a, b\nhint: try x\n"
