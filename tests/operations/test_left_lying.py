"""A handoff that nobody took goes on, although nobody waits."""

from __future__ import annotations

from bus import limits
from bus.operations import sweep, turns
from monitor import granting
from tests.kit.desk import HANDOFF, A, B, C


def swept(desk):
    with desk.bus() as bus:
        return sweep.sweep(bus, data=desk.data)


def test_after_the_grace_whoever_can_be_reached_by_now_is_told(desk):
    desk.join(A, B, C)
    desk.do(A, granting.try_once)
    desk.do(A, turns.release, HANDOFF)
    assert desk.state()["state"] == "idle"
    desk.listen(C, "rewake")
    assert C not in swept(desk).boxes
    desk.tick(limits.FAIRNESS_GRACE / 1000)
    assert C in swept(desk).boxes
    assert desk.state()["reserved_for"] == C
    assert len(desk.pending()) == 1


def test_nobody_is_told_twice_and_the_one_who_gave_it_is_not_asked(desk):
    desk.join(A, B)
    desk.do(A, granting.try_once)
    desk.do(A, turns.release, HANDOFF)
    desk.listen(A, "rewake")
    desk.tick(limits.FAIRNESS_GRACE / 1000)
    before = desk.dump()
    swept(desk)
    assert desk.dump() == before
