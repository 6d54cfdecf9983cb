"""The board: facts as they are now, the hash of what counts, and a delta that says each thing once."""

from __future__ import annotations

import contextlib
import json

import pytest

from bus import limits
from bus.operations import board, boardview, messages, receive, settings, tasks, usage
from bus.operations.tasks import New
from bus.store import agents, db
from tests.kit.desk import ANN, A, B, C

ONE, TWO = "station-1", "station-2"


@pytest.fixture
def crew(desk):
    desk.stations.update({A: "expo", B: ONE, C: TWO})
    desk.join(A, B, C)
    for number, agent in enumerate((A, B, C)):
        with desk.bus() as bus, db.Write(bus.con) as con:
            con.execute("UPDATE agents SET worktree = ? WHERE id = ?", (f"/tree/{number}", agent))
        desk.inbox(agent)
    return desk


def view(crew, agent=A, **named):
    return crew.do(agent, boardview.view, **named)


def peer(crew, whose, agent=A):
    (found,) = [one for one in view(crew, agent)["peers"] if one["agent_id"] == whose]
    return found


def changed(crew, agent, *files, branch="main"):
    """What the hooks of this session reported last."""
    with crew.bus() as bus, db.Write(bus.con) as con:
        agents.set_presence(con, agent, json.dumps({"changed": list(files), "branch": branch}), crew.now)


def delta(crew, agent, *, settled=True) -> str:
    with contextlib.closing(crew.enter(agent)) as ctx:
        found = board.delta(ctx, fresh_turn=False)
        if found is None:
            return ""
        if settled:
            board.settle(ctx, found)
        else:
            receive.unclaim(ctx.bus, ctx.me, found.receipt, crew.now)
        return found.text


class TestStates:
    def test_of_the_living(self, crew):
        crew.alive(B)
        crew.listen(B)
        assert peer(crew, B)["state"] == "working"
        crew.tick(120)
        assert peer(crew, B)["state"] == "idle"
        crew.tick(24 * 3600)
        assert peer(crew, B)["state"] == "idle", "a blocked agent is never offline"

    def test_deaf_as_soon_as_its_listener_ends(self, crew):
        crew.alive(B)
        crew.listen(B, "monitor")
        assert peer(crew, B)["state"] == "working"
        crew.deafen(B, "monitor")
        assert peer(crew, B)["state"] == "deaf"

    def test_the_dead_are_offline_at_once(self, crew):
        crew.alive(B)
        crew.listen(B)
        crew.dies(B)
        assert peer(crew, B)["state"] == "offline"

    def test_unknown_and_silent_for_long(self, crew):
        crew.tick(14 * 60)
        assert peer(crew, B)["state"] == "deaf"
        crew.tick(2 * 60)
        assert peer(crew, B)["state"] == "offline"

    def test_holder_and_parked(self, crew):
        crew.listen(B)
        crew.do(ANN, settings.get, "sous")
        crew.listen(C, intent="parked")
        crew.own(B)
        assert peer(crew, B)["state"] == "working"
        crew.tick(600)
        assert peer(crew, B)["state"] == "working"

    def test_people_are_no_peers(self, crew):
        crew.join(ANN)
        assert {one["agent_id"] for one in view(crew)["peers"]} == {B, C}
        assert {one["agent_id"] for one in view(crew, ANN)["peers"]} == {A, B, C}


class TestHash:
    def test_time_and_the_looker_change_nothing(self, crew):
        for agent in (A, B, C):
            crew.alive(agent)
            crew.listen(agent, "monitor")
        known = view(crew)["state_hash"]
        for step in (30, 120, 3600, 24 * 3600):
            crew.tick(step)
            assert view(crew, since_hash=known) == {"status": "unchanged", "state_hash": known}
        crew.do(A, settings.focus, "my own focus")
        crew.do(B, messages.send, "expo", "a message")
        assert view(crew, since_hash=known)["status"] == "unchanged"
        assert view(crew, since_hash="something else")["status"] == "board"

    @pytest.mark.parametrize("fact", ["focus", "branch", "ticket", "ask", "deaf", "gone", "station", "holder"])
    def test_facts_change_it(self, crew, fact):
        for agent in (A, B, C):
            crew.alive(agent)
            crew.listen(agent, "monitor")
        known = view(crew)["state_hash"]
        {
            "focus": lambda: crew.do(B, settings.focus, "parser"),
            "branch": lambda: changed(crew, B, branch="side"),
            "ticket": lambda: crew.do(A, tasks.delegate, New("work", to=ONE)),
            "ask": lambda: crew.do(B, tasks.ask, "may I?"),
            "deaf": lambda: crew.deafen(B, "monitor"),
            "gone": lambda: crew.dies(B),
            "station": lambda: crew.stations.update({B: "elsewhere"}) or crew.do(B, settings.focus, clear=True),
            "holder": lambda: crew.own(B),
        }[fact]()
        assert view(crew)["state_hash"] != known

    def test_more_tickets_than_a_page(self, crew):
        for _ in range(120):
            crew.do(A, tasks.delegate, New("work", to=ONE))
        known = view(crew)["state_hash"]
        last = view(crew)["tickets"][-1]["ticket_id"]
        crew.do(A, tasks.step, "cancel", last, text="no")
        assert view(crew)["state_hash"] != known
        assert len(view(crew)["tickets"]) == 119


class TestDelta:
    def test_mail_before_the_first_look_is_shown(self, crew):
        crew.do(A, messages.send, ONE, "waits for you")
        assert "waits for you" in delta(crew, B)
        assert delta(crew, B) == ""
        assert crew.texts(B) == []

    def test_what_was_drained_is_not_shown_again(self, crew):
        delta(crew, B)
        crew.do(A, messages.send, ONE, "hello")
        assert crew.texts(B) == ["hello"]
        assert delta(crew, B) == ""

    def test_what_was_not_flushed_comes_again(self, crew):
        crew.do(A, messages.send, ONE, "hello")
        assert "hello" in delta(crew, B, settled=False)
        assert "hello" in delta(crew, B)

    def test_silence_writes_nothing(self, crew):
        delta(crew, B)
        before = crew.dump()
        assert delta(crew, B) == ""
        assert crew.dump() == before

    def test_collisions_are_told_once_all_of_them(self, crew):
        delta(crew, B)
        changed(crew, B, *(f"f{number}" for number in range(4)))
        changed(crew, C, "f1", "f3", "other", branch="side")
        text = delta(crew, B)
        assert f"Collision: {C} (station {TWO}) has also changed on branch side: f1, f3." in text
        assert delta(crew, B) == ""
        changed(crew, C, "f1", "f2", "f3")
        assert "f2." in delta(crew, B)
        assert "f1" not in delta(crew, B)

    def test_many_collisions_are_counted(self, crew):
        delta(crew, B)
        names = [f"f{number:02}" for number in range(30)]
        changed(crew, B, *names)
        changed(crew, C, *names)
        assert "f09 and 20 more." in delta(crew, B)

    def test_not_with_the_dead_nor_in_one_worktree(self, crew):
        delta(crew, B)
        changed(crew, B, "f")
        changed(crew, C, "f")
        crew.dies(C)
        assert delta(crew, B) == ""
        with crew.bus() as bus, db.Write(bus.con) as con:
            con.execute("UPDATE agents SET worktree = '/tree/1' WHERE id = ?", (A,))
        changed(crew, A, "f")
        assert delta(crew, B) == ""

    def test_what_is_addressed_to_me_is_mail_and_no_news(self, crew):
        for agent in (B, C):
            delta(crew, agent)
        crew.do(A, tasks.delegate, New("the work", to=ONE))
        assert delta(crew, B).count("the work") == 1
        assert "Since your last prompt" in delta(crew, C)

    def test_it_is_bounded(self, crew):
        delta(crew, B)
        for number in range(40):
            crew.do(A, messages.send, ONE, f"{number} " + "ä" * 2000)
        text = delta(crew, B)
        assert len(text.encode()) <= limits.HOOK_BYTES
        assert "40 unread events" in text
        assert delta(crew, B) == ""
        assert len(crew.texts(B)) == 40


def test_usage_is_counted_and_pruned(crew):
    for kind, tokens in (("explore", 100), ("explore", 50), ("plan", 7)):
        with contextlib.closing(crew.enter(B)) as ctx:
            usage.sample(ctx, kind, tokens)
    totals = crew.do(A, usage.totals, limits.USAGE)
    assert totals["output_tokens"] == 157
    assert [(one["agent_type"], one["samples"], one["output_tokens"]) for one in totals["usage"]] == [
        ("explore", 2, 150),
        ("plan", 1, 7),
    ]
    assert len(view(crew, verbose=True)["usage"]) == 2
    crew.tick(limits.USAGE / 1000 + 1)
    with contextlib.closing(crew.enter(B)) as ctx:
        usage.sample(ctx, "plan", 1)
    assert crew.do(A, usage.totals, 10 * limits.USAGE)["output_tokens"] == 1
