"""Receiving: nothing is marked before it was printed, and shared mail has one reader."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bus import limits
from bus.operations import messages, receive, turns
from monitor import granting
from tests.kit.desk import ANN, HANDOFF, A, B, C


@pytest.fixture
def three(desk):
    desk.stations.update({B: "line-1", C: "line-1"})
    desk.join(A, B, C)
    for agent in (A, B, C):
        desk.inbox(agent)
    return desk


def send(desk, sender, recipient, text="hello"):
    return desk.do(sender, messages.send, recipient, text)


def test_peek_marks_nothing(three):
    send(three, A, B)
    before = three.dump()
    found = three.do(B, receive.inbox, peek=True)
    assert [event["text"] for event in found["events"]] == ["hello"]
    assert three.dump() == before
    assert three.texts(B) == ["hello"]


def test_an_empty_inbox_writes_nothing(three):
    before = three.dump()
    assert three.inbox(B) == []
    assert three.dump() == before


def test_what_was_not_flushed_comes_again(three):
    """A crash between receipt and stdout lost the message."""
    send(three, A, B)
    three.do(B, receive.inbox, settled=False)
    assert three.texts(B) == ["hello"]


def test_exactly_what_was_shown_is_marked(three):
    send(three, A, B, "one")
    ctx = three.enter(B, need_room=False)
    outcome = receive.inbox(ctx)
    send(three, A, B, "two")
    send(three, ANN, "room", "three")
    receive.settle(ctx.bus, outcome.receipt, three.now)
    ctx.close()
    assert three.texts(B) == ["two", "three"]


def test_settled_twice_is_settled_once(three):
    send(three, A, B)
    ctx = three.enter(B, need_room=False)
    outcome = receive.inbox(ctx)
    receive.settle(ctx.bus, outcome.receipt, three.now)
    receive.settle(ctx.bus, outcome.receipt, three.now)
    ctx.close()
    assert three.inbox(B) == []


def test_a_limit_and_more(three):
    for number in range(5):
        send(three, A, B, str(number))
    result = three.do(B, receive.inbox, limit=2)
    assert (len(result["events"]), result["more"], result["unread"]) == (2, True, 5)
    assert three.texts(B) == ["2", "3", "4"]


def test_at_most_a_mebibyte_in_whole_events(three):
    text = "x" * 16_000
    for _ in range(70):
        send(three, A, B, text)
    result = three.do(B, receive.inbox)
    shown = len(result["events"])
    assert result["more"]
    assert shown * len(text) <= limits.RESULT_BYTES < (shown + 1) * (len(text) + 2 * receive.OVERHEAD)
    assert len(three.texts(B)) == 70 - len(result["events"])


def test_at_most_five_hundred(three, monkeypatch):
    monkeypatch.setattr(limits, "RESULT_EVENTS", 3)
    for number in range(4):
        send(three, A, "room", str(number))
    assert three.texts(B) == ["0", "1", "2"]
    assert three.texts(B) == ["3"]


def test_needs_no_membership(three):
    send(three, A, "human")
    assert three.texts("human:tester") == ["hello"]


def test_try_and_wait_drain_too(three):
    send(three, A, B, "one")
    assert [event["text"] for event in three.do(B, granting.try_once)["events"]] == ["one"]
    send(three, A, C, "two")
    assert [event["text"] for event in three.wait(C)["events"]] == ["two"]
    assert three.inbox(B) == three.inbox(C) == []


def test_after_marks_nothing_but_the_turn(three):
    send(three, A, B)
    seen = three.do(B, granting.try_once, after=0)
    assert seen["status"] == "your_turn"
    assert "hello" in [event.get("text") for event in seen["events"]]
    assert three.do(B, granting.try_once)["reason"] == "already_owner"
    send(three, A, B, "again")
    three.do(B, granting.try_once, after=0)
    assert "again" in three.texts(B)


class TestStation:
    def test_one_reader_at_a_time(self, three):
        send(three, A, "line-1")
        three.do(B, receive.inbox, settled=False)
        assert three.inbox(C) == []
        assert three.texts(B) == ["hello"], "the one who took it may look again"

    def test_given_back_when_its_reader_never_confirms(self, three):
        """An unseen claim of a station's item goes back after 5 minutes."""
        three.listen(C)
        send(three, A, "line-1")
        three.do(B, receive.inbox, settled=False)
        three.tick(limits.UNSEEN_WAKE / 1000)
        send(three, A, C, "knock")
        assert sorted(three.texts(C)) == ["hello", "knock"]

    def test_given_back_at_once_when_nobody_could_read_it(self, three):
        three.listen(C)
        three.own(A)
        send(three, A, "line-1")
        three.wait(B, printed=False)
        assert three.texts(C) == ["hello"]

    def test_the_deaf_do_not_keep_it_from_one_that_looks(self, three):
        send(three, A, "line-1")
        assert three.texts(C) == ["hello"]

    def test_claimed_mail_and_own_mail_in_one_batch(self, three):
        send(three, A, "line-1", "shared")
        send(three, A, C, "mine")
        three.do(B, receive.inbox, settled=False)
        assert three.texts(C) == ["mine"]


def test_the_log_has_a_row_for_each_drain(three):
    send(three, A, B)
    three.inbox(B)
    (row,) = three.rows("SELECT * FROM wakes WHERE route = 'inbox' ORDER BY id DESC LIMIT 1")
    assert (row["agent"], row["state"], row["seen_at"]) == (B, "sent", three.now)


def test_a_handoff_is_in_its_own_field_not_among_the_events(three):
    three.own(A)
    three.listen(B)
    three.do(A, turns.release, HANDOFF)
    result = three.do(B, granting.try_once)
    assert result["handoff"]["next_action"] == HANDOFF["next_action"]
    assert result["events"] == []
    assert three.inbox(B) == []


sends = st.lists(
    st.tuples(st.sampled_from((A, B, ANN)), st.sampled_from((A, B, C, "room", "bus", "line-1")), st.booleans()),
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=sends, drains=st.lists(st.sampled_from((A, B, C)), max_size=6))
def test_everything_arrives_exactly_once(tmp_path_factory, plan, drains):
    from tests.kit.desk import Desk

    with pytest.MonkeyPatch.context() as patch:
        desk = Desk(tmp_path_factory.mktemp("desk"), patch)
        desk.stations.update({B: "line-1", C: "line-1"})
        desk.join(A, B, C)
        due: dict[str, list[str]] = {A: [], B: [], C: []}
        got: dict[str, list[str]] = {A: [], B: [], C: []}
        shared, steps = [], iter(drains)
        for number, (sender, to, drain) in enumerate(plan):
            if sender == to:
                continue
            text = str(number)
            desk.do(sender, messages.send, to, text)
            if to == "line-1":
                shared.append(text)
            for agent, texts in due.items():
                if agent == to or (to in ("room", "bus") and agent != sender):
                    texts.append(text)
            if drain and (reader := next(steps, None)):
                got[reader] += desk.texts(reader)
        for agent in due:
            got[agent] += desk.texts(agent)
            assert desk.inbox(agent) == []
        desk.close()
        desk.check()
        for agent, texts in got.items():
            assert [text for text in texts if text not in shared] == due[agent]
        assert sorted(text for texts in got.values() for text in texts if text in shared) == sorted(shared)


class TestTwins:
    """One client runs the same hook twice at once: its mail is shown once, whatever it was offered by before."""

    @pytest.fixture
    def looks(self, three):
        """Two looks of B at the same mail, taken before either claims."""
        with three.bus() as one, three.bus() as two:

            def twins(recipient=B, **named):
                three.do(A, messages.send, recipient, "hello", **named)
                return [(bus, receive.look(bus.con, B)) for bus in (one, two)]

            yield twins

    def claim(self, desk, look):
        bus, batch = look
        return receive.claim(bus, B, batch, "board", desk.now, own=True)

    @pytest.mark.parametrize("recipient", [B, "line-1"])
    @pytest.mark.parametrize("wake", [True, False])  # covered by a line that nobody heard, or by nothing
    def test_the_first_shows_it(self, three, looks, recipient, wake):
        first, second = looks(recipient, wake=wake)
        assert len(self.claim(three, first).items) == 1
        assert self.claim(three, second).items == []

    def test_received_since_the_look(self, three, looks):
        first, second = looks()
        shown = self.claim(three, first)
        receive.settle(first[0], receive.receipt(shown, B, "board"), three.now)
        assert self.claim(three, second).items == []
        assert three.rows("SELECT route FROM wakes WHERE state = 'sending'") == []

    def test_one_that_died_unread_keeps_nothing_back(self, three, looks):
        first, second = looks()
        self.claim(three, first)
        with three.bus() as bus:
            bus.con.execute("UPDATE wakes SET by = ? WHERE route = 'board'", (three.anchor(B),))
        three.dies(B)
        assert len(self.claim(three, second).items) == 1

    def test_one_that_hangs_is_not_waited_for_for_ever(self, three, looks):
        first, second = looks()
        self.claim(three, first)
        three.tick(limits.UNSEEN_WAKE // 1000)
        assert len(self.claim(three, second).items) == 1
