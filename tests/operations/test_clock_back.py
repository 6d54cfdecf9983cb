"""The clock went back by a day; nobody waits for it to catch up."""

from __future__ import annotations

from bus import limits
from bus.operations import turns
from monitor import granting
from tests.kit.desk import HANDOFF, A, B

DAY = -limits.DAY / 1000


def test_a_dead_holders_turn_is_surrendered_all_the_same(desk):
    desk.join(A, B)
    desk.do(A, granting.try_once)
    desk.tick(DAY)
    desk.dies(A)
    desk.guard()
    assert desk.state()["owner"] is None
    assert desk.do(B, granting.try_once)["status"] == "your_turn"


def test_a_handoff_is_given_on_without_a_days_grace(desk):
    desk.join(A, B)
    desk.do(A, granting.try_once)
    desk.do(A, turns.release, HANDOFF)
    desk.tick(DAY)
    assert desk.do(A, granting.try_once)["status"] == "your_turn"
