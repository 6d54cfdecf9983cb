"""How an event looks to a reader."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.rules import visible
from bus.store.events import TYPES, Event


def event(kind="message", room=1, public=0, body=None, turn=None, thread=None, station=None):
    return Event(9, "e9", room, kind, "claude:aa", station, public, turn, thread, 0, json.dumps(body or {}))


@pytest.mark.parametrize(
    ("found", "boxes", "expected"),
    [
        (event(), ["me"], "you"),
        (event(public=1), ["me"], "you"),
        (event(public=1), [], "room"),
        (event(public=1), ["other"], "room"),
        (event(public=1, room=0), [], "bus"),
        (event(), ["other"], "other"),
        (event(), ["ann", "bob"], ["ann", "bob"]),
        (event(), ["station:line-1"], "line-1"),
        (event(), ["turn:1"], "next_holder"),
        (event(), ["bob", "turn:1"], "bob"),
        (event(), [], "log"),
    ],
)
def test_addressees(found, boxes, expected):
    assert visible.addressees(found, "me", boxes) == expected


def test_what_is_shown():
    found = event(body={"text": "hi"}, turn=3, thread="t1", station="line-1")
    assert visible.shown(found, "me", ["me"], {1: "/work"}) == {
        "event_seq": 9,
        "event_id": "e9",
        "type": "message",
        "from": "claude:aa",
        "from_station": "line-1",
        "to": "you",
        "room": "/work",
        "turn_id": 3,
        "thread": "t1",
        "created_at": "1970-01-01T00:00:00.000Z",
        "text": "hi",
    }


def test_what_is_not_there_is_not_shown():
    shown = visible.shown(event(room=0), "me", [], {})
    assert set(shown) == {"event_seq", "event_id", "type", "from", "to", "created_at"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (event(body={"text": "look here"}), "look here"),
        (event("claim", turn=4), "the turn is yours (turn 4)"),
        (event("takeover", turn=4), "the turn is yours (turn 4)"),
        (event("turn_lost", turn=4, body={"reason": "harness_gone"}), "you lost turn 4: harness_gone"),
        (event("handoff_hint"), "a handoff waits for somebody to claim it"),
        (event("release", body={"handoff": {"next_action": "test it"}}), "the turn is reserved for you: test it"),
    ],
)
def test_subject(found, expected):
    assert visible.subject(found) == expected


@given(st.sampled_from(TYPES), st.dictionaries(st.text(max_size=5), st.text(max_size=300), max_size=3))
def test_every_event_has_a_short_subject(kind, body):
    assert len(visible.subject(event(kind, body=body))) <= visible.SUBJECT_CHARS


@given(st.dictionaries(st.sampled_from(("from", "to", "event_seq", "type", "created_at")), st.text(), max_size=3))
def test_a_body_cannot_forge_the_head(body):
    """Whatever a body says: sender, addressee and number are the store's."""
    shown = visible.shown(event(body=body), "me", ["me"], {})
    assert (shown["from"], shown["to"], shown["event_seq"], shown["type"]) == ("claude:aa", "you", 9, "message")
