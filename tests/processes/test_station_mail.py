"""Mail of a station: each item to one of those who are there, none lost, and one of them woken."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.processes.crew import Crew
from tests.processes.stories import die_at, sound, stop_at, stopped, texts, unread, waiting

BOTH = "station-1"


@pytest.fixture
def pair(world):
    """A crew of one station with two agents at it."""
    crew = Crew(world, 1, sous=False)
    mate = world.agent("mate", crew.paths[0])
    mate.tt("join").ok()
    for agent in (*crew.stations, mate):
        agent.tt("inbox").ok()
    crew.pair = (crew.stations[0], mate)
    return crew


def costly(world, agents) -> Counter:
    """Wakes of each of them so far."""
    totals = agents[0].tt("wakes", "--json").ok().json["totals"]
    return Counter({agent.name: totals.get(agent.id, {}).get("wakes", 0) for agent in agents})


@pytest.mark.slow
def test_one_of_two_waits_ends(pair):
    one, two = pair.pair
    waits = [waiting(pair.world, agent, "--park") for agent in (one, two)]
    pair.expo.tt("msg", "send", BOTH, "for one of you").ok()
    first = next(wait for wait in waits * 400 if not wait.running or wait.lines.qsize())
    assert texts(first.wait().ok().json) == ["for one of you"]
    (other,) = [wait for wait in waits if wait is not first]
    pair.expo.tt("msg", "send", BOTH, "for the other one").ok()
    assert texts(other.wait().ok().json) == ["for the other one"]
    assert costly(pair.world, (one, two)) == {"s1": 1, "mate": 1}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_who_drain_at_once_get_each_item_once(pair):
    one, two = pair.pair
    sent = [f"item {number}" for number in range(12)]
    for text in sent:
        pair.expo.tt("msg", "send", BOTH, text).ok()
    got: list[str] = []
    while len(got) < len(sent):
        runs = [agent.start("inbox", "--limit", "2") for agent in (one, two)]
        found = [texts(run.wait().ok().json) for run in runs]
        assert any(found), "something is lost"
        got += [text for part in found for text in part]
    assert sorted(got) == sorted(sent)
    assert not pair.world.rows("SELECT 1 FROM mail WHERE box GLOB 'station:*' AND received_at IS NULL")


@pytest.mark.slow
def test_one_that_dies_before_it_has_shown_it_hands_it_on(pair):
    one, two = pair.pair
    claimer = stopped(one.start("inbox", env=stop_at("before_print")))
    claimer.kill()  # nothing was there yet: it dies with empty hands
    pair.expo.tt("msg", "send", BOTH, "one of you").ok()
    taken = one.start("inbox", env=die_at("before_print"))
    assert taken.wait().code == -9
    pair.world.git(pair.repo, "status")
    pair.expo.tt("notes", "add", "any writing command sweeps").ok()
    assert texts(two.tt("inbox").ok().json) == ["one of you"]
    assert texts(one.tt("inbox").ok().json) == []


@pytest.mark.slow
def test_while_one_is_about_to_show_it_the_other_does_not(pair):
    one, two = pair.pair
    pair.expo.tt("msg", "send", BOTH, "one of you").ok()
    claimer = stopped(one.start("inbox", env=stop_at("before_print")))
    assert texts(two.tt("inbox").ok().json) == []
    claimer.cont()
    assert texts(claimer.wait().ok().json) == ["one of you"]
    assert texts(two.tt("inbox").ok().json) == []


@pytest.mark.slow
def test_a_claim_that_stays_unseen_is_given_back(pair):
    pair.world.limit(UNSEEN_WAKE=300)
    one, two = pair.pair
    pair.expo.tt("msg", "send", BOTH, "one of you").ok()
    claimer = stopped(one.start("inbox", env=stop_at("before_print")))
    wait = waiting(pair.world, two, "--park")
    while wait.running and not wait.lines.qsize():
        pair.expo.tt("notes", "add", "a writing command sweeps").ok()
    assert texts(wait.wait().ok().json) == ["one of you"]
    claimer.kill()


@pytest.mark.slow
def test_nobody_there_it_waits_for_who_comes(pair):
    for agent in pair.pair:
        agent.die()
    sent = pair.expo.tt("msg", "send", BOTH, "for whoever comes", "--json").ok().json
    assert sent["delivery_status"] == "waiting"
    new = pair.world.agent("new", pair.paths[0])
    new.tt("join").ok()
    assert "for whoever comes" in texts(new.tt("inbox").ok().json)
    sound(pair.world)


@pytest.mark.slow
def test_the_first_command_of_who_comes_may_be_its_inbox(pair):
    pair.expo.tt("msg", "send", BOTH, "for whoever comes").ok()
    new = pair.world.agent("new", pair.paths[0])
    assert texts(new.tt("inbox").ok().json) == ["for whoever comes"]


@pytest.mark.slow
def test_a_question_to_the_expo_is_for_one_of_two(pair):
    second = pair.world.agent("second", pair.repo)
    second.tt("join").ok()
    pair.expo.tt("inbox").ok()
    asked = pair.pair[0].tt("ask", "which?", "--json").ok().json
    found = [agent.tt("inbox").ok().json["events"] for agent in (pair.expo, second)]
    assert [len(part) for part in found] == [1, 0]
    assert found[0][0]["ask_id"] == asked["ask_id"]
    assert unread(pair.world, second) == []
