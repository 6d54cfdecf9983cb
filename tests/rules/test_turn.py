"""The one evaluation: each row of the table of turns, and what holds for every room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import limits
from bus.rules import fairness, turn
from tests.rules.facts import NAMES, NOW, any_seats, any_stick, room, seat, stick

ME, ANN, BOB = seat("me", 1), seat("ann", 2), seat("bob", 3)
GRACE = limits.GONE_GRACE


def look(found, *seats, claim=False, now=NOW, me=ME, **facts):
    """(kind, reason, deadline) for `me`."""
    seats = (me, *[one for one in seats if one.agent != "me"])
    decision = turn.evaluate(stick(found, **facts), list(seats), me, claim=claim, now=now)
    return decision.kind, decision.reason, decision.deadline


class TestOwned:
    def test_by_me(self):
        assert look(room(owner="me")) == ("own", None, None)

    def test_by_me_is_mine_even_when_the_lease_is_over(self):
        assert look(room(owner="me", lease_until=NOW - 1))[0] == "own"

    def test_by_another_until_the_lease_is_over(self):
        assert look(room(owner="ann"), ANN) == ("not_yet", None, NOW + limits.LEASE)

    def test_lease_over(self):
        assert look(room(owner="ann", lease_until=NOW), ANN) == ("takeover", "owner_timeout", None)

    def test_gone_but_not_yet_silent_long_enough(self):
        answer = look(room(owner="ann"), owner_gone=True, owner_silent=GRACE - 400)
        assert answer == ("not_yet", None, NOW + 400)

    def test_gone_and_silent(self):
        assert look(room(owner="ann"), owner_gone=True, owner_silent=GRACE)[:2] == ("takeover", "owner_gone")

    def test_gone_after_the_lease_is_over_leaves_no_timer(self):
        """A deadline in the past would make every wait spin."""
        answer = look(room(owner="ann", lease_until=NOW - 5), owner_gone=True, owner_silent=GRACE)
        assert answer == ("takeover", "owner_gone", None)

    def test_lease_over_counts_also_while_a_gone_owner_is_not_yet_silent(self):
        answer = look(room(owner="ann", lease_until=NOW - 5), owner_gone=True, owner_silent=0)
        assert answer == ("takeover", "owner_timeout", None)

    def test_idle(self):
        answer = look(room(owner="ann"), owner_silent=limits.OWNER_IDLE)
        assert answer == ("takeover", "owner_idle", NOW + limits.LEASE)

    def test_not_yet_idle(self):
        assert look(room(owner="ann"), owner_silent=limits.OWNER_IDLE - 1)[0] == "not_yet"


class TestReserved:
    @pytest.mark.parametrize("why", ["sequence", "direct_pass"])
    def test_for_me(self, why):
        assert look(room(reserved_for="me", reserved_why=why)) == ("grant", why, None)

    def test_for_me_when_parked(self):
        parked = ME.replace(parked=True)
        assert look(room(reserved_for="me", reserved_why="direct_pass"), me=parked)[0] == "grant"

    def test_for_me_past_the_deadline_if_nobody_was_given_it(self):
        assert look(room(reserved_for="me", reserved_until=NOW - limits.HOUR))[0] == "grant"

    def test_for_another(self):
        assert look(room(reserved_for="ann"), ANN) == ("not_yet", None, NOW + limits.RESERVATION)

    def test_for_another_past_the_deadline_the_room_moves_on(self):
        assert look(room(reserved_for="ann", reserved_until=NOW), ANN) == ("step", None, None)

    def test_for_one_that_is_proven_gone_and_silent(self):
        gone = ANN.replace(gone=True, vanished=True)
        assert look(room(reserved_for="ann"), gone)[0] == "step"

    def test_a_gone_process_alone_ends_no_reservation_but_its_grace_is_waited_for(self):
        gone = ANN.replace(gone=True, grace_left=700)
        assert look(room(reserved_for="ann"), gone) == ("not_yet", None, NOW + 700)


class TestIdle:
    def test_nothing_to_hand_over_and_somebody_else_here(self):
        assert look(room(), ANN) == ("grant", "open_claim", None)

    def test_alone(self):
        assert look(room()) == ("not_yet", "solo_room", None)

    def test_alone_with_claim(self):
        assert look(room(), claim=True) == ("grant", "open_claim", None)

    def test_a_console_does_not_make_a_room_of_two(self):
        assert look(room(), ANN.replace(observer=True))[1] == "solo_room"

    def test_a_dead_or_long_absent_member_does_not_either(self):
        assert look(room(), ANN.replace(gone=True), BOB.replace(present=False))[1] == "solo_room"

    def test_parked(self):
        assert look(room(), ANN, me=ME.replace(parked=True)) == ("not_yet", None, None)

    def test_parked_with_a_handoff(self):
        answer = look(room(), ANN, me=ME.replace(parked=True), pending=True)
        assert answer == ("not_yet", "auto_claim_disabled", None)


class TestPending:
    FRESH = room(idle_since=NOW, prior_owner="ann")

    def test_the_survivor_is_handed_the_turn_although_alone(self):
        assert look(self.FRESH, pending=True) == ("grant", "sequence", None)

    def test_cooldown_of_who_gave_it(self):
        found = room(idle_since=NOW, prior_owner="me")
        assert look(found, ANN, pending=True) == ("not_yet", None, NOW + limits.TAKE_BACK_COOLDOWN)

    def test_cooldown_is_over(self):
        found = room(idle_since=NOW - limits.TAKE_BACK_COOLDOWN, prior_owner="me")
        assert look(found, ANN, pending=True)[0] == "grant"

    def test_a_lone_owner_may_go_on(self):
        assert look(room(idle_since=NOW, prior_owner="me"), pending=True)[0] == "grant"

    def test_a_console_is_no_reason_to_cool_down(self):
        found = room(idle_since=NOW, prior_owner="me")
        assert look(found, ANN.replace(observer=True), pending=True)[0] == "grant"

    def test_grace_for_the_fairer_one(self):
        found = room(idle_since=NOW, prior_owner="ann")
        fairer = BOB.replace(last_turn=1)
        answer = look(found, ANN, fairer, me=ME.replace(last_turn=5), pending=True)
        assert answer == ("not_yet", None, NOW + limits.FAIRNESS_GRACE)

    def test_grace_is_over(self):
        found = room(idle_since=NOW - limits.FAIRNESS_GRACE, prior_owner="ann")
        assert look(found, ANN, BOB, me=ME.replace(last_turn=5), pending=True)[0] == "grant"

    def test_the_fairest_waits_for_nobody(self):
        assert look(self.FRESH, ANN, BOB.replace(last_turn=5), pending=True)[0] == "grant"

    def test_nobody_waits_for_the_deaf(self):
        deaf = BOB.replace(fresh=False, reachable=False)
        assert look(self.FRESH, ANN, deaf, me=ME.replace(last_turn=5), pending=True)[0] == "grant"


WAITING = [seat(name, n, 9 - n, waiting=True) for n, name in enumerate(("ann", "bob", "me"), 1)]


class TestOffers:
    def test_fairest_first_then_one_by_one(self):
        times = {one.agent: turn.offer_time(WAITING, one, "cat", NOW) - NOW for one in WAITING}
        assert times == {"me": 0, "bob": limits.TAKEOVER_OFFER, "ann": 2 * limits.TAKEOVER_OFFER}

    def test_who_does_not_wait_is_not_counted(self):
        seats = [one.replace(waiting=one.agent == "ann") for one in WAITING]
        assert turn.offer_time(seats, seats[0], "cat", NOW) == NOW

    def test_the_owner_and_consoles_are_not_counted(self):
        seats = [WAITING[0], WAITING[1].replace(observer=True), WAITING[2]]
        assert turn.offer_time(seats, seats[0], "me", NOW) == NOW


@pytest.mark.parametrize(
    ("facts", "changes", "expected"),
    [
        ({"owner_gone": True, "owner_silent": GRACE + 70}, {}, -70),
        ({"owner_gone": True, "owner_silent": GRACE + 70}, {"lease_until": NOW - 5}, -70),
        ({}, {"lease_until": NOW - 5}, -5),
        ({"owner_silent": limits.OWNER_IDLE + 9}, {}, -9),
    ],
)
def test_offers_count_from_a_fixed_time(facts, changes, expected):
    """Counted from each look, the second waiter's turn would never come."""
    assert turn.since(stick(room(owner="ann", **changes), **facts), NOW) == NOW + expected


# --- for every room and every company -------------------------------------------------------

anything = given(any_stick(), any_seats(), st.booleans())


def mine(seats):
    return next((one for one in seats if one.agent == "me"), seat("me", 99))


def decide(found, seats, claim, me=None):
    return turn.evaluate(found, seats, me or mine(seats), claim=claim, now=NOW)


@anything
def test_a_grant_never_takes_from_anybody(found, seats, claim):
    if decide(found, seats, claim).kind == "grant":
        assert found.room.owner is None
        assert found.room.reserved_for in (None, "me")


@anything
def test_a_parked_one_gets_only_what_is_reserved_for_it(found, seats, claim):
    me = mine(seats).replace(parked=True)
    if decide(found, seats, claim, me).kind == "grant":
        assert found.room.reserved_for == "me"


@anything
def test_a_reservation_is_never_offered_as_a_takeover(found, seats, claim):
    if decide(found, seats, claim).kind == "takeover":
        assert found.room.owner not in (None, "me")


@anything
def test_only_a_reservation_makes_the_room_move(found, seats, claim):
    if decide(found, seats, claim).kind == "step":
        assert found.room.reserved_for not in (None, "me")
        assert turn.reservation_over(found.room, seats, NOW)


@anything
def test_own_means_own(found, seats, claim):
    assert (decide(found, seats, claim).kind == "own") == (found.room.owner == "me")


@anything
def test_deadlines_lie_in_the_future(found, seats, claim):
    deadline = decide(found, seats, claim).deadline
    assert deadline is None or deadline > NOW


def aged(one, elapsed):
    """The same member some time later, if nothing was heard of it."""
    left = max(0, one.grace_left - elapsed)
    return one.replace(grace_left=left, vanished=one.gone and left == 0)


@anything
def test_at_its_deadline_the_answer_is_another_one(found, seats, claim):
    """Else the waiter would only have been woken for nothing, again and again."""
    first = decide(found, seats, claim)
    if first.deadline is None or first.kind == "takeover":
        return
    later = found.replace(owner_silent=found.owner_silent + first.deadline - NOW)
    then = [aged(one, first.deadline - NOW) for one in seats]
    again = turn.evaluate(later, then, mine(then), claim=claim, now=first.deadline)
    assert (again.kind, again.deadline) != (first.kind, first.deadline)


@anything
def test_the_answer_is_deterministic(found, seats, claim):
    assert decide(found, seats, claim) == decide(found, list(reversed(seats)), claim)


@given(any_seats())
def test_alone_ignores_consoles_the_gone_and_the_absent(seats):
    me = mine(seats)
    others = [one for one in seats if one.agent != "me" and not one.observer and one.present and not one.gone]
    assert turn.alone(seats, me) == (not others)


@given(any_seats(), any_stick())
def test_somebody_may_take_a_pending_handoff_in_the_end(seats, found):
    """With an idle room, a handoff and time, each member that is active gets it: nothing is stranded."""
    if found.room.state != "idle":
        return
    late = max(NOW, found.room.idle_since) + limits.TAKE_BACK_COOLDOWN + limits.FAIRNESS_GRACE
    for one in seats:
        if not one.parked:
            decision = turn.evaluate(found.replace(pending=True), seats, one, claim=False, now=late)
            assert decision.kind == "grant"


@given(any_seats(), st.sampled_from(NAMES))
def test_offers_are_made_one_at_a_time(seats, owner):
    waiting = [one for one in seats if one.waiting and not one.observer and one.agent != owner]
    times = [turn.offer_time(seats, one, owner, NOW) for one in waiting]
    assert sorted(times) == [NOW + n * limits.TAKEOVER_OFFER for n in range(len(waiting))]
    if waiting:
        first = next(one for one in fairness.order(seats, owner) if one in waiting)
        assert turn.offer_time(seats, first, owner, NOW) == NOW
