"""Standby: park, return at once, wake on later directed work only."""

from __future__ import annotations

import pytest

from bus.operations import messages, standby, turns
from tests.kit.desk import ANN, HANDOFF, A, B, C


@pytest.fixture
def two(desk):
    desk.join(A, B)
    desk.inbox(A)
    return desk


def park(desk, agent=B, **named):
    return desk.do(agent, standby.standby, **named)


def test_nothing_would_wake_it(two):
    result = park(two)
    assert (result["status"], result["can_self_wake"], result["transport"]) == ("standby_registered", False, "manual")
    assert result["fallback_reason"]


@pytest.mark.parametrize("kind", ["rewake", "monitor"])
def test_what_would_wake_it(two, kind):
    two.listen(B, kind)
    result = park(two)
    assert (result["can_self_wake"], result["wake_transports"]) == (True, [kind])
    assert park(two, transport="manual")["transport"] == "manual"


def test_a_parked_one_takes_nothing_and_attracts_nothing(two):
    """"""
    two.own(A)
    two.listen(B, "rewake")
    park(two)
    assert two.do(A, turns.release, HANDOFF)["reserved_for"] is None


def test_a_wait_is_active_again(two):
    park(two)
    two.own(A)
    two.wait(B)
    two.listen(B)
    assert two.do(A, turns.release, HANDOFF)["reserved_for"] == B


def test_an_offered_message_is_closed(two):
    two.do(A, messages.send, B, "offered by a line")
    assert park(two)["unread"] == 1
    assert two.one("SELECT wake FROM mail WHERE box = ? ORDER BY seq DESC LIMIT 1", B) == 0
    assert two.texts(B) == ["offered by a line"]


def test_what_was_never_offered_still_wakes(two):
    """Its sender died between commit and wake: parking must not swallow it."""
    ctx = two.enter(A)
    messages.send(ctx, B, "never offered")
    ctx.close()
    park(two)
    assert two.one("SELECT count(*) FROM wakes WHERE agent = ? AND route = 'line'", B) == 1


def test_later_directed_work_wakes(two):
    park(two)
    two.listen(B, "monitor")
    assert two.do(A, messages.send, B, "work")["delivery_status"] == "monitor"


def test_a_persons_room_message_wakes(two):
    """"""
    park(two)
    two.do(ANN, messages.send, "room", "all hands")
    assert two.one("SELECT count(*) FROM mail WHERE box = ? AND wake > 0", B) == 1


def test_again_re_arms(two):
    """A stale batch suppressed every later wake."""
    park(two)
    two.do(A, messages.send, B, "one")
    assert two.one("SELECT count(*) FROM wakes WHERE agent = ? AND closed_at IS NULL AND seen_at IS NULL", B) == 1
    park(two)
    assert two.one("SELECT count(*) FROM wakes WHERE agent = ? AND closed_at IS NULL AND seen_at IS NULL", B) == 0
    assert two.do(A, messages.send, B, "two")["delivery_status"] != "pending"


def test_the_owner_must_release_first(two):
    two.own(A)
    two.refused(A, "park_requires_release", standby.standby)


@pytest.mark.parametrize(
    ("agent", "transport", "code"),
    [
        (C, None, "not_joined"),
        (B, "pigeon", "invalid_standby_transport"),
        (B, "cmux", "cmux_endpoint_required"),
    ],
)
def test_refused(two, agent, transport, code):
    two.refused(agent, code, standby.standby, transport=transport)
