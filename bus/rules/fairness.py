"""Who is next: never held before, then longest since last holding, then round the circle."""

from __future__ import annotations

from bus.records import Record


class Seat(Record):
    """One member as the rules see it.

    `present`: seen within the presence time, or its process is proven alive. `fresh`: gave a
    command so recently that it may be between two waits. `waiting`: a live wait in this room, not parked.
    `vanished`: proven gone, and silent for its grace; `grace_left`: ms until one that is gone counts as vanished.
    """

    agent: str
    rank: int
    last_turn: int
    observer: bool = False
    parked: bool = False
    present: bool = True
    fresh: bool = True
    gone: bool = False
    vanished: bool = False
    grace_left: int = 0
    reachable: bool = False
    waiting: bool = False


def order(seats: list[Seat], after: str | None) -> list[Seat]:
    """All seats, fairest first; ties go round the circle of present ranks, starting behind `after`.

    Ranks are taken in the present list: sparse numbers that departures leave behind once
    turned the order round.
    """
    circle = sorted(seats, key=lambda seat: seat.rank)
    start = next((seat.rank for seat in circle if seat.agent == after), 0)
    turned = [s for s in circle if s.rank > start] + [s for s in circle if s.rank <= start]
    return sorted(turned, key=lambda seat: seat.last_turn)


def eligible(seat: Seat) -> bool:
    """May this member be given the turn without being named?"""
    return seat.present and not (seat.observer or seat.parked or seat.gone)


def candidates(seats: list[Seat], prior: str | None) -> list[Seat]:
    """Who may be next after `prior`, fairest first.

    Somebody who is neither reachable nor fresh is no candidate: turns that were reserved for
    the deaf made most takeovers.
    """
    return [
        seat
        for seat in order(seats, prior)
        if seat.agent != prior and eligible(seat) and (seat.reachable or seat.fresh)
    ]


def appointed(seats: list[Seat], prior: str | None) -> Seat | None:
    """For whom the turn is reserved when it becomes free, or None: then it lies idle.

    The fairest candidate, if it can be reached. One who is between two waits is not passed over:
    the turn lies idle, and whoever waits leaves it the fairness grace. Where nobody waits nobody
    would take the turn afterwards, so then the fairest who can be reached gets it at once.
    """
    there = candidates(seats, prior)
    if not there or there[0].reachable:
        return there[0] if there else None
    if any(seat.waiting for seat in there):
        return None
    return next((seat for seat in there if seat.reachable), None)
