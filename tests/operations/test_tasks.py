"""Tickets and asks: each change from the state it expects, the loser told, nobody's work undone."""

from __future__ import annotations

import pytest

from bus import limits
from bus.errors import BusError
from bus.operations import receive, settings, tasks, where
from bus.operations.tasks import New
from bus.store import tickets
from tests.kit.desk import ANN, A, B, C, D

ONE, TWO, EXPO = "station-1", "station-2", "expo"


@pytest.fixture
def crew(desk, monkeypatch):
    """A is the expo, B the sous, C and D two stations."""
    desk.stations.update({A: EXPO, B: "sous", C: ONE, D: TWO})
    desk.join(A, B, C, D)
    desk.do(ANN, settings.put, "sous", B)
    for agent in (A, B, C, D):
        desk.inbox(agent)
    return desk


def composed(crew, title="work", **named):
    return crew.do(B, tasks.delegate, New(title, **named))["ticket_id"]


def assigned(crew, to=ONE, title="work"):
    return crew.do(A, tasks.delegate, New(title, to=to))["ticket_id"]


def step(crew, agent, verb, ticket, **named):
    return crew.do(agent, tasks.step, verb, ticket, **named)


def state(crew, ticket):
    return crew.rows("SELECT state, assignee, holder, result FROM tickets WHERE id = ?", ticket)[0]


def moved(crew, ticket, upto):
    """The ticket, taken by C as far as that state."""
    if upto in ("in_progress", "returned", "done"):
        step(crew, C, "start", ticket)
    if upto in ("returned", "done"):
        step(crew, C, "return", ticket, text="result")
    if upto == "done":
        step(crew, A, "done", ticket)
    if upto == "cancelled":
        step(crew, A, "cancel", ticket, text="no")
    return ticket


def test_the_whole_way(crew):
    ticket = composed(crew, body="all about it")
    (queued,) = crew.inbox(A)
    assert (queued["type"], queued["ticket_id"], queued["to"]) == ("ticket", ticket, EXPO)
    assert "all about it" in queued["text"]
    step(crew, A, "assign", ticket, to=ONE)
    assert [event["state"] for event in crew.inbox(C)] == ["assigned"]
    step(crew, C, "start", ticket)
    assert state(crew, ticket)["holder"] == C
    step(crew, C, "return", ticket, text="it is done\nsee the branch")
    (returned,) = crew.inbox(B)
    assert returned["text"].endswith("it is done\nsee the branch")
    step(crew, A, "done", ticket)
    assert all(crew.inbox(agent) == [] for agent in (A, B, C, D))


MOVES = {
    "queued": {"assign", "cancel"},
    "assigned": {"assign", "start", "cancel"},
    "in_progress": {"assign", "return", "cancel"},
    "returned": {"assign", "done", "cancel"},
    "done": set(),
    "cancelled": set(),
}
WHO = {"assign": A, "start": C, "return": C, "done": A, "cancel": A}


@pytest.mark.parametrize("verb", WHO)
@pytest.mark.parametrize("at", MOVES)
def test_every_move_from_every_state(crew, at, verb):
    if at == "queued":
        ticket = composed(crew)
        if verb in ("start", "return"):
            crew.refused(C, "not_permitted", tasks.step, verb, ticket, text="x")
            return
    else:
        ticket = moved(crew, assigned(crew), at)
    named = {"to": TWO} if verb == "assign" else {"text": "x"}
    if verb in MOVES[at]:
        step(crew, WHO[verb], verb, ticket, **named)
    else:
        error = crew.refused(WHO[verb], "ticket_conflict", tasks.step, verb, ticket, **named)
        assert error.details["state"] == at


@pytest.mark.parametrize("verb", ["assign", "start", "return", "done", "cancel"])
def test_strangers_may_do_nothing(crew, verb):
    ticket = moved(crew, assigned(crew), "in_progress")
    crew.refused(D, "not_permitted", tasks.step, verb, ticket, to=TWO, text="x")


def test_people_may_assign_finish_and_cancel_but_not_do_the_work(crew):
    ticket = assigned(crew)
    crew.refused(ANN, "not_permitted", tasks.step, "start", ticket)
    step(crew, ANN, "assign", ticket, to=TWO)
    step(crew, D, "start", ticket)
    step(crew, D, "return", ticket, text="r")
    step(crew, ANN, "done", ticket)


def test_reopened_for_the_same_one(crew):
    ticket = moved(crew, assigned(crew), "returned")
    crew.inbox(C)
    step(crew, A, "assign", ticket)
    assert tuple(state(crew, ticket)) == ("assigned", f"station:{ONE}", None, None)
    assert [event["state"] for event in crew.inbox(C)] == ["assigned"]


def test_a_return_that_comes_after_the_ticket_changed_hands(crew, monkeypatch):
    """Looked at before, written after: the row as it is now decides, and no old row comes back to life."""
    ticket = moved(crew, assigned(crew), "in_progress")
    real = tasks._permit
    once: list[int] = []

    def permit(ctx, verb, task, gone):
        real(ctx, verb, task, gone)
        if not once:
            once.append(1)
            step(crew, A, "assign", ticket, to=TWO)
            step(crew, D, "start", ticket)

    monkeypatch.setattr(tasks, "_permit", permit)
    with pytest.raises(BusError) as refused:
        step(crew, C, "return", ticket, text="late")
    assert refused.value.code == "not_permitted"
    assert tuple(state(crew, ticket)) == ("in_progress", f"station:{TWO}", D, None)


def test_a_cancelled_one_stays_cancelled(crew, monkeypatch):
    ticket = assigned(crew)
    real = tasks._permit
    once: list[int] = []

    def permit(ctx, verb, task, gone):
        real(ctx, verb, task, gone)
        if not once:
            once.append(1)
            step(crew, A, "cancel", ticket, text="no")

    monkeypatch.setattr(tasks, "_permit", permit)
    with pytest.raises(BusError) as refused:
        step(crew, C, "start", ticket)
    assert (refused.value.code, refused.value.details["result_by"]) == ("ticket_conflict", A)
    assert state(crew, ticket)["state"] == "cancelled"


def test_stalled_is_derived_and_work_goes_on_at_the_station(crew):
    crew.alive(C)
    ticket = moved(crew, assigned(crew), "in_progress")
    assert crew.do(A, tasks.show, ticket)["stalled"] is False
    before = tuple(crew.rows("SELECT * FROM tickets")[0])
    crew.dies(C)
    assert crew.do(A, tasks.show, ticket)["stalled"] is True
    assert [one["stalled"] for one in crew.do(A, tasks.listing)["tickets"]] == [True]
    assert tuple(crew.rows("SELECT * FROM tickets")[0]) == before
    mate = "claude:mate"
    crew.stations[mate] = ONE
    crew.join(mate)
    assert [one["ticket_id"] for one in crew.do(mate, tasks.listing, mine=True)["tickets"]] == [ticket]
    step(crew, mate, "return", ticket, text="by the one who came after")
    assert state(crew, ticket)["state"] == "returned"


def test_while_its_holder_lives_a_mate_may_not_return_it(crew):
    crew.alive(C)
    ticket = moved(crew, assigned(crew), "in_progress")
    crew.stations["claude:mate"] = ONE
    crew.join("claude:mate")
    crew.refused("claude:mate", "not_permitted", tasks.step, "return", ticket, text="mine")


def test_returned_to_a_creator_that_is_gone_goes_to_its_station(crew):
    crew.alive(B)
    ticket = composed(crew)
    step(crew, A, "assign", ticket, to=ONE)
    crew.dies(B)
    moved(crew, ticket, "returned")
    boxes = [row[0] for row in crew.rows("SELECT box FROM mail ORDER BY seq DESC LIMIT 1")]
    assert boxes == ["station:sous"]


@pytest.mark.parametrize("text", [None, "", " \n"])
@pytest.mark.parametrize("verb", ["return", "cancel"])
def test_a_result_and_a_reason_are_needed(crew, verb, text):
    ticket = moved(crew, assigned(crew), "in_progress")
    crew.refused(C if verb == "return" else A, "invalid_body", tasks.step, verb, ticket, text=text)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (New(""), "invalid_body"),
        (New(" \n"), "invalid_body"),
        (New("x" * 201), "invalid_body"),
        (New("x", body="x" * (limits.MESSAGE_BYTES + 1)), "message_too_large"),
        (New("x", priority="now"), "invalid_input"),
        (New("x", to="*"), "unknown_recipient"),
        (New("x", to="station-42"), "unknown_recipient"),
        (New("x", to="statoin-1"), "unknown_recipient"),
    ],
)
def test_refused(crew, new, code):
    error = crew.refused(ANN, code, tasks.delegate, new)
    if new.to == "statoin-1":
        assert error.details["nearest"][0] == ONE


def test_lists(crew):
    mine = assigned(crew)
    crew.tick(1)
    other, done = assigned(crew, TWO), moved(crew, assigned(crew), "done")

    def ids(**named):
        return [one["ticket_id"] for one in crew.do(C, tasks.listing, **named)["tickets"]]

    assert ids() == [mine, other]
    assert ids(mine=True) == [mine]
    assert ids(assignee=TWO) == [other]
    assert ids(state="done") == [done]
    assert set(ids(every=True)) == {mine, other, done}
    crew.refused(C, "invalid_input", tasks.listing, state="lost")
    crew.refused(C, "ticket_not_found", tasks.show, "t-none")


def test_a_list_that_is_cut_says_so(crew, monkeypatch):
    monkeypatch.setattr(tasks, "LISTED_MOST", 2)
    made = [assigned(crew) for _ in range(3)]
    shown = crew.do(A, tasks.listing)
    assert {one["ticket_id"] for one in shown["tickets"]} < set(made)
    assert (len(shown["tickets"]), shown["more"]) == (2, True)


class TestAsks:
    def asked(self, crew, by=C, **named):
        return crew.do(by, tasks.ask, "keep the flag?", options=("yes:one more release", "no"), **named)["ask_id"]

    def test_the_expo_hears_and_the_asker_hears_the_answer(self, crew):
        ask = self.asked(crew, context="see #4")
        (heard,) = crew.inbox(A)
        assert heard["options"] == [{"label": "yes", "text": "one more release"}, {"label": "no", "text": ""}]
        assert "see #4" in heard["text"]
        crew.do(A, tasks.answer, ask, None, ("yes",))
        (answered,) = crew.inbox(C)
        assert (answered["type"], answered["from"], answered["result_by"]) == ("answer", A, A)

    def test_free_text_is_always_possible(self, crew):
        assert crew.do(A, tasks.answer, self.asked(crew), "until May")["result"] == "until May"
        plain = crew.do(C, tasks.ask, "what now?")["ask_id"]
        assert crew.do(A, tasks.answer, plain, "wait")["result"] == "wait"

    def test_the_second_answer_is_told_the_first(self, crew):
        ask = self.asked(crew)
        crew.do(ANN, tasks.answer, ask, "yes, by me")
        error = crew.refused(A, "ask_answered", tasks.answer, ask, "no")
        assert (error.details["answer"], error.details["answered_by"]) == ("yes, by me", ANN)

    @pytest.mark.parametrize(("text", "choose"), [(None, ()), ("x", ("yes",))])
    def test_one_way_to_answer(self, crew, text, choose):
        crew.refused(A, "invalid_body", tasks.answer, self.asked(crew), text, choose)

    def test_an_option_that_is_not_there(self, crew):
        crew.refused(A, "invalid_input", tasks.answer, self.asked(crew), None, ("perhaps",))

    def test_who_may_answer(self, crew):
        ask = self.asked(crew)
        for agent in (B, C, D):
            crew.refused(agent, "not_permitted", tasks.answer, ask, "x")

    def test_escalated_it_waits_for_people(self, crew):
        ask = self.asked(crew)
        assert crew.do(ANN, tasks.asks, human=True)["asks"] == []
        crew.do(A, tasks.escalate, ask)
        assert [one["ask_id"] for one in crew.do(ANN, tasks.asks, human=True)["asks"]] == [ask]
        assert [event["ask_id"] for event in crew.inbox(ANN)] == [ask]
        crew.do(ANN, tasks.answer, ask, "yes")
        assert crew.do(ANN, tasks.asks, human=True)["asks"] == []
        crew.refused(A, "ask_answered", tasks.escalate, ask)

    def test_the_expo_asks_people(self, crew):
        assert self.asked(crew, by=A) in [one["ask_id"] for one in crew.do(ANN, tasks.asks, human=True)["asks"]]

    @pytest.mark.parametrize("options", [(":x",), ("a", "a"), tuple(map(str, range(21)))])
    def test_options_refused(self, crew, options):
        crew.refused(C, "invalid_input", tasks.ask, "q", options=options)

    def test_ten_asks_while_the_expo_reads_none_are_one_wake(self, crew):
        crew.listen(A, "monitor")
        for _ in range(10):
            self.asked(crew)
        rows = crew.rows("SELECT 1 FROM wakes WHERE agent = ? AND route = 'monitor'", A)
        assert len(rows) == 1
        assert len(crew.inbox(A)) == 10


def test_the_sous_in_the_main_checkout_does_not_read_the_mail_of_the_expo(crew):
    with crew.bus() as bus:
        assert receive.boxes(bus.con, B) == [B, "station:sous"]
        assert where.actor_at(bus.con, B).role == "sous"


def test_eight_who_change_one_ticket_at_once(crew):
    """Only one of them finds the state that all of them expect."""
    ticket = assigned(crew)
    with crew.bus() as bus:
        task = tickets.get(bus.con, "ticket", ticket)
        won = [tickets.change(bus.con, ticket, ("assigned",), task.replace(state="in_progress")) for _ in range(8)]
    assert won == [True] + [False] * 7
