"""Notes: any member adds them, every handoff lists the open ones."""

from __future__ import annotations

import pytest

from bus import limits
from bus.operations import notes, turns
from tests.kit.desk import ANN, HANDOFF, A, B, C


@pytest.fixture
def two(desk):
    desk.join(A, B)
    return desk


def listed(desk, **named):
    return [note["note_id"] for note in desk.do(A, notes.list_notes, **named)["notes"]]


def test_add_and_list(two):
    result = two.do(B, notes.add, "mind the gap")
    assert (result["status"], result["author_agent_id"], result["turn_id"]) == ("noted", B, None)
    (note,) = two.do(A, notes.list_notes)["notes"]
    assert (note["body"], note["resolved_at"]) == ("mind the gap", None)


def test_about_a_turn_also_after_it(two):
    two.own(A)
    two.do(A, notes.add, "about this turn", turn=1)
    two.do(A, turns.release, HANDOFF)
    two.own(B)
    assert two.do(B, notes.list_notes)["notes"][0]["turn_id"] == 1


def test_resolved_ones_are_seen_only_when_asked_for(two):
    first, second = (two.do(A, notes.add, text)["note_id"] for text in ("one", "two"))
    assert two.do(B, notes.resolve, first)["status"] == "resolved"
    assert two.do(B, notes.resolve, first)["status"] == "already_resolved"
    assert listed(two) == [second]
    assert listed(two, every=True) == [first, second]


def test_handoffs_list_only_open_ones(two):
    """Until somebody resolves them."""
    number = two.do(B, notes.add, "x")["note_id"]
    two.own(A)
    two.do(A, turns.release, HANDOFF)
    assert two.own(B)["handoff"]["notes"] == [number]
    two.do(B, notes.resolve, number)
    two.do(B, turns.release, HANDOFF)
    assert "notes" not in two.own(A)["handoff"]


def test_pages(two):
    numbers = [two.do(A, notes.add, str(n))["note_id"] for n in range(5)]
    result = two.do(A, notes.list_notes, limit=2)
    assert ([note["note_id"] for note in result["notes"]], result["more"]) == (numbers[:2], True)
    assert listed(two, after=numbers[1]) == numbers[2:]


@pytest.mark.parametrize(
    ("agent", "body", "turn", "code"),
    [
        (C, "x", None, "not_joined"),
        (ANN, "x", None, "not_joined"),
        (A, "x" * (limits.NOTE_BYTES + 1), None, "message_too_large"),
        (A, "ü" * (limits.NOTE_BYTES // 2 + 1), None, "message_too_large"),
        (A, "x", 1, "invalid_turn_id"),
        (A, "x", 0, "invalid_turn_id"),
        (A, "x", -1, "invalid_turn_id"),
    ],
)
def test_refused(two, agent, body, turn, code):
    two.refused(agent, code, notes.add, body, turn=turn)


def test_the_largest_note(two):
    assert two.do(A, notes.add, "x" * limits.NOTE_BYTES)["status"] == "noted"


@pytest.mark.parametrize(("agent", "number", "code"), [(A, 99, "note_not_found"), (C, 1, "not_joined")])
def test_resolve_refused(two, agent, number, code):
    two.do(A, notes.add, "x")
    two.refused(agent, code, notes.resolve, number)
