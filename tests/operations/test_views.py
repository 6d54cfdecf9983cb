"""Looking: nothing here writes, and nothing is hidden without a word."""

from __future__ import annotations

import pytest

from bus import limits
from bus.errors import BusError
from bus.operations import join, messages, turns, views
from tests.kit.desk import ANN, CONSOLE, HANDOFF, A, B, C


@pytest.fixture
def two(desk):
    desk.join(A, B)
    return desk


def texts(desk, agent, **named):
    found = desk.do(agent, views.event_view, **named)["events"]
    return [event["text"] for event in found if event["type"] == "message"]


def send(desk, sender, to, text):
    return desk.do(sender, messages.send, to, text)["event_seq"]


class TestNothingIsWritten:
    @pytest.mark.parametrize(
        ("operation", "named"),
        [
            (views.state, {}),
            (views.state, {"every": True}),
            (views.health, {}),
            (views.health, {"verbose": True}),
            (views.event_view, {}),
            (views.event_view, {"target": "any", "every": True}),
            (views.wake_log, {}),
        ],
    )
    @pytest.mark.parametrize("agent", [A, C, ANN])
    def test_by_looking(self, two, operation, named, agent):
        two.own(A)
        send(two, ANN, "room", "hello")
        before = two.dump()
        assert two.do(agent, operation, **named)["status"]
        assert two.dump() == before


class TestState:
    def states(self, desk, agent=B):
        result = desk.do(agent, views.state)
        words = {member["agent_id"]: member["status"] for member in result["members"]}
        return result["room"]["state"], result["room"]["derived"], words

    def test_idle(self, two):
        assert self.states(two) == ("idle", "idle", {A: "active", B: "active"})

    def test_owned(self, two):
        two.own(A)
        assert self.states(two)[:2] == ("owned", "owned")
        assert self.states(two)[2][A] == "holding"

    def test_reserved(self, two):
        two.own(A)
        two.listen(B)
        two.do(A, turns.release, HANDOFF)
        assert self.states(two) == ("reserved", "reserved", {A: "active", B: "up_next"})

    def test_owner_gone(self, two):
        two.own(A)
        two.dies(A)
        state = self.states(two)
        assert (state[1], state[2][A]) == ("owner_gone", "owner_gone")

    def test_recipient_gone(self, two):
        two.own(A)
        two.listen(B)
        two.do(A, turns.release, HANDOFF)
        two.dies(B)
        assert self.states(two, A)[1] == "recipient_gone"

    def test_stale_owner(self, two):
        two.own(A)
        two.no_guardian = True
        two.kill_guardian()
        two.tick(limits.LEASE / 1000)
        assert self.states(two)[1] == "stale_owner"

    def test_owner_idle(self, two):
        two.own(A)
        for _ in range(3):
            two.tick(limits.OWNER_IDLE / 3000)
            two.guard()
        assert self.states(two)[1] == "owner_idle"

    def test_dormant(self, two):
        two.tick(limits.PRESENCE / 1000 + 1)
        assert self.states(two)[1] == "dormant"

    def test_a_guardian_that_died_does_not_make_a_living_harness_look_dead(self, two):
        """"""
        two.own(A)
        two.alive(A)
        two.no_guardian = True
        two.kill_guardian()
        assert self.states(two)[1] == "owned"

    @pytest.mark.parametrize(
        ("listener", "intent", "word"),
        [("wait", "active", "waiting"), ("wait", "parked", "standby"), ("monitor", "active", "active")],
    )
    def test_words(self, two, listener, intent, word):
        two.listen(B, listener, intent)
        assert self.states(two)[2][B] == word

    def test_a_deaf_one(self, two):
        two.tick(limits.BETWEEN_WAITS / 1000 + 1)
        assert self.states(two)[2] == {A: "deaf", B: "deaf"}

    def test_a_live_quiet_one_is_not_absent(self, two):
        """"""
        two.alive(B)
        two.tick(limits.PRESENCE / 1000 + 1)
        assert self.states(two)[2] == {A: "dormant", B: "deaf"}

    def test_a_live_monitor_counts_as_being_here(self, two):
        two.listen(B, "monitor")
        two.tick(limits.PRESENCE / 1000 + 1)
        assert self.states(two)[2] == {A: "dormant", B: "active"}

    def test_old_rows_are_hidden_and_counted(self, two):
        """; owner, reservee and caller are never hidden."""
        two.join(C)
        two.own(C)
        two.tick(limits.DAY / 1000)
        two.guard()
        two.join(B)
        result = two.do(B, views.state)
        assert [member["agent_id"] for member in result["members"]] == [B, C]
        assert result["hidden"] == {"older_count": 1, "shown_count": 2, "total_count": 3}
        assert len(two.do(B, views.state, every=True)["members"]) == 3


class TestEvents:
    def test_self_is_the_default(self, two):
        two.join(C)
        send(two, A, B, "to b")
        send(two, A, C, "to c")
        send(two, A, "room", "to all")
        assert texts(two, B) == ["to b", "to all"]
        assert texts(two, B, target="any") == ["to b", "to c", "to all"]
        assert texts(two, B, target=C) == ["to c", "to all"]

    def test_ones_own_are_not_for_oneself(self, two):
        """"""
        send(two, A, "room", "mine")
        assert texts(two, A) == []

    def test_the_newest_fifty(self, two):
        """Bare `events` dumped tens of thousands of tokens; here never the oldest for ever."""
        for number in range(60):
            send(two, A, B, str(number))
        assert texts(two, B) == [str(n) for n in range(60)][-50:]
        assert two.do(B, views.event_view)["more"] is True
        assert len(texts(two, B, every=True)) == 60
        assert texts(two, B, limit=2) == ["58", "59"]

    def test_after_a_cursor_nothing_is_skipped(self, two):
        seqs = [send(two, A, B, str(number)) for number in range(5)]
        page = two.do(B, views.event_view, after=seqs[0], limit=2)
        assert ([event["text"] for event in page["events"]], page["more"]) == (["1", "2"], True)
        rest = two.do(B, views.event_view, after=page["cursor_event_seq"])
        assert [event["text"] for event in rest["events"]] == ["3", "4"]

    def test_filters_run_before_paging(self, two):
        send(two, A, B, "wanted")
        for number in range(60):
            send(two, ANN, B, str(number))
        assert texts(two, B, sender=A) == ["wanted"]
        two.join(C)
        assert [event["type"] for event in two.do(A, views.event_view, types=("join",))["events"]] == ["join"] * 2

    def test_yesterdays_are_hidden_by_default(self, two):
        send(two, A, B, "yesterday")
        two.tick(limits.DAY / 1000)
        send(two, A, B, "today")
        assert texts(two, B) == ["today"]
        assert texts(two, B, every=True) == ["yesterday", "today"]

    @pytest.mark.parametrize(
        ("named", "code"),
        [
            ({"types": ("nonsense",)}, "invalid_event_type_filter"),
            ({"after": 10_000}, "invalid_cursor"),
            ({"target": "nobody"}, "unknown_target"),
        ],
    )
    def test_refused(self, two, named, code):
        two.refused(B, code, views.event_view, **named)

    def test_turn_changes_between_others_are_not_for_me(self, two):
        two.join(C)
        two.own(A)
        two.do(A, turns.release, HANDOFF)
        kinds = {event["type"] for event in two.do(C, views.event_view)["events"]}
        assert "claim" not in kinds
        assert "release" not in kinds
        assert "release" in {event["type"] for event in two.do(C, views.event_view, target="any")["events"]}


class TestHealth:
    def test_next_action_of_each(self, two):
        actions = {agent: two.do(agent, views.health)["next_action"] for agent in (A, C)}
        assert "tt wait" in actions[A]
        assert "tt join" in actions[C]
        two.own(A)
        assert "release" in two.do(A, views.health)["next_action"]

    def test_a_turn_that_was_not_told(self, two):
        from monitor import granting

        two.do(A, granting.try_once, settled=False)
        assert "tt try" in two.do(A, views.health)["next_action"]

    def test_the_guardian(self, two):
        two.own(A)
        assert two.do(B, views.health)["guardian"]["alive"] is True
        two.no_guardian = True
        two.kill_guardian()
        card = two.do(B, views.health)
        assert (card["guardian"]["alive"], card["lease"]["renewing"]) == (False, False)

    def test_a_card_is_short(self, two):
        """Health printed 216 lines."""
        assert len(two.do(A, views.health)) <= 24

    def test_the_listener(self, two):
        two.listen(B, intent="parked")
        assert two.do(B, views.health)["listener"]["intent"] == "parked"
        two.deafen(B)
        assert two.do(B, views.health)["listener"] is None


class TestRooms:
    def test_listed(self, two):
        result = views.listing(two.env).result
        assert [(room["path"], room["members"]) for room in result["rooms"]] == [(two.path, [A, B])]

    def test_below_a_path(self, two):
        assert views.listing(two.env, two.folder("elsewhere")).result["rooms"] == []
        assert len(views.listing(two.env, two.top).result["rooms"]) == 1

    def test_empty_rooms_are_hidden_and_counted(self, two):
        two.do(A, messages.send, B, "unread")
        two.do(A, join.leave)
        two.do(B, join.leave)
        result = views.listing(two.env).result
        assert (result["rooms"], result["hidden"]) == ([], {"shown_count": 0, "total_count": 1})
        assert len(views.listing(two.env, every=True).result["rooms"]) == 1

    def test_an_unreadable_bus_does_not_hide_the_others(self, two):
        import os

        broken = os.path.join(two.data, "buses", "broken-0000000000")
        os.makedirs(broken)
        with open(os.path.join(broken, "bus.db"), "wb") as file:
            file.write(b"no database at all, but long enough to be one" * 50)
        result = views.listing(two.env).result
        assert len(result["rooms"]) == 1
        assert result["unreadable"] == [{"bus": "broken-0000000000", "error": "store_unusable"}]
        import shutil

        shutil.rmtree(broken)

    def test_without_any_data(self, desk):
        assert views.listing(desk.env).result["rooms"] == []


class TestWhoami:
    @pytest.mark.parametrize(("agent", "kind"), [(A, "harness"), (ANN, "person"), (CONSOLE, "console")])
    def test_kinds(self, desk, agent, kind):
        result = views.whoami(desk.env, agent, path=desk.path).result
        assert (result["agent_id"], result["kind"], result["source"]) == (agent, kind, "flag")

    def test_needs_no_place(self, desk):
        assert views.whoami(desk.env, A, path="/does/not/exist").result["station"] is None

    def test_explains(self, desk):
        assert views.whoami(desk.env, A, path=desk.path, explain=True).result["steps"]

    def test_a_bad_name(self, desk):
        with pytest.raises(BusError) as refused:
            views.whoami(desk.env, "no colon")
        assert refused.value.code == "invalid_input"


def test_the_wake_log(two):
    two.listen(B, "monitor")
    send(two, A, B, "work")
    result = two.do(A, views.wake_log)
    (row,) = result["wakes"]
    assert (row["agent_id"], row["route"], row["cost"], row["state"]) == (B, "monitor", 1, "sent")
    assert result["totals"][B]["wakes"] == 1
    two.deafen(B, "monitor")
    two.inbox(B)
    assert two.do(A, views.wake_log)["totals"][B]["drains"] >= 1
