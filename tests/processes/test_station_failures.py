"""Failures that users of systems of this kind had: for each one the test that keeps it away, or why it can't happen."""

from __future__ import annotations

import importlib
import json
import os
import re

import pytest

from hooks import subagent_stop
from tests.kit.desk import Desk
from tests.meta.sources import sources
from tests.processes.crew import Crew
from tests.processes.stories import events, texts
from tests.processes.test_flood import prompted

HERE, TASKS, STATIONS = "processes.test_station_failures", "operations.test_tasks", "operations.test_stations"
BOARD, JOURNAL, SHIFT = "operations.test_board", "operations.test_journal", "processes.test_shift"
FLOOD, REFUSALS, MAIL = "processes.test_flood", "processes.test_refusals", "processes.test_station_mail"
MUST, RACES = "processes.test_must_show", "processes.test_races"

# what went wrong | where the test of it is
TESTED = f"""
a finished ticket comes back to life | {TASKS}:test_a_cancelled_one_stays_cancelled
an old look changes what others have now | {TASKS}:test_a_return_that_comes_after_the_ticket_changed_hands
eight change one ticket at once | {TASKS}:test_eight_who_change_one_ticket_at_once
of two answers the last one wins, silently | {SHIFT}:test_a_shift
the dead look online for a quarter of an hour | {BOARD}:TestStates.test_the_dead_are_offline_at_once
whoever lost its listener looks idle | {BOARD}:TestStates.test_deaf_as_soon_as_its_listener_ends
cleaning up kills strangers by their command line | {HERE}:test_nothing_is_killed_or_searched_by_name
a health check makes the system ask for rights | {HERE}:test_nothing_is_killed_or_searched_by_name
receiving fills the log with bookkeeping | {HERE}:test_receiving_is_no_event
another address of the remote orphans the history | {HERE}:test_a_new_remote_changes_nothing
a variable makes two sessions one | {REFUSALS}:test_a_variable_makes_nobody_the_expo
two sessions write over each other | {RACES}:test_of_two_granters_one_wins_and_the_losers_guardian_ends
a claim names a process that ends at once | {MUST}:test_a_blocked_peer_is_handed_the_turn_of_a_killed_holder
nobody hears of a ticket without assignee | {TASKS}:test_the_whole_way
a restarted station doesn't find its work | {TASKS}:test_stalled_is_derived_and_work_goes_on_at_the_station
work that nobody does looks alive | {TASKS}:test_stalled_is_derived_and_work_goes_on_at_the_station
a look parks a ticket | {SHIFT}:test_a_shift
our own file keeps a station from removal | {STATIONS}:TestRemove.test_a_seed_that_a_global_ignore_does_not_hide
names of files are changed by a sanitiser | unit.test_ids:test_file_name_round_trip_and_safety
an id leads out of its folder | unit.test_ids:test_foreign_file_names
a question without options can't be answered | {TASKS}:TestAsks.test_free_text_is_always_possible
a mistyped name is recorded | {TASKS}:test_refused
an unknown station counts as delivered | {REFUSALS}:test_the_halves_of_delegation
the accounts fail and a done send is an error | cli.test_run:test_after_the_commit_nothing_changes_the_exit_code
a folder is missing at first use | {STATIONS}:TestAdd.test_worktree_branch_seed_and_topology
a path with spaces or a link ends the program | {HERE}:test_a_path_with_spaces_and_a_link
tokens are counted several times | {HERE}:test_tokens_are_counted_once_for_each_message
woken is said although nobody listens | {HERE}:test_nobody_listens_is_said
tests read the real settings of the developer | meta.test_isolation:test_home_and_data_are_scratch
old stations keep no or old permissions | {HERE}:test_a_lost_seed_comes_back_and_a_changed_one_stays
what we write into a station sets more than it should | {HERE}:test_a_lost_seed_comes_back_and_a_changed_one_stays
a cancelled wait loses what it had read | {MUST}:test_a_message_that_a_killed_wait_did_not_mark_comes_again
a closed output loses what it had read | {MUST}:test_a_message_that_could_not_be_printed_comes_again
after a wait the next mail wakes nobody | {MUST}:test_no_message_is_left_without_a_wake_while_waits_come_and_go
a quick reader loses a wake | {RACES}:test_a_message_between_a_waits_read_and_its_end_is_woken_anew
what was settled unread holds the next wake back | {HERE}:test_what_was_acted_on_holds_no_wake_back
ten questions are ten wakes | {TASKS}:TestAsks.test_ten_asks_while_the_expo_reads_none_are_one_wake
the second of two sessions never sees the mail | {HERE}:test_a_broadcast_reaches_both_sessions_of_a_place
of two sessions both do the same | {MAIL}:test_a_question_to_the_expo_is_for_one_of_two
a name goes around the hub | {REFUSALS}:test_no_way_around_the_hub
two projects share a bus | unit.test_places
the name changes with the folder one stands in | {STATIONS}:TestNames.test_of_a_subfolder_and_of_a_room_in_it
our own files make new stations collide | {FLOOD}:test_a_silent_board_says_and_writes_nothing
of several collisions one is shown | {BOARD}:TestDelta.test_collisions_are_told_once_all_of_them
what was drained is shown again | {BOARD}:TestDelta.test_what_was_drained_is_not_shown_again
of many entries the oldest are shown for ever | {FLOOD}:test_300_entries_between_two_prompts
mail from before the first prompt is never shown | {BOARD}:TestDelta.test_mail_before_the_first_look_is_shown
a body forges lines, or fills the prompt | {FLOOD}:test_no_body_forges_a_line
a first receive returns all that ever was | {HERE}:test_the_inbox_of_a_newcomer_begins_now
one result has megabytes | {FLOOD}:test_40000_unread_messages
a failed line in the notify file is not told | {HERE}:test_a_notify_file_that_cannot_be_written_is_told
a hook's own process makes its agent look dead | {HERE}:test_a_hook_is_not_its_agent
the hash changes with time, not with facts | {FLOOD}:test_the_hash_changes_with_each_fact_and_with_nothing_else
the hash sees a hundred tickets | {BOARD}:TestHash.test_more_tickets_than_a_page
a project's folder name is made in two ways | {JOURNAL}:test_the_folder_of_a_project
what is written to a person has no reader | {HERE}:test_what_is_written_to_a_person_waits_for_it
nothing new makes a new entry | {JOURNAL}:TestPublish.test_two_sessions_of_one_worktree_say_it_once
"""

# what went wrong elsewhere | why it can't here
CANNOT_HAPPEN = """
a dashboard's end kills servers | there is no server of ours, and nothing is killed by a pattern (tested)
a scan of processes misses a living one | a listener lives while it holds its lock; no table is scanned (tested)
a stuck synchronisation looks quiet | nothing is synchronised between machines yet
a page or mirror far behind looks empty | there are no pages and no mirror of a repository
forced synchronisation with nothing new is an error | there is none
machines conflict over rendered pages | nothing is rendered into files that travel
several panes push at once and fail | no hook commits or pushes
many write one shared file and lose lines | what is shared is rows of a database, changed in transactions
an old build serves for weeks | hooks and commands are started anew each time; no server keeps old code
a page is blank for want of its files | there is no page
one station reads of another's business in a ticket | tickets are open to everybody on a bus, by rule
two places decide differently who can be reached | `present.reach` is the one definition that all use
a board waits 50 ms for each deaf station | probing a lock takes microseconds, and nothing is tried again
a restore loses or mixes up what it restores | nothing is restored from a log; ids are random
"""


def rows(text: str) -> dict[str, str]:
    """`left | right` of each line."""
    parts = [line.partition("|") for line in text.strip().splitlines()]
    return {left.strip(): right.strip() for left, _, right in parts}


@pytest.mark.parametrize(("failure", "where"), rows(TESTED).items(), ids=rows(TESTED))
def test_each_has_its_test(failure, where):
    module, _, name = where.partition(":")
    found = importlib.import_module(f"tests.{module}")
    for part in name.split(".") if name else []:
        found = getattr(found, part)


def test_each_that_has_none_says_why():
    assert all(rows(CANNOT_HAPPEN).values())
    assert not set(rows(TESTED)) & set(rows(CANNOT_HAPPEN))


def test_nothing_is_killed_or_searched_by_name():
    forbidden = re.compile(r"\b(pkill|killall|lsof|pgrep|process_iter|net_connections)\b")
    found = [path for path, text in sources().items() if forbidden.search(text)]
    assert set(found) <= {"tt/demo_world.py"}, "the demo looks for what carries its own scratch folder, nothing else"


def test_receiving_is_no_event(world):
    crew = Crew(world, 1, sous=False)
    crew.expo.tt("msg", "send", "station-1", "hello").ok()
    before = len(events(world))
    crew.stations[0].tt("inbox").ok()
    crew.stations[0].tt("board").ok()
    assert len(events(world)) == before


def test_a_new_remote_changes_nothing(world):
    repo = world.repo()
    world.git(repo, "remote", "add", "origin", "https://one.example/x.git")
    agent = world.agent("ann", repo)
    before = agent.tt("join", "--json").ok().json["bus"]
    world.git(repo, "remote", "set-url", "origin", "https://two.example/y.git")
    assert agent.tt("join", "--json").ok().json["bus"] == before


def test_a_path_with_spaces_and_a_link(world):
    repo = world.repo("a repo (1)")
    os.symlink(repo, os.path.join(world.top, "link"))
    ann = world.person("ann", os.path.join(world.top, "link"))
    made = ann.tt("stations", "add", "--json").ok().json["stations"][0]["path"]
    agent = world.agent("one", made)
    assert agent.tt("join", "--json").ok().json["station"] == "station-1"
    assert agent.tt("tickets", "--json").ok().json["tickets"] == []
    ann.tt("stations", "remove", "station-1").ok()


def test_tokens_are_counted_once_for_each_message(tmp_path):
    path = tmp_path / "agent.jsonl"
    samples = [("m1", 5), ("m1", 9), ("m2", 4), ("m1", 9)]
    path.write_text("\n".join(json.dumps({"message": {"id": m, "usage": {"output_tokens": n}}}) for m, n in samples))
    assert subagent_stop.output_tokens(str(path)) == 13


def test_nobody_listens_is_said(world):
    crew = Crew(world, 1)
    told = crew.sous.tt("delegate", "work", "--json").ok().json
    assert (told["delivery_status"], told["reason"]) == ("unreachable", "nothing is listening for it")
    crew.expo.die()
    assert crew.sous.tt("delegate", "more", "--json").ok().json["delivery_status"] == "waiting"


def test_a_lost_seed_comes_back_and_a_changed_one_stays(world):
    crew = Crew(world, 2, sous=False)
    lost, kept = (os.path.join(path, ".claude", "settings.local.json") for path in crew.paths)
    with open(lost, encoding="utf-8") as file:
        assert set(json.load(file)) == {"permissions"}
    os.unlink(lost)
    world.write(crew.paths[1], ".claude/settings.local.json", '{"mine": 1}')
    crew.ann.tt("stations", "add").ok()
    assert os.path.exists(lost)
    with open(kept, encoding="utf-8") as file:
        assert file.read() == '{"mine": 1}'


def test_what_was_acted_on_holds_no_wake_back(tmp_path, monkeypatch):
    from bus.operations import tasks
    from tests.kit.desk import A, B

    desk = Desk(tmp_path, monkeypatch)
    desk.stations.update({A: "expo", B: "station-1"})
    desk.join(A, B)
    for agent in (A, B):
        desk.inbox(agent)
    desk.listen(A, "monitor")
    for number in range(3):
        asked = desk.do(B, tasks.ask, f"question {number}?")
        assert asked["delivery_status"] == "monitor", number
        desk.do(A, tasks.answer, asked["ask_id"], "yes")
    assert desk.inbox(A) == []
    desk.close()


def test_a_broadcast_reaches_both_sessions_of_a_place(world):
    crew = Crew(world, 1, sous=False)
    second = world.agent("second", crew.repo)
    second.tt("join").ok()
    crew.ann.tt("msg", "send", "bus", "to all").ok()
    assert [texts(agent.tt("inbox").ok().json) for agent in (crew.expo, second)] == [["to all"], ["to all"]]


def test_the_inbox_of_a_newcomer_begins_now(world):
    crew = Crew(world, 1, sous=False)
    crew.expo.tt("msg", "send", "bus", "long ago").ok()
    new = world.agent("new", crew.paths[0])
    new.tt("join").ok()
    assert texts(new.tt("inbox").ok().json) == []


def test_a_notify_file_that_cannot_be_written_is_told(world):
    from bus import ids

    crew = Crew(world, 1, sous=False)
    os.makedirs(os.path.join(world.bus(), ids.file_name(crew.expo.id) + ".notify"))
    told = crew.stations[0].tt("ask", "anybody?", "--json").ok().json
    assert (told["delivery_status"], told["reason"]) == ("unreachable", "the notify file cannot be written")


def test_a_hook_is_not_its_agent(world):
    crew = Crew(world, 1, sous=False)
    one = crew.stations[0]
    prompted(one)
    (peer,) = crew.expo.tt("board", "--json").ok().json["peers"]
    assert (peer["agent_id"], peer["state"]) == (one.id, "deaf")


def test_what_is_written_to_a_person_waits_for_it(world):
    crew = Crew(world, 1, sous=False)
    crew.stations[0].tt("msg", "send", "human", "for the principal").ok()
    crew.stations[0].tt("ask", "and you?", "--to", "human").ok()
    assert len(crew.ann.tt("asks", "--human", "--json").ok().json["asks"]) == 1
    assert texts(crew.ann.tt("inbox", "--json").ok().json) == ["for the principal"]
    assert texts(crew.ann.tt("inbox", "--json").ok().json) == []
