"""Looks and drains: what they say is true of now, the same everywhere, quick, and no news of itself."""

from __future__ import annotations

import contextlib
import os
import time

import pytest

from bus import limits
from bus.errors import BusError
from bus.operations import boardview, messages, receive, settings, standby, tasks, turns, views
from bus.operations.tasks import New
from monitor import granting
from tests.kit.desk import ANN, HANDOFF, A, B, C


@pytest.fixture
def two(desk):
    desk.join(A, B)
    desk.inbox(A)
    return desk


def deafened(desk, agent):
    """The agent gave no command for a while and nothing listens for it."""
    desk.alive(agent)
    desk.tick(limits.BETWEEN_WAITS / 1000 + 1)


def word(desk, agent):
    """How each view calls the agent, as far as reachable or not."""
    members = {one["agent_id"]: one["status"] for one in desk.do(A, views.state)["members"]}
    peers = {one["agent_id"]: one["state"] for one in desk.do(A, boardview.view)["peers"]}
    return {
        "state": members[agent] != "deaf",
        "board": peers[agent] not in ("deaf", "offline"),
        "health": desk.do(agent, views.health)["reachable"],
    }


@pytest.mark.parametrize("listener", [None, "monitor", "rewake", "wait"])
def test_every_view_and_every_send_agree_who_can_be_reached(two, listener):
    deafened(two, B)
    if listener is not None:
        two.listen(B, listener)
    there = listener is not None
    assert word(two, B) == {"state": there, "board": there, "health": there}
    assert two.do(B, standby.standby)["can_self_wake"] == there
    assert (two.do(A, messages.send, B, "hello")["delivery_status"] != "unreachable") == there


def test_what_listened_is_not_believed_once_it_ended(two):
    """A view of a moment ago says nothing: the lock is asked each time."""
    deafened(two, B)
    two.listen(B, "monitor")
    assert all(word(two, B).values())
    two.deafen(B, "monitor")
    assert not any(word(two, B).values())


def test_a_board_of_many_deaf_ones_waits_for_nobody(two, monkeypatch):
    """Each deaf station once cost a retry of 50 ms, during which nothing else ran."""
    names = [f"claude:x{number}" for number in range(20)]
    two.join(*names)
    deafened(two, B)
    with contextlib.closing(two.enter(A)) as ctx:
        monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
        peers = boardview.view(ctx).result["peers"]
    assert {peer["state"] for peer in peers} == {"deaf"}
    assert len(peers) == 21


def test_reading_is_no_news(two):
    """Bookkeeping of cursors once filled the log."""
    for recipient in (B, "room", "bus"):
        two.do(A, messages.send, recipient, "hello")
    before = two.one("SELECT count(*) FROM events")
    two.inbox(B)
    two.do(B, granting.try_once, park=True)
    two.wait(B, park=True)
    assert two.one("SELECT count(*) FROM events") == before


@pytest.mark.parametrize("how", ["message", "ask", "ticket"])
def test_a_sender_is_told_when_not_even_the_line_could_be_written(two, how):
    """It said ok, although nobody could have noticed."""
    two.stations[B] = "expo"
    two.join(B)
    with two.bus() as bus:
        os.mkdir(bus.notify_path(B))
    if how == "message":
        told = two.do(A, messages.send, B, "hello")
    elif how == "ask":
        told = two.do(A, tasks.ask, "may I?")
    else:
        told = two.do(ANN, tasks.delegate, New("work", to=B))
    assert (told["delivery_status"], told["reason"]) == ("unreachable", "the notify file cannot be written")
    assert len(two.inbox(B)) == 1


def test_a_delegation_to_one_that_nothing_wakes_says_so(two):
    told = two.do(ANN, tasks.delegate, New("work", to=B))
    assert (told["status"], told["delivery_status"]) == ("delegated", "unreachable")
    two.listen(B, "monitor")
    two.inbox(B)
    assert two.do(ANN, tasks.delegate, New("more", to=B))["delivery_status"] == "monitor"


def test_a_question_without_options_that_went_to_people_can_be_answered(two):
    ask = two.do(A, tasks.ask, "what now?")["ask_id"]
    two.do(A, tasks.escalate, ask)
    assert two.do(ANN, tasks.answer, ask, "in our own words")["result"] == "in our own words"


@pytest.mark.parametrize("operation", [views.event_view, views.state, views.health])
def test_a_place_without_a_room_is_an_error_and_no_empty_answer(two, operation):
    with pytest.raises(BusError) as refused:
        two.do(A, operation, path=two.folder("elsewhere"))
    assert refused.value.code == "room_not_found"


@pytest.mark.parametrize("route", ["receiver", "rewake", "monitor", "claude_inbox", "codex_queue", "cmux"])
def test_every_route_that_costs_a_turn_is_counted(two, route):
    """One was listed by a name that no wake has, and so cost nothing in every total."""
    from bus.store import db, wakes

    with two.bus() as bus, db.Write(bus.con) as con:
        wakes.begin(con, wakes.Attempt(agent=B, generation=1, route=route, by=None, upto=1, at=two.now, state="sent"))
    assert two.do(A, views.wake_log)["totals"][B]["wakes"] == 1
    assert two.do(B, views.health)["wakes"]["last_hour"] == 1


def test_a_hint_stands_only_where_something_is_to_be_done(two):
    """A reminder on every result fills contexts and is read by nobody."""
    two.own(A)
    plain = [
        two.do(B, granting.try_once),
        two.do(B, receive.inbox),
        two.do(B, views.state),
        two.do(B, views.event_view),
        two.do(B, messages.send, A, "hello"),
        two.do(B, settings.all_keys),
        two.do(A, turns.release, HANDOFF),
    ]
    assert [result["status"] for result in plain if "hint" in result] == []


def test_a_newcomers_first_drain_is_small_however_long_the_history(two):
    for number in range(60):
        two.do(ANN, messages.send, "bus", f"{number} " + "x" * 2000)
    two.join(C)
    assert two.inbox(C) == []
    two.do(ANN, messages.send, "bus", "from now on")
    assert two.texts(C) == ["from now on"]
