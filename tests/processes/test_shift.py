"""A whole shift: tickets out, results back, questions up, one dies, and nobody is woken for nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kit.world import wait_for
from tests.processes.crew import Crew
from tests.processes.stories import sound

TICKETS = 20
LOST = 17  # the ticket in whose midst its station dies


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_shift(world, record_property):
    world.limit(GONE_GRACE=200)
    crew = Crew(world)
    expo, sous, ann = crew.expo, crew.sous, crew.ann
    crew.listen(*crew.agents)
    due: Counter[str] = Counter()

    for number in range(TICKETS):
        ticket = compose(crew, number)
        due[expo.id] += 1
        station = crew.stations[number % len(crew.stations)]
        if not station.client.alive:
            station = crew.stations[0]
        assign(crew, ticket, station)
        due[station.id] += 1
        station.tt("tickets", "start", ticket).ok()
        if number in (3, 8):
            ask(crew, station, number, due)
        if number == LOST:
            station = lose(crew, ticket, station)
            due[station.id] += 1
        give_back(crew, ticket, station)
        due[sous.id] += 1
        sous.tt("tickets", "done", ticket).ok()
        station.tt("tickets", "start", ticket).failed("ticket_conflict")

    states = {row["state"] for row in world.rows("SELECT state FROM tickets WHERE kind = 'ticket'")}
    assert states == {"done"}
    assert not expo.tt("tickets", "--json").ok().json["tickets"]
    assert len(expo.tt("tickets", "list", "--all", "--json").ok().json["tickets"]) == TICKETS
    assert not ann.tt("asks", "--json").ok().json["asks"]
    totals = expo.tt("wakes", "--last", "24h", "--json").ok().json["totals"]
    counted = {agent: mine["wakes"] for agent, mine in totals.items() if mine["wakes"]}
    names = {agent.id: agent.name for agent in crew.agents}
    record_property("wakes", {names[agent]: count for agent, count in counted.items()})
    print("wakes:", {names[agent]: count for agent, count in counted.items()})
    assert counted == dict(due)
    crew.stop()
    sound(world)


def compose(crew, number: int) -> str:
    """The sous composes; the expo, and nobody else, hears of it."""
    made = crew.sous.tt("delegate", f"task {number}", "--body", f"do the {number}th thing", "--json").ok().json
    assert (made["state"], made["assignee"], made["delivery_status"]) == ("queued", None, "receiver")
    (heard,) = crew.heard(crew.expo)
    assert (heard["type"], heard["ticket_id"], heard["state"]) == ("ticket", made["ticket_id"], "queued")
    return made["ticket_id"]


def assign(crew, ticket: str, station) -> None:
    """The expo gives it to a station."""
    name = f"station-{crew.stations.index(station) + 1}"
    told = crew.expo.tt("tickets", "assign", ticket, "--to", name, "--json").ok().json
    assert (told["state"], told["assignee"]) == ("assigned", name)
    (heard,) = crew.heard(station)
    assert (heard["ticket_id"], heard["state"], heard["to"]) == (ticket, "assigned", name)


def give_back(crew, ticket: str, station) -> None:
    """The station returns it; whoever composed it hears the result."""
    station.tt("tickets", "return", ticket, "--result", f"result of {ticket}").ok()
    (heard,) = crew.heard(crew.sous)
    assert (heard["state"], heard["to"]) == ("returned", "you")
    assert f"result of {ticket}" in heard["text"]


def ask(crew, station, number: int, due: Counter) -> None:
    """A question goes up; the expo hands it to people; two answer at once, and the loser is told."""
    asked = station.tt("ask", f"how about {number}?", "--option", "yes:at once", "--option", "no", "--json").ok().json
    assert asked["assignee"] == "expo"
    (heard,) = crew.heard(crew.expo)
    assert [option["label"] for option in heard["options"]] == ["yes", "no"]
    due[crew.expo.id] += 1
    crew.expo.tt("asks", "escalate", asked["ask_id"]).ok()
    waits = crew.ann.tt("asks", "--human", "--json").ok().json["asks"]
    assert [one["ask_id"] for one in waits] == [asked["ask_id"]]
    both = [crew.ann, crew.expo]
    runs = [agent.start("answer", asked["ask_id"], "--choose", "yes", "--json") for agent in both]
    done = [run.wait(30) for run in runs]
    (won,) = [one for one in done if one.code == 0]
    (lost,) = [one for one in done if one.code]
    winner = both[done.index(won)]
    assert lost.failed("ask_answered").error["answer"] == "yes"
    assert lost.error["answered_by"] == winner.id
    (heard,) = crew.heard(station)
    due[station.id] += 1
    assert (heard["type"], heard["from"], heard["result_by"]) == ("answer", winner.id, winner.id)
    assert "yes" in heard["text"]


def lose(crew, ticket: str, station):
    """The station dies in the middle; its ticket shows as stalled, and another one gets it."""
    crew.waits.pop(station.name).kill()
    station.die()

    def stalled():
        shown = crew.expo.tt("tickets", "show", ticket, "--json").ok().json
        return shown["stalled"] and shown["state"] == "in_progress"

    before = crew.world.rows("SELECT * FROM tickets WHERE id = ?", ticket)
    wait_for(stalled, 20, "a stalled ticket")
    (peer,) = [one for one in crew.expo.tt("board", "--json").ok().json["peers"] if one["agent_id"] == station.id]
    assert peer["state"] == "offline"
    assert [tuple(row) for row in crew.world.rows("SELECT * FROM tickets WHERE id = ?", ticket)] == [
        tuple(row) for row in before
    ], "a look has changed it"
    other = crew.stations[(crew.stations.index(station) + 1) % len(crew.stations)]
    assign(crew, ticket, other)
    other.tt("tickets", "start", ticket).ok()
    return other
