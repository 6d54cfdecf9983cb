"""Who may not say or delegate something leaves nothing on disk, whatever it calls itself and wherever it stands."""

from __future__ import annotations

import os

import pytest

from tests.processes.crew import Crew, disk, refused
from tests.processes.stories import texts, unread


@pytest.fixture
def crew(world):
    return Crew(world, 2, sous=False)


def made_up(crew):
    return crew.stations[0], {"env": {"TT_HARNESS_AGENT_ID": "hands:expo"}}


def from_a_subfolder(crew):
    folder = os.path.join(crew.paths[0], "expo", "deep")
    os.makedirs(folder)
    return crew.stations[0], {"cwd": folder}


def from_the_main_checkout(crew):
    return crew.stations[0], {"cwd": crew.repo}


def by_a_new_name_from_the_main_checkout(crew):
    return crew.stations[0], {"cwd": crew.repo, "env": {"TT_HARNESS_AGENT_ID": "hands:new"}}


def from_a_renamed_folder(crew):
    moved = os.path.join(os.path.dirname(crew.paths[0]), "expo")
    crew.world.git(crew.repo, "worktree", "move", crew.paths[0], moved)
    return crew.stations[0], {"cwd": moved}


def a_stranger_in_a_renamed_folder(crew):
    moved = os.path.join(os.path.dirname(crew.paths[0]), "expo")
    crew.world.git(crew.repo, "worktree", "move", crew.paths[0], moved)
    return crew.world.agent("stranger", moved), {}


def in_a_worktree_called_expo(crew):
    return crew.world.agent("other", crew.world.worktree(crew.repo, "expo")), {}


WAYS = [
    made_up,
    from_a_subfolder,
    from_the_main_checkout,
    by_a_new_name_from_the_main_checkout,
    from_a_renamed_folder,
    a_stranger_in_a_renamed_folder,
    in_a_worktree_called_expo,
]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_around_the_hub(crew, way):
    agent, how = way(crew)
    other = crew.stations[1]
    for words in (
        ["msg", "send", "station-2", "psst"],
        ["msg", "send", other.id, "psst"],
        ["msg", "send", other.id, "psst", "--interrupt"],
        ["msg", "send", "bus", "all of you"],
    ):
        refused(agent, "topology_refused", *words, **how)
    no_delegation(agent, **how)
    assert unread(crew.world, other) == []
    crew.ann.tt("config", "set", "topology", "open").ok()
    no_delegation(agent, **how)
    assert agent.tt("msg", "send", "station-2", "now it may", **how).ok()
    assert texts(other.tt("inbox").ok().json) == ["now it may"]


@pytest.mark.slow
def test_an_agent_cannot_call_itself_a_person(crew):
    agent = crew.stations[0]
    for how in ({"env": {"TT_HARNESS_AGENT_ID": "human:ann"}}, {}):
        chosen = [] if how else ["--agent", "human:ann"]
        for words in (
            ["msg", "send", "station-2", "psst"],
            ["delegate", "work"],
            ["config", "set", "topology", "open"],
        ):
            refused(agent, "agent_id_required", *words, *chosen, **how)


def no_delegation(agent, **how):
    for words in (["delegate", "work"], ["delegate", "work", "--to", "station-2"]):
        refused(agent, "delegation_refused", *words, **how)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TT_STATION", "HANDS_ID"])
def test_a_variable_makes_nobody_the_expo(crew, name):
    agent = crew.stations[0]
    for words in (["delegate", "work", "--to", "station-2"], ["msg", "send", "station-2", "psst"], ["inbox"]):
        error = refused(agent, "not_permitted", *words, env={name: "expo"})
        assert (error["claimed"], error["station"]) == ("expo", "station-1")
    refused(agent, "topology_refused", "msg", "send", "station-2", "psst", env={name: "station-1"})


@pytest.mark.slow
def test_a_path_gives_no_right(crew):
    agent = crew.stations[0]
    for path in (crew.repo, crew.paths[1]):
        refused(agent, "delegation_refused", "delegate", "work", "--path", path)
        refused(agent, "topology_refused", "msg", "send", "station-2", "psst", "--path", path)
        refused(agent, "not_permitted", "stations", "add", "--path", path)
        refused(agent, "not_permitted", "config", "set", "topology", "open", "--path", path)
    assert len(os.listdir(os.path.dirname(crew.paths[0]))) == 2


@pytest.mark.slow
def test_the_halves_of_delegation(crew):
    expo, sous = crew.expo, crew.stations[1]
    refused(expo, "delegation_refused", "delegate", "mine to assign")
    crew.ann.tt("config", "set", "sous", "station-2").ok()
    refused(sous, "delegation_refused", "delegate", "mine to compose", "--to", "station-1")
    for whom in ("*", "station-42", "free text", "", "nobody"):
        refused(expo, "unknown_recipient", "delegate", "x", "--to", whom)
    sous.tt("delegate", "composed").ok()
    expo.tt("delegate", "assigned", "--to", "station-1").ok()
    for words in (["delegate", "both"], ["delegate", "both", "--to", "station-1"]):
        crew.ann.tt(*words).ok()


@pytest.mark.slow
def test_what_stays_allowed(crew):
    first, second = crew.stations
    mate = crew.world.agent("mate", crew.paths[0])
    mate.tt("join").ok()
    first.tt("msg", "send", mate.id, "one station").ok()
    first.tt("msg", "send", "room", "my own room").ok()
    first.tt("msg", "send", "expo", "to the expo").ok()
    first.tt("msg", "send", crew.ann.id, "to a person").ok()
    crew.expo.tt("msg", "send", "station-2", "from the expo").ok()
    crew.expo.tt("msg", "send", "bus", "to all").ok()
    assert texts(second.tt("inbox").ok().json) == ["from the expo", "to all"]
    assert texts(mate.tt("inbox").ok().json) == ["one station", "my own room", "to all"]


@pytest.mark.slow
def test_linked_worktrees_without_managed_ones_talk_freely(world):
    repo = world.repo()
    one, two = (world.agent(name, world.worktree(repo, name)) for name in ("left", "right"))
    for agent in (one, two):
        agent.tt("join").ok()
    assert one.tt("stations", "--json").ok().json["topology"] == "open"
    one.tt("msg", "send", "right", "by station").ok()
    one.tt("msg", "send", two.id, "by id").ok()
    one.tt("msg", "send", "bus", "to all").ok()
    assert texts(two.tt("inbox").ok().json) == ["by station", "by id", "to all"]
    before = disk(world)
    one.tt("delegate", "still not", "--json").failed("delegation_refused")
    assert disk(world) == before


@pytest.mark.slow
def test_a_station_that_could_not_be_made_changes_nothing(world):
    folder = world.folder("empty")
    world.git(folder, "init", "-q", "-b", "main")
    ann = world.person("ann", folder)
    ann.tt("stations", "add", "--json").failed("invalid_input")
    listed = ann.tt("stations", "--json").ok().json
    assert (listed["topology"], listed["stations"]) == ("open", [])
