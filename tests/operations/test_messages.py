"""Messages: who gets them, whom they wake, and what refuses them."""

from __future__ import annotations

import pytest

from bus.operations import join, messages
from monitor import granting
from tests.kit.desk import ANN, BEN, CONSOLE, A, B, C


@pytest.fixture
def three(desk):
    desk.join(A, B, C)
    for agent in (A, B, C):
        desk.inbox(agent)
    desk.rang.clear()
    return desk


def send(desk, sender, recipient, text="hello", **named):
    return desk.do(sender, messages.send, recipient, text, **named)


def bell(agent):
    return agent.replace(":", "=3a")


class TestDirected:
    def test_reaches_exactly_its_addressee(self, three):
        result = send(three, A, B)
        assert (result["status"], result["to"]) == ("sent", B)
        assert [three.texts(agent) for agent in (A, B, C)] == [[], ["hello"], []]
        assert three.texts(B) == [], "a drained inbox stays empty"

    def test_wakes_a_live_wait_at_no_cost(self, three):
        three.listen(A)
        result = send(three, B, A)
        assert (result["delivery_status"], result["delivery_state"]) == ("receiver", "woken")
        assert bell(A) in three.rang
        assert three.one("SELECT count(*) FROM wakes WHERE route NOT IN ('inbox')") == 0

    def test_nobody_listens(self, three):
        assert send(three, A, B)["delivery_status"] == "unreachable"

    def test_no_wake(self, three):
        three.listen(B)
        assert send(three, A, B, wake=False)["delivery_status"] == "not_woken"
        assert bell(B) not in three.rang
        assert three.texts(B) == ["hello"]

    @pytest.mark.parametrize(
        ("sender", "named", "level"),
        [(A, {}, 1), (ANN, {}, 2), (A, {"interrupt": True}, 3), (ANN, {"wake": False}, 0)],
    )
    def test_how_loudly(self, three, sender, named, level):
        send(three, sender, B, **named)
        assert three.one("SELECT wake FROM mail WHERE box = ? ORDER BY seq DESC LIMIT 1", B) == level

    def test_to_a_person(self, three):
        three.join(ANN)
        send(three, A, "human")
        assert three.texts(ANN) == ["hello"]

    def test_to_a_person_that_was_never_here(self, three):
        send(three, A, "human")
        assert three.texts("human:tester") == ["hello"]

    def test_to_a_station_one_of_it_gets_it(self, three):
        three.stations.update({B: "line-1", C: "line-1"})
        three.join(B, C)
        assert send(three, A, "line-1")["to"] == "station:line-1"
        assert (three.texts(B), three.texts(C)) == (["hello"], [])

    def test_by_name(self, three):
        assert send(three, A, "codex")["to"] == B
        assert send(three, A, "CODEX")["to"] == B

    def test_a_sender_that_is_nobody_yet_becomes_known(self, three):
        assert send(three, "claude:new", B)["status"] == "sent"
        assert three.one("SELECT count(*) FROM agents WHERE id = 'claude:new'") == 1

    def test_bodies_are_kept_as_they_are(self, three):
        text = "\x1b[31mred\n\tto: everyone\u202e \U0001f600 " + "x" * 5000
        send(three, A, B, text)
        assert three.texts(B) == [text]

    def test_a_thread(self, three):
        send(three, A, B, thread="plan")
        assert three.inbox(B)[0]["thread"] == "plan"


class TestRefused:
    """Sending before joining fabricated a row; here a refusal writes none."""

    @pytest.mark.parametrize(
        ("sender", "recipient", "code"),
        [
            (A, "nobody", "unknown_recipient"),
            (A, "grok:zz", "unknown_recipient"),
            (A, "", "unknown_recipient"),
            (A, "*", "unknown_recipient"),
            (A, "self", "unknown_recipient"),
            (A, "next", "unknown_recipient"),
            (A, A, "invalid_input"),
            ("claude:new", "nobody", "unknown_recipient"),
            ("claude:new", "room", "not_joined"),
            ("claude:new", "all", "not_joined"),
        ],
    )
    def test_nothing_is_written(self, three, sender, recipient, code):
        three.refused(sender, code, messages.send, recipient, "hello")

    @pytest.mark.parametrize("typed", ["codx", "codex:b", "codex:bbb"])
    def test_the_nearest_names_are_given(self, three, typed):
        error = three.refused(A, "unknown_recipient", messages.send, typed, "hello")
        assert {"codex", B} & set(error.details["nearest"])
        assert "did you mean" in error.hint

    def test_ambiguous(self, three):
        three.join("codex:b2")
        error = three.refused(A, "ambiguous_recipient", messages.send, "codex", "hello")
        assert sorted(error.details["candidates"]) == ["codex:b2", B]

    def test_the_dead_are_not_ambiguous(self, three):
        three.join("codex:b2")
        three.dies("codex:b2")
        assert send(three, A, "codex")["to"] == B

    def test_two_people(self, three):
        three.join(ANN, BEN)
        three.refused(A, "ambiguous_recipient", messages.send, "human", "hello")

    def test_after_leaving(self, three):
        three.do(A, join.leave)
        three.refused(A, "not_joined", messages.send, "room", "hello")


class TestRoom:
    def test_an_agents_message_reaches_all_others_and_nobodys_bell(self, three):
        """Reply loops."""
        three.listen(B)
        send(three, A, "room")
        assert not {bell(A), bell(B), bell(C)} & set(three.rang)
        assert three.one("SELECT count(*) FROM mail WHERE wake > 0") == 0
        assert [three.texts(agent) for agent in (A, B, C)] == [[], ["hello"], ["hello"]]

    @pytest.mark.parametrize("word", ["room", "all", "everyone"])
    def test_a_persons_message_is_one_event_that_wakes_all(self, three, word):
        """It reached only agents with a live wait."""
        send(three, ANN, word)
        assert three.one("SELECT count(*) FROM events WHERE type = 'message'") == 1
        assert three.one("SELECT count(*) FROM mail WHERE wake = 2") == 3
        for agent in (A, B, C):
            assert three.texts(agent) == ["hello"]
            assert three.texts(agent) == []

    def test_the_room_bell_rings_once_for_those_who_wait(self, three):
        """A bell each would take the sender's CPU from the receivers."""
        three.listen(A)
        send(three, ANN, "room")
        assert bell(A) not in three.rang
        assert three.rang.count(f"room-{three.room()}") == 1

    def test_who_comes_later_does_not_get_it(self, three):
        send(three, ANN, "room")
        three.join("claude:new")
        assert three.texts("claude:new") == []

    def test_who_left_does_not_get_it(self, three):
        three.do(C, join.leave)
        send(three, ANN, "room")
        assert three.texts(C) == []

    def test_a_person_need_not_be_a_member(self, three):
        assert send(three, ANN, "room")["to"] == "room"

    def test_a_console_gets_no_receipt_row(self, three):
        """"""
        three.join(CONSOLE)
        send(three, ANN, "room")
        assert three.one("SELECT count(*) FROM mail WHERE box = ?", CONSOLE) == 0

    def test_an_agents_interrupt_reaches_the_holder(self, three):
        three.own(B)
        three.listen(B)
        send(three, A, "room", interrupt=True)
        assert [
            tuple(row)
            for row in three.rows("SELECT box, wake FROM mail WHERE wake > 1 AND seq = (SELECT max(seq) FROM mail)")
        ] == [(B, 3)]

    def test_the_bus(self, three):
        send(three, ANN, "bus")
        for agent in (A, B, C):
            assert three.inbox(agent)[-1]["to"] == "you"
        assert send(three, A, "bus")["to"] == "bus"
        assert three.inbox(B)[-1]["to"] == "bus"


class TestReply:
    def test_goes_to_the_sender_in_its_thread(self, three):
        event = send(three, A, B)["event_id"]
        three.do(B, messages.reply, event, "hi")
        (answer,) = three.inbox(A)
        assert (answer["text"], answer["thread"], answer["in_reply_to"]) == ("hi", event, event)

    def test_by_number(self, three):
        seq = send(three, A, B)["event_seq"]
        assert three.do(B, messages.reply, str(seq), "hi")["to"] == A

    def test_a_thread_goes_on(self, three):
        first = send(three, A, B)["event_id"]
        second = three.do(B, messages.reply, first, "hi")["event_id"]
        three.do(A, messages.reply, second, "again")
        assert {event["thread"] for event in three.inbox(B) if event.get("in_reply_to")} == {first}

    def test_to_a_room_message_goes_to_its_sender_alone(self, three):
        event = send(three, A, "room")["event_id"]
        three.do(B, messages.reply, event, "hi")
        assert three.texts(C) == ["hello"]
        assert three.texts(A) == ["hi"]

    def test_of_one_that_is_gone_goes_to_its_station(self, three):
        three.stations.update({A: "line-1", C: "line-1"})
        three.join(A, C)
        event = send(three, A, B)["event_id"]
        three.do(A, join.leave)
        assert three.do(B, messages.reply, event, "hi")["to"] == "station:line-1"
        assert three.texts(C) == ["hi"]

    def test_of_one_that_is_gone_without_a_station(self, three):
        event = send(three, A, B)["event_id"]
        three.do(A, join.leave)
        three.refused(B, "unknown_recipient", messages.reply, event, "hi")

    @pytest.mark.parametrize("event", ["e0", "999", "x" * 500, "9" * 40, "", "²"])
    def test_no_such_event(self, three, event):
        three.refused(B, "event_not_found", messages.reply, event, "hi")

    def test_to_nobody(self, three):
        """What the bus itself said has no sender."""
        three.do(C, join.leave)
        three.do(A, granting.try_once)
        three.do(A, join.leave)
        seq = three.one("SELECT seq FROM events WHERE sender = 'tt'")
        three.refused(B, "unknown_recipient", messages.reply, str(seq), "hi")
