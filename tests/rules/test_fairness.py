"""Who is next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.rules import fairness
from tests.rules.facts import NAMES, any_seats, seat

REACHABLE = {"reachable": True}


def names(seats):
    return [one.agent for one in seats]


def circle(*last_turns, ranks=None):
    """Members a, b, c … with these last turns."""
    ranks = ranks or range(1, len(last_turns) + 1)
    return [seat(name, rank, held, **REACHABLE) for name, rank, held in zip("abcdef", ranks, last_turns, strict=False)]


@pytest.mark.parametrize(
    ("story", "seats", "after", "expected"),
    [
        ("never held before comes first", circle(5, 0, 3), "a", "bca"),
        ("then longest since last holding", circle(9, 4, 7), "a", "bca"),
        ("ties go round the circle behind the releaser", circle(0, 0, 0, 0), "b", "cdab"),
        ("the last one is followed by the first", circle(0, 0, 0), "c", "abc"),
        ("nobody before: from the beginning", circle(0, 0, 0), None, "abc"),
        ("sparse ranks that departures leave do not turn it round", circle(0, 0, 0, ranks=(1, 6, 8)), "b", "cab"),
        ("sparse ranks, from the last", circle(0, 0, 0, ranks=(1, 6, 8)), "c", "abc"),
        ("order of rows does not matter", circle(0, 0, 0)[::-1], "a", "bca"),
    ],
)
def test_order(story, seats, after, expected):
    assert "".join(names(fairness.order(seats, after))) == expected, story


@pytest.mark.parametrize(
    ("facts", "allowed"),
    [
        ({}, True),
        ({"observer": True}, False),
        ({"parked": True}, False),
        ({"gone": True}, False),
        ({"present": False}, False),
        ({"fresh": False, "reachable": False}, False),
        ({"fresh": False, "reachable": True}, True),
        ({"fresh": True, "reachable": False}, True),
    ],
)
def test_who_may_be_next_without_being_named(facts, allowed):
    found = fairness.candidates([seat("a"), seat("b", 2, **facts)], "a")
    assert names(found) == (["b"] if allowed else [])


def test_the_releaser_is_no_candidate():
    assert fairness.candidates([seat("a", **REACHABLE)], "a") == []


def test_a_reachable_one_is_appointed():
    chosen = fairness.appointed(circle(1, 0), "a")
    assert chosen is not None
    assert chosen.agent == "b"


def test_one_between_two_waits_is_not_passed_over():
    seats = [seat("a", 1, 3), seat("b", 2, 0, fresh=True), seat("c", 3, 1, reachable=True, waiting=True)]
    assert fairness.appointed(seats, "a") is None


def test_where_nobody_waits_the_turn_does_not_lie_idle_for_one_who_may_come():
    """A person had looked a moment ago; the agent that only a rewake reaches was never told."""
    seats = [seat("a", 1, 3), seat("b", 2, 0, fresh=True), seat("c", 3, 1, reachable=True)]
    chosen = fairness.appointed(seats, "a")
    assert chosen is not None
    assert chosen.agent == "c"


def test_the_deaf_are_passed_over():
    seats = [seat("a", 1, 3), seat("b", 2, 0, fresh=False), seat("c", 3, 1, reachable=True)]
    chosen = fairness.appointed(seats, "a")
    assert chosen is not None
    assert chosen.agent == "c"


@given(any_seats(), st.sampled_from((None, *NAMES)), st.randoms(use_true_random=False))
def test_order_is_total_and_does_not_depend_on_the_order_of_rows(seats, after, shuffler):
    found = fairness.order(seats, after)
    assert sorted(names(found)) == sorted(names(seats))
    mixed = list(seats)
    shuffler.shuffle(mixed)
    assert names(fairness.order(mixed, after)) == names(found)


@given(any_seats(), st.sampled_from((None, *NAMES)))
def test_never_held_first_then_longest_ago(seats, after):
    held = [one.last_turn for one in fairness.order(seats, after)]
    assert held == sorted(held)


@given(any_seats(), st.sampled_from(NAMES))
def test_ties_are_circular(seats, after):
    """Among equals, those behind the releaser in the circle come before those in front of it."""
    seats = [one.replace(last_turn=0) for one in seats]
    by_rank = names(sorted(seats, key=lambda one: one.rank))
    start = by_rank.index(after) + 1 if after in by_rank else 0
    assert names(fairness.order(seats, after)) == by_rank[start:] + by_rank[:start]


@given(any_seats(), st.sampled_from((None, *NAMES)))
def test_ranks_matter_only_by_their_order(seats, after):
    """Removing the gaps changes nothing."""
    dense = {one.agent: n for n, one in enumerate(sorted(seats, key=lambda one: one.rank), 1)}
    closed_up = [one.replace(rank=dense[one.agent]) for one in seats]
    assert names(fairness.order(closed_up, after)) == names(fairness.order(seats, after))


@given(any_seats(), st.sampled_from((None, *NAMES)))
def test_candidates_keep_the_order_and_everybody_who_may(seats, prior):
    found = names(fairness.candidates(seats, prior))
    assert found == [name for name in names(fairness.order(seats, prior)) if name in found]
    for one in seats:
        may = (
            one.agent != prior
            and one.present
            and not (one.observer or one.parked or one.gone)
            and (one.reachable or one.fresh)
        )
        assert (one.agent in found) == may


@given(any_seats(), st.sampled_from((None, *NAMES)))
def test_only_who_can_be_reached_is_appointed_and_nobody_fairer_is_passed_over(seats, prior):
    chosen = fairness.appointed(seats, prior)
    there = fairness.candidates(seats, prior)
    waiting = any(one.waiting for one in there)
    if chosen is None:
        assert not there or not there[0].reachable
        assert waiting or not any(one.reachable for one in there)
    else:
        assert chosen == (there[0] if waiting else next(one for one in there if one.reachable))
        assert chosen.reachable
        assert fairness.eligible(chosen)


@pytest.mark.parametrize("members", [2, 3, 4, 5])
def test_everybody_gets_a_turn_before_anybody_gets_two(members):
    """The order, applied again and again, is a rotation."""
    seats = [seat(name, n, 0, **REACHABLE) for n, name in enumerate("abcde"[:members], 1)]
    holder, held = "a", ["a"]
    for turn_id in range(1, 2 * len(seats)):
        seats = [one.replace(last_turn=turn_id) if one.agent == holder else one for one in seats]
        chosen = fairness.appointed(seats, holder)
        assert chosen is not None
        holder = chosen.agent
        held.append(holder)
    assert held[: len(seats)] == held[len(seats) :]
    assert len(set(held)) == len(seats)
