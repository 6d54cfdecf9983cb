"""Bodies and handoffs: what is let through comes out whole, everything else is refused by name."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import limits
from bus.errors import BusError
from tt import body


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def stdin(monkeypatch):
    return lambda data: monkeypatch.setattr(sys, "stdin", Stdin(data) if data is not None else None)


def message(*words, stdin=False):
    return body.message({"body": words, "stdin": stdin})


def handoff(status=None, next_action=None, stdin=False):
    return body.handoff({"status": status, "next_action": next_action, "stdin": stdin})


def refused(function, *args, **named):
    with pytest.raises(BusError) as caught:
        function(*args, **named)
    caught.value.message.encode()
    return caught.value


def test_words_are_joined_by_a_space():
    assert message("two", "words  kept") == "two words  kept"
    assert message("a", "-") == "a -"


@pytest.mark.parametrize("words", [(), ("",), (" ", "\n"), ("a\0b",), ("bad \udcff byte",)])
def test_no_body_no_message(words):
    assert refused(message, *words).code == "invalid_body"


@pytest.mark.parametrize("words", [("-",), ()])
def test_stdin_is_taken_whole_but_for_its_last_line_end(stdin, words):
    stdin("`echo` $(no) ü\n\nx\r\n".encode())
    assert message(*words, stdin=not words) == "`echo` $(no) ü\n\nx"


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n ", b"\xff\xfe", b"a\0b", b"\xed\xa0\x80", None])
def test_bad_stdin_is_refused(stdin, data):
    stdin(data)
    assert refused(message, stdin=True).code == "invalid_body"


def test_words_and_stdin_exclude_each_other(stdin):
    stdin(b"x")
    assert refused(message, "a", stdin=True).code == "invalid_body"


def test_the_limit_is_bytes_and_exact(stdin):
    most = limits.MESSAGE_BYTES
    assert message("ü" * (most // 2)) == "ü" * (most // 2)
    error = refused(message, "ü" * (most // 2) + "x")
    assert error.code == "message_too_large"
    assert str(most) in error.message
    assert error.details["limit_bytes"] == most
    for end in (b"", b"\n", b"\r\n"):
        stdin(b"x" * most + end)
        assert len(message(stdin=True)) == most
        stdin(b"x" * (most + 1) + end)
        assert refused(message, stdin=True).code == "message_too_large"


def test_endless_stdin_is_not_read_to_its_end(stdin):
    stdin(b"x" * 1_000_000)
    assert refused(message, stdin=True).code == "message_too_large"
    assert sys.stdin.buffer.tell() < 20_000


def test_a_line_is_checked():
    assert body.line(None, "reason") is None
    assert body.line("why", "reason") == "why"
    assert refused(body.line, "a\0", "reason").code == "invalid_input"
    assert refused(body.line, "x" * 3000, "reason").code == "message_too_large"


def test_a_handoff_from_options():
    assert handoff("done", "next") == {"status": "done", "next_action": "next"}


@pytest.mark.parametrize(
    ("status", "next_action", "field"),
    [
        (None, None, "status"),
        ("a", None, "next_action"),
        (None, "b", "status"),
        ("", "b", "status"),
        ("a", "  ", "next_action"),
        ("a\0", "b", "status"),
        ("a", "\udcff", "next_action"),
    ],
)
def test_missing_or_bad_options_are_named(status, next_action, field):
    error = refused(handoff, status, next_action)
    assert (error.code, error.details["field"]) == ("invalid_handoff", field)


GOOD = {
    "status": "s",
    "next_action": "n",
    "artifacts": [
        "a.py",
        {"path": "b.py", "lines": [3, 9], "role": "new", "note": "x"},
        {"path": "c", "lines": 4},
    ],
    "open_questions": ["why?"],
    "do_not": ["touch c"],
    "verification": "tests pass",
}


def test_a_whole_handoff_from_stdin(stdin):
    stdin(json.dumps(GOOD).encode())
    assert handoff(stdin=True) == GOOD | {
        "artifacts": [
            {"path": "a.py"},
            {"path": "b.py", "lines": "3-9", "role": "new", "note": "x"},
            {"path": "c", "lines": "4"},
        ]
    }


def test_empty_optional_parts_vanish(stdin):
    stdin(b'{"status":"s","next_action":"n","artifacts":[],"do_not":null,"verification":null}')
    assert handoff(stdin=True) == {"status": "s", "next_action": "n"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": 1}, "status"),
        ({"status": None}, "status"),
        ({"next_action": []}, "next_action"),
        ({"artifacts": "a.py"}, "artifacts"),
        ({"artifacts": [1]}, "artifacts[0]"),
        ({"artifacts": ["a", {}]}, "artifacts[1].path"),
        ({"artifacts": [{"path": ""}]}, "artifacts[0].path"),
        ({"artifacts": [{"path": "a", "lines": {}}]}, "artifacts[0].lines"),
        ({"artifacts": [{"path": "a", "lines": True}]}, "artifacts[0].lines"),
        ({"artifacts": [{"path": "a", "size": 1}]}, "size"),
        ({"open_questions": ["a", ""]}, "open_questions[1]"),
        ({"do_not": {"a": 1}}, "do_not"),
        ({"verification": ["a"]}, "verification"),
        ({"verification": ""}, "verification"),
        ({"nextaction": "x"}, "nextaction"),
    ],
)
def test_the_bad_field_is_named(stdin, change, field):
    stdin(json.dumps({**GOOD, **change}).encode())
    error = refused(handoff, stdin=True)
    assert (error.code, error.details["field"]) == ("invalid_handoff", field)
    assert field in error.message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff",
        b"[" * 200_000,
        b'{"a":' * 40_000,
        b'{"status":NaN,"next_action":"n"}',
        b'{"status":"a","status":"b","next_action":"n"}',
        b'{"status":"\\ud800","next_action":"n"}',
        b'{"status":"\\u0000","next_action":"n"}',
        b"1" * 9000,
        None,
    ],
    ids=repr,
)
def test_what_is_no_handoff_is_refused(stdin, data):
    stdin(data)
    assert refused(handoff, stdin=True).code == "invalid_handoff"


def test_a_handoff_too_large_is_refused(stdin):
    error = refused(handoff, "x" * limits.HANDOFF_BYTES, "n")
    assert (error.code, error.details["limit_bytes"]) == ("invalid_handoff", limits.HANDOFF_BYTES)
    stdin(b" " * 300_000)
    assert refused(handoff, stdin=True).code == "invalid_handoff"


def test_options_and_stdin_exclude_each_other(stdin):
    stdin(b"{}")
    assert refused(handoff, "a", None, stdin=True).code == "invalid_handoff"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
FIELDS = st.sampled_from([*body._FIELDS, *body._ARTIFACT_FIELDS, "x"])


@given(st.dictionaries(FIELDS, JSON))
def test_any_object_gives_a_clean_handoff_or_invalid_handoff(given_object):
    shaped: dict = {}
    code = None
    try:
        shaped = body.shape(given_object)
    except BusError as error:
        code = error.code
    if code:
        assert code == "invalid_handoff"
        return
    assert body.shape(shaped) == shaped
    assert {"status", "next_action"} <= set(shaped) <= set(body._FIELDS)
