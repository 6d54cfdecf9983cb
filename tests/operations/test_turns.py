"""The turn in the store: try, release, pass, assign, take, expiry, surrender, and the handoff that is never lost."""

from __future__ import annotations

import contextlib

import pytest

from bus import limits
from bus.errors import BusError
from bus.operations import join, looking, notes, receive, standby, turns
from monitor import granting
from tests.kit.desk import ANN, CONSOLE, HANDOFF, A, B, C, D

MORE = {"status": "more done", "next_action": "finish"}
GRACE_S = limits.GONE_GRACE / 1000


@pytest.fixture
def two(desk):
    desk.join(A, B)
    return desk


@pytest.fixture
def held(two):
    """`A` holds turn 1; `B` is there too."""
    two.own(A)
    return two


def release(desk, agent=A, handoff=HANDOFF, **named):
    return desk.do(agent, turns.release, handoff, **named)


def look(desk, agent, **named):
    return desk.do(agent, granting.try_once, **named)


class TestTry:
    def test_a_free_turn(self, two):
        result = two.own(A)
        assert (result["turn_id"], result["reason"], result["handoff"]) == (1, "open_claim", None)
        state = two.state()
        assert (state["owner"], state["state"], state["lease_until"]) == (A, "owned", two.now + limits.LEASE)

    def test_held_by_another(self, held):
        result = look(held, B)
        assert (result["status"], result["current_owner"], result["turn_id"]) == ("not_yet", A, 1)

    def test_alone(self, desk):
        desk.join(A)
        result = look(desk, A)
        assert (result["status"], result["reason"]) == ("not_yet", "solo_room")

    def test_alone_with_a_console_is_alone(self, desk):
        """A console made a lone agent 'not alone'."""
        desk.join(A, CONSOLE)
        assert look(desk, A)["reason"] == "solo_room"

    def test_again_says_already_owner_with_the_handoff(self, held):
        release(held)
        held.own(B)
        result = look(held, B)
        assert (result["reason"], result["turn_id"]) == ("already_owner", 2)
        assert result["handoff"]["next_action"] == HANDOFF["next_action"]
        assert "repeated" not in result

    def test_a_turn_that_was_not_told_is_told_again(self, two):
        two.do(A, granting.try_once, settled=False)
        result = look(two, A)
        assert (result["status"], result["reason"], result["repeated"]) == ("your_turn", "open_claim", True)
        assert look(two, A)["reason"] == "already_owner"

    @pytest.mark.parametrize(("agent", "code"), [(C, "not_joined"), (CONSOLE, "observer_cannot_hold_turn")])
    def test_refused(self, two, agent, code):
        two.refused(agent, code, granting.try_once)

    def test_kicked(self, two):
        two.do(A, join.kick, B, force=True)
        error = two.refused(B, "unknown_member", granting.try_once)
        assert error.details["agent_id"] == B
        assert "tt join" in error.hint

    def test_without_a_guardian_nothing_is_granted(self, two):
        """The guardian is ready before the commit."""
        two.no_guardian = True
        two.refused(A, "cli_error", granting.try_once)

    def test_a_parked_try_takes_nothing(self, two):
        assert look(two, A, park=True)["status"] == "not_yet"

    def test_a_look_at_a_held_turn_writes_nothing(self, held):
        """Every poll wrote presence."""
        look(held, B)
        before = held.dump()
        look(held, B)
        assert held.dump() == before


class TestGuardian:
    def test_each_lease_has_its_own(self, held):
        assert list(held.guardians) == [held.state()["lease_id"]]

    def test_it_ends_with_the_turn(self, held):
        release(held)
        assert held.guardians == {}

    def test_a_dead_one_is_replaced_by_the_owner(self, held):
        """An owner without a guardian let its lease run out."""
        held.kill_guardian()
        result = look(held, A)
        assert result["reason"] == "already_owner"
        assert list(held.guardians) == [held.state()["lease_id"]]

    def test_a_dead_one_is_replaced_by_whoever_sweeps(self, held):
        held.kill_guardian()
        look(held, B)
        assert list(held.guardians) == [held.state()["lease_id"]]

    def test_an_owner_that_looks_again_gets_no_second_one(self, held):
        before = dict(held.guardians)
        look(held, A)
        assert held.guardians == before

    def test_it_renews_the_lease_and_never_presence(self, held):
        """A wedged owner never looked idle."""
        seen = held.one("SELECT last_seen FROM agents WHERE id = ?", A)
        held.tick(limits.GUARDIAN_BEAT / 1000)
        held.guard()
        assert held.state()["lease_until"] == held.now + limits.LEASE
        assert held.one("SELECT last_seen FROM agents WHERE id = ?", A) == seen

    def test_it_renews_no_lease_of_a_holder_that_nobody_has_seen_for_long(self, held):
        """A session without a process of its own is never proven gone; its turn must still end some day."""
        held.life.clear()
        held.tick(limits.GUARDIAN_BEAT / 1000)
        held.guard()
        until = held.state()["lease_until"]
        held.tick(limits.OWNER_IDLE / 1000)
        held.guard()
        assert held.state()["lease_until"] == until

    def test_an_unannounced_turn_is_mail_once_its_granter_is_gone(self, two):
        two.do(A, granting.try_once, settled=False)
        two.guard()
        assert two.one("SELECT count(*) FROM wakes WHERE agent = ? AND route <> 'grant'", A) == 1

    def test_the_lease_is_unguarded_and_over(self, held):
        held.kill_guardian()
        held.no_guardian = True
        held.tick(limits.LEASE / 1000)
        result = look(held, B)
        assert (result["status"], result["reason"]) == ("takeover_available", "owner_timeout")

    def test_join_again_does_not_touch_the_lease(self, held):
        """Refresh by join overwrote lease and guardian."""
        before = dict(held.state())
        held.join(A)
        assert {**dict(held.state()), "active_at": 0} == {**before, "active_at": 0}
        release(held)


class TestGone:
    def die(self, desk):
        desk.alive(A)
        desk.dies(A)

    def test_gone_alone_takes_nothing(self, held):
        """One momentary 'gone' reading voided a live lease."""
        self.die(held)
        held.guard()
        assert held.state()["owner"] == A

    def test_gone_and_silent_is_surrendered_with_a_recovery_handoff(self, held):
        self.die(held)
        held.tick(GRACE_S)
        held.guard()
        assert (held.state()["owner"], held.state()["prior_owner"]) == (None, A)
        result = look(held, B)
        assert result["handoff"]["recovery"]["agent_id"] == A
        assert result["handoff"]["recovery"]["reason"] == "harness_gone"

    def test_an_inferred_anchor_gets_ten_minutes(self, held):
        """Codex changes its process per turn."""
        held.inferred.add(A)
        with held.bus() as bus:  # a session whose harness never named its process
            bus.con.execute("UPDATE agents SET verified = 0 WHERE id = ?", (A,))
        look(held, A)
        held.tick(61)
        look(held, A)
        self.die(held)
        held.tick(GRACE_S + 60)
        held.guard()
        assert held.state()["owner"] == A
        held.tick(limits.GONE_GRACE_INFERRED / 1000)
        held.guard()
        assert held.state()["owner"] is None

    def test_unknown_is_never_surrendered(self, held):
        held.tick(4 * 3600)
        held.guard()
        assert held.state()["owner"] == A

    def test_the_last_handoff_is_named_in_the_recovery(self, held):
        release(held)
        held.own(B)
        held.alive(B)
        held.dies(B)
        held.tick(GRACE_S)
        held.guard()
        found = look(held, A)["handoff"]["recovery"]
        assert found["last_handoff"]["next_action"] == HANDOFF["next_action"]

    def test_the_vanished_holder_is_told_when_it_comes_back(self, held):
        self.die(held)
        held.tick(GRACE_S)
        held.guard()
        held.alive(A)
        held.own(B)
        assert look(held, A)["reason"] == "lost_turn"

    def test_without_a_guardian_it_is_offered_for_takeover(self, held):
        held.kill_guardian()
        held.no_guardian = True
        self.die(held)
        held.tick(GRACE_S)
        result = look(held, B)
        assert (result["status"], result["reason"]) == ("takeover_available", "owner_gone")


class TestRelease:
    def test_to_nobody(self, held):
        result = release(held)
        assert (result["status"], result["reserved_for"], result["no_active_waiters"]) == ("released", None, True)
        assert (held.state()["state"], held.pending()) == ("idle", [result["event_seq"]])

    def test_to_the_fairest_that_waits(self, held):
        held.join(C)
        held.listen(B)
        held.listen(C)
        assert release(held)["reserved_for"] == B
        assert held.state()["reserved_until"] == held.now + limits.RESERVATION

    def test_the_reserved_one_gets_it_with_the_handoff(self, held):
        held.listen(B)
        release(held)
        result = look(held, B)
        assert (result["reason"], result["from_agent_id"]) == ("sequence", A)
        assert result["handoff"] == HANDOFF | {
            key: result["handoff"][key] for key in ("event_seq", "from_agent_id", "created_at")
        }
        assert held.pending() == []

    def test_longest_since_last_holding(self, held):
        held.join(C)
        for agent in (A, B, C):
            held.listen(agent)
        order = [release(held)["reserved_for"]]
        for agent in (B, C, A, B):
            held.own(agent)
            order.append(release(held, agent)["reserved_for"])
        assert order == [B, C, A, B, C]

    def test_leaving_and_joining_again_does_not_jump_the_queue(self, held):
        held.join(C)
        held.listen(C)
        release(held)
        held.tick(limits.FAIRNESS_GRACE / 1000)
        held.own(C)
        held.do(A, join.leave)
        held.join(A)
        held.listen(B)
        held.listen(A)
        assert release(held, C)["reserved_for"] == B

    def test_sparse_ranks(self, held):
        """Departures inverted the order."""
        held.join(C, D)
        held.do(C, join.leave)
        held.listen(B)
        held.listen(D)
        assert release(held)["reserved_for"] == B

    @pytest.mark.parametrize("why", ["parked", "deaf", "console", "absent", "gone"])
    def test_who_is_no_candidate(self, held, why):
        """Turns were reserved for the deaf and for parked ones."""
        if why == "console":
            held.do(B, join.leave)
            held.join(CONSOLE)
        if why in ("parked", "gone", "absent"):
            held.listen(B, intent="parked" if why == "parked" else "active")
        if why == "gone":
            held.dies(B)
        if why == "absent":
            held.deafen(B)
            held.tick(limits.PRESENCE / 1000 + 1)
            held.guard()
        assert release(held)["reserved_for"] is None

    def test_one_between_two_waits_does_not_lose_its_place(self, held):
        """The best candidate was between two polls."""
        held.join(C)
        held.listen(C)
        held.do(C, notes.add, "busy")
        assert release(held)["reserved_for"] is None
        assert look(held, C)["status"] == "not_yet"
        assert look(held, B)["status"] == "your_turn"

    def test_the_others_get_it_after_the_grace(self, held):
        held.join(C)
        release(held)
        held.tick(limits.FAIRNESS_GRACE / 1000)
        assert look(held, C)["status"] == "your_turn"

    def test_the_releaser_does_not_take_it_back_at_once(self, held):
        """Churn."""
        release(held)
        assert look(held, A)["status"] == "not_yet"
        held.tick(limits.TAKE_BACK_COOLDOWN / 1000)
        assert look(held, A)["handoff"]["next_action"] == HANDOFF["next_action"]

    def test_a_solo_owner_may_go_on(self, held):
        held.do(B, join.leave)
        release(held)
        assert look(held, A)["status"] == "your_turn"

    def test_its_own_release_wakes_nobody_again(self, held):
        """"""
        release(held)
        assert held.inbox(A) == []

    @pytest.mark.parametrize(("agent", "code"), [(B, "stale_lease"), (C, "not_joined")])
    def test_refused(self, held, agent, code):
        held.refused(agent, code, turns.release, HANDOFF)

    def test_a_turn_that_was_not_told_cannot_be_released_unnamed(self, two):
        two.do(A, granting.try_once, settled=False)
        error = two.refused(A, "turn_mismatch", turns.release, HANDOFF)
        assert "--turn 1" in error.hint
        two.refused(A, "turn_mismatch", turns.release, HANDOFF, turn=2)
        assert release(two, turn=1)["status"] == "released"

    def test_released_twice(self, held):
        release(held)
        held.refused(A, "stale_lease", turns.release, HANDOFF)

    def test_every_pending_handoff_is_handed_over(self, held):
        release(held)
        held.do(B, join.leave)
        held.own(A)
        held.do(A, turns.release, MORE)
        assert look(held, A)["handoff"]["status"] == MORE["status"]

    def test_open_notes_are_listed(self, held):
        number = held.do(B, notes.add, "watch the tests")["note_id"]
        release(held)
        result = look(held, B)
        assert result["handoff"]["notes"] == [number]
        assert result["open_notes"] == [number]

    def test_a_handoff_cannot_say_that_another_wrote_it(self, held):
        release(held, handoff=HANDOFF | {"from_agent_id": ANN, "event_seq": 1})
        assert look(held, B)["handoff"]["from_agent_id"] == A


class TestPass:
    def test_without_target(self, held):
        assert held.do(A, turns.pass_on, HANDOFF)["status"] == "passed"

    def test_with_target(self, held):
        held.listen(B)
        assert held.do(A, turns.pass_on, HANDOFF, to=B)["reserved_for"] == B
        assert look(held, B)["reason"] == "direct_pass"

    def test_by_name(self, held):
        held.listen(B)
        assert held.do(A, turns.assign, "codex", HANDOFF)["reserved_for"] == B

    def test_next(self, held):
        held.listen(B)
        result = held.do(A, turns.assign, "next", HANDOFF)
        assert (result["status"], result["reserved_for"]) == ("passed", B)

    def test_to_a_parked_member(self, held):
        held.listen(B, intent="parked")
        assert held.do(A, turns.assign, B, HANDOFF)["routed_to_parked"] is True
        assert look(held, B, park=True)["status"] == "your_turn"

    def test_to_one_that_nothing_would_wake(self, held):
        held.refused(A, "recipient_unreachable", turns.assign, B, HANDOFF)
        assert held.do(A, turns.assign, B, HANDOFF, operator_requested=True)["reserved_for"] == B

    def test_to_the_dead_not_even_by_order(self, held):
        held.dies(B)
        held.refused(A, "recipient_unreachable", turns.assign, B, HANDOFF, operator_requested=True)

    @pytest.mark.parametrize(
        ("target", "code"),
        [
            (A, "unknown_target"),
            (C, "unknown_recipient"),
            ("nobody", "unknown_recipient"),
            (CONSOLE, "observer_cannot_hold_turn"),
        ],
    )
    def test_refused_targets(self, held, target, code):
        held.join(CONSOLE)
        held.refused(A, code, turns.assign, target, HANDOFF)

    def test_to_one_that_left(self, held):
        held.do(B, join.leave)
        held.refused(A, "unknown_member", turns.assign, B, HANDOFF)

    def test_of_two_with_one_name(self, held):
        held.join("codex:b2")
        error = held.refused(A, "ambiguous_recipient", turns.assign, "codex", HANDOFF)
        assert sorted(error.details["candidates"]) == ["codex:b2", B]

    def test_by_one_that_does_not_hold_it(self, held):
        held.listen(A)
        held.refused(B, "stale_lease", turns.assign, A, HANDOFF)


class TestReservation:
    @pytest.fixture
    def reserved(self, held):
        held.join(C)
        held.listen(B)
        release(held)
        held.deafen(B)
        return held

    def test_others_wait(self, reserved):
        result = look(reserved, C)
        assert (result["status"], result["reserved_for"]) == ("not_yet", B)

    def test_expires_once_and_the_handoff_stays(self, reserved):
        """An expired reservation woke everybody with takeover_available."""
        before = reserved.pending()
        reserved.tick(limits.RESERVATION / 1000)
        results = [look(reserved, agent, park=True) for agent in (A, C, A, C)]
        assert {result["status"] for result in results} == {"not_yet"}
        assert reserved.one("SELECT count(*) FROM events WHERE type = 'reservation_expired'") == 1
        assert reserved.pending() == before
        assert reserved.state()["state"] == "idle"

    def test_goes_to_the_next_that_waits(self, reserved):
        reserved.listen(C)
        reserved.tick(limits.RESERVATION / 1000)
        look(reserved, A, park=True)
        assert reserved.state()["reserved_for"] == C

    def test_is_granted_late_if_nobody_came(self, reserved):
        reserved.tick(limits.RESERVATION / 1000 + 60)
        with reserved.enter(B).bus as bus:
            from bus.operations import looking

            found = looking.look(bus, B, reserved.room(), looking.Wish(), reserved.now)
        assert found.decision.kind == "grant"

    def test_an_announcement_that_expired_is_not_shown_later(self, reserved):
        reserved.tick(limits.RESERVATION / 1000)
        look(reserved, C)
        assert [event["type"] for event in reserved.inbox(B)] == ["join"]

    def test_of_the_dead_ends_early(self, reserved):
        reserved.dies(B)
        reserved.tick(limits.GONE_GRACE / 1000)
        look(reserved, C, park=True)
        assert reserved.state()["reserved_for"] is None

    @pytest.mark.parametrize("how", ["leave", "kick"])
    def test_of_one_that_goes_is_cleared_and_the_handoff_kept(self, reserved, how):
        """Session end of any member nulled the pending handoff."""
        before = reserved.pending()
        if how == "leave":
            reserved.do(B, join.leave)
        else:
            reserved.do(A, join.kick, B, force=True)
        assert (reserved.state()["reserved_for"], reserved.pending()) == (None, before)

    def test_of_one_that_goes_does_not_return_to_the_releaser(self, reserved):
        """The releaser is no candidate for its own handoff, however the reservation ended."""
        reserved.do(C, join.leave)
        reserved.listen(A)
        reserved.do(B, join.leave)
        assert reserved.state()["reserved_for"] is None


class TestTake:
    def test_needs_a_reason(self, held):
        held.refused(B, "invalid_input", granting.take)
        held.refused(B, "invalid_input", granting.take, reason="  ")
        held.refused(B, "invalid_input", granting.take, reason="x" * (limits.REASON_BYTES + 1))

    def test_from_a_healthy_owner(self, held):
        """A human's take overrode a healthy owner without warning."""
        held.refused(B, "takeover_ineligible", granting.take, reason="now")
        held.join(ANN)
        held.refused(ANN, "target_active", granting.take)
        held.refused(B, "target_active", granting.take, operator_requested=True)

    def test_by_force(self, held):
        held.join(ANN)
        result = held.do(ANN, granting.take, force=True, reason="urgent")
        assert (result["status"], result["revoked_agent_id"], result["turn_id"]) == ("your_turn", A, 2)
        assert look(held, A)["reason"] == "lost_turn"
        held.refused(A, "stale_lease", turns.release, HANDOFF)

    def test_hands_over_what_the_revoked_owner_was_given(self, held):
        release(held)
        held.own(B)
        held.do(A, granting.take, operator_requested=True, force=True)
        result = look(held, A)
        assert result["handoff"]["next_action"] == HANDOFF["next_action"]

    def test_after_the_lease_is_over(self, held):
        held.kill_guardian()
        held.no_guardian = True
        held.tick(limits.LEASE / 1000)
        held.no_guardian = False
        assert held.do(B, granting.take, reason="over")["reason"] == "owner_timeout"

    def test_from_an_idle_owner(self, held):
        for _ in range(3):
            held.tick(limits.OWNER_IDLE / 1000 / 3)
            held.guard()
        assert look(held, B)["reason"] == "owner_idle"
        assert held.do(B, granting.take, reason="idle")["revoked_agent_id"] == A

    def test_a_free_turn_is_not_taken(self, two):
        error = two.refused(A, "takeover_not_available", granting.take, reason="mine")
        assert "wait --claim" in error.hint

    def test_ones_own_turn_is_not_taken(self, held):
        held.refused(A, "takeover_not_available", granting.take, reason="mine")

    def test_a_reservation(self, held):
        held.join(C)
        held.listen(B)
        release(held)
        held.refused(C, "takeover_ineligible", granting.take, reason="now")
        result = held.do(C, granting.take, operator_requested=True)
        assert (result["revoked_agent_id"], result["handoffs"][0]["next_action"]) == (B, HANDOFF["next_action"])
        assert [event["type"] for event in held.inbox(B)] == ["join", "turn_lost"]

    @pytest.mark.parametrize(
        ("agent", "code"), [(C, "not_joined"), (CONSOLE, "observer_cannot_hold_turn"), (ANN, "not_joined")]
    )
    def test_refused(self, held, agent, code):
        held.refused(agent, code, granting.take, reason="now", force=True)

    def test_a_refused_take_does_not_unpark(self, held):
        held.do(B, standby.standby)
        held.tick(120)
        held.refused(B, "takeover_ineligible", granting.take, reason="now")


class TestUnprinted:
    """Receipt written before stdout; the same for a granted turn."""

    def test_given_back_idle(self, two):
        assert two.wait(A, printed=False) is None
        assert (two.state()["state"], two.state()["owner"], two.state()["prior_owner"]) == ("idle", None, None)

    def test_given_back_with_the_handoff(self, held):
        release(held)
        before = held.pending()
        held.tick(limits.FAIRNESS_GRACE / 1000)
        held.wait(B, printed=False)
        assert (held.state()["owner"], held.pending()) == (None, before)

    def test_an_idle_turn_is_idle_again(self, held):
        release(held)
        held.wait(B, printed=False)
        assert (held.state()["state"], held.state()["prior_owner"]) == ("idle", A)

    def test_a_reservation_is_reserved_again(self, held):
        held.listen(B)
        release(held)
        held.deafen(B)
        held.wait(B, printed=False)
        assert (held.state()["state"], held.state()["reserved_for"]) == ("reserved", B)
        assert look(held, B)["handoff"]["next_action"] == HANDOFF["next_action"]

    def test_a_claim_that_was_given_back_is_never_shown(self, two):
        two.wait(A, printed=False)
        assert "claim" not in [event["type"] for event in two.inbox(A)]

    def test_a_dead_reader_keeps_its_handoff_for_the_next(self, held):
        """Printed, but killed before the marking; then kicked: the handoff is still there."""
        release(held)
        before = held.pending()
        held.do(B, granting.try_once, settled=False)
        held.do(A, join.kick, B, force=True)
        assert held.pending() == before

    def test_a_late_marking_does_not_consume_what_was_given_back(self, held):
        release(held)
        before = held.pending()
        ctx = held.enter(B)
        outcome = granting.try_once(ctx)
        held.do(A, join.kick, B, force=True)
        receive.settle(ctx.bus, outcome.receipt, held.now)
        ctx.close()
        held._exited()
        assert held.pending() == before


class TestHints:
    def test_a_parked_member_is_hinted_once(self, held):
        """Parked agents re-parked in a tight loop."""
        held.do(B, standby.standby)
        assert release(held)["parked_hinted"] == [B]
        assert held.wait(B, park=True)["reason"] == "auto_claim_disabled"
        assert held.wait(B, park=True).get("wake_reason") == "timeout"
        assert (
            held.one("SELECT count(*) FROM mail JOIN events USING (seq) WHERE type = 'handoff_hint' AND box = ?", B)
            == 1
        )

    def test_a_hint_is_void_once_somebody_holds_the_turn(self, held):
        held.join(C)
        held.do(B, standby.standby)
        release(held)
        held.own(C)
        assert [event["type"] for event in held.inbox(B)] == ["join"]

    def test_the_releaser_is_not_hinted(self, held):
        assert A not in release(held)["parked_hinted"]

    def test_a_new_handoff_is_a_new_hint(self, held):
        held.join(C)
        held.do(B, standby.standby)
        release(held)
        held.own(C)
        assert release(held, C)["parked_hinted"] == [B]


class TestWait:
    def test_times_out(self, held):
        result = held.wait(B)
        assert (result["status"], result["wake_reason"]) == ("not_yet", "timeout")
        held.join(C)
        assert held.wait(B)["wake_reason"] == "event"

    def test_gets_the_turn(self, two):
        assert two.wait(A)["status"] == "your_turn"

    def test_claim_takes_it_alone(self, desk):
        desk.join(A)
        assert desk.wait(A)["reason"] == "solo_room"
        assert desk.wait(A, claim=True)["status"] == "your_turn"

    def test_a_survivor_gets_the_turn_although_alone(self, held):
        """"""
        held.do(A, join.leave)
        assert held.wait(B)["handoff"]["recovery"]["agent_id"] == A

    def test_an_idle_owner_ends_only_an_explicit_time_out(self, held):
        """"""
        held.wait(B)
        for _ in range(3):
            held.tick(limits.OWNER_IDLE / 1000 / 3)
            held.guard()
        assert held.wait(B)["reason"] == "owner_idle"

    def test_a_second_one_is_refused(self, two):
        two.listen(A)
        with pytest.raises(BusError) as refused:
            two.wait(A)
        assert refused.value.code == "duplicate_listener"

    @pytest.mark.parametrize(("agent", "code"), [(C, "not_joined"), (CONSOLE, "observer_cannot_hold_turn")])
    def test_refused(self, two, agent, code):
        with pytest.raises(BusError) as refused:
            two.wait(agent)
        assert refused.value.code == code

    def test_park_and_claim(self, two):
        with pytest.raises(BusError) as refused:
            two.wait(A, park=True, claim=True)
        assert refused.value.code == "invalid_wait_mode"

    def test_a_kicked_agent_does_not_come_back_by_waiting(self, two):
        """An old listener resurrected an ended session."""
        two.do(A, join.kick, B, force=True)
        with pytest.raises(BusError) as refused:
            two.wait(B)
        assert refused.value.code == "unknown_member"
        assert two.one("SELECT left_why FROM members WHERE agent = ? AND room > 0", B) == "kicked"
        two.join(B)
        assert two.wait(B)["status"] == "your_turn"

    def test_an_unprinted_message_comes_again(self, two):
        from bus.operations import messages

        two.own(A)
        two.wait(B)
        two.do(A, messages.send, B, "hello")
        assert two.wait(B, printed=False) is None
        assert [event.get("text") for event in two.wait(B)["events"]] == ["hello"]


def test_one_winner_among_many(desk):
    """Everybody saw the same free turn; one compare-and-set wins."""
    names = [f"claude:x{n}" for n in range(6)]
    desk.join(*names)
    seen = [desk.enter(name) for name in names]
    from bus.operations import grant

    given = []
    for number, ctx in enumerate(seen):
        claim = grant.Claim(ctx.room, "open_claim", f"l{number}", 1)
        given.append(grant.commit(ctx, claim))
        ctx.close()
    assert [one is not None for one in given] == [True] + [False] * 5


def test_a_store_that_refuses_the_grant_leaves_no_guardian(two, monkeypatch):
    """A wait looks again after a busy store; the guardian of the grant that failed lived as long as the wait."""
    from bus.operations import grant

    def busy(*_):
        raise BusError("store_busy", "held by another")

    with monkeypatch.context() as patch:
        patch.setattr(grant, "commit", busy)
        two.refused(A, "store_busy", granting.try_once)
    assert not two.guardians
    two.own(A)


def test_the_guardian_that_replaces_one_of_a_known_turn_needs_no_granter(held):
    held.kill_guardian()
    with contextlib.closing(held.enter(A)) as ctx:
        seen = looking.look(ctx.bus, A, ctx.room.id, looking.Wish(), held.now)
        granting.ensure_guarded(ctx, seen)
    assert [one.real.pipe for one in held.guardians.values()] == [-1]
    assert look(held, A)["reason"] == "already_owner"
