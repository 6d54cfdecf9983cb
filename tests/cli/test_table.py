"""The table of commands is complete and means what it says."""

from __future__ import annotations

import importlib.util
import os
import re

import pytest

from bus.errors import CODES, BusError
from tt import grammar, pages, schema, table, text

SCOPE = [
    *["whoami", "list", "join", "leave", "wait", "standby", "try", "state", "health", "events", "kick"],
    *["release", "pass", "assign", "take", "wakes", "inbox", "focus", "schema", "completion", "demo"],
    *["ack", "monitor", "hook"],
    *["install", "uninstall", "self-update"],
    *[f"instructions {word}" for word in ("show", "edit", "update", "reset")],
    "msg send",
    "msg recv",
    "msg reply",
    "notes add",
    "notes list",
    "notes resolve",
    "config get",
    "config set",
    "config list",
    *[f"stations {word}" for word in ("list", "add", "remove", "attach")],
    *[f"tickets {word}" for word in ("list", "show", "assign", "start", "return", "done", "cancel")],
    *["delegate", "ask", "answer", "asks list", "asks escalate", "journal", "board", "usage"],
]
IDS = [command.title for command in table.COMMANDS]


def call(title, **raw):
    command = table.find(tuple(title.split()))
    return grammar.finish(command, {**grammar.blank(command), **raw})


def test_every_command_of_the_scope_is_there_once():
    assert sorted(IDS) == sorted(SCOPE)


def test_aliases_are_found():
    assert table.find(("status",)).title == "health"
    assert table.find(("takeover",)).title == "take"
    assert table.find(("msg",)) is None
    assert table.find(("nonsense",)) is None


def test_every_command_has_a_page_a_schema_and_a_group():
    assert set(pages.PAGES) == set(IDS)
    assert set(schema.SHAPES) == set(IDS) - {"completion", "demo", "hook"}
    assert set(text._RENDERERS) == set(IDS) - {"completion", "demo", "hook"}
    assert {command.words[0] for command in table.COMMANDS if len(command.words) == 2} == set(table.GROUPS)
    assert set(pages.GROUPS) == set(table.GROUPS)


@pytest.mark.parametrize("command", table.COMMANDS, ids=IDS)
def test_names_do_not_clash_and_codes_exist(command):
    names = [argument.name for argument in command.arguments]
    names += [option.name for option in grammar.options_of(command)]
    assert len(names) == len(set(names))
    assert {spec.error for spec in (*command.arguments, *command.options)} <= set(CODES)
    assert command.exclusive_error in CODES
    assert all(not argument.many for argument in command.arguments[:-1])
    for group in command.exclusive:
        assert set(group) <= set(names)


@pytest.mark.parametrize("command", table.COMMANDS, ids=IDS)
def test_one_line_help_is_one_short_line(command):
    assert re.fullmatch(r"[A-Z][^\n]{5,70}[^.\n]", command.help)


@pytest.mark.parametrize("command", table.COMMANDS, ids=IDS)
def test_the_handler_exists(command):
    module, _, name = command.handler.partition(":")
    path = os.path.join(os.path.dirname(table.__file__), "..", *module.split(".")) + ".py"
    if module == "tt.demo" and not os.path.exists(path):
        pytest.skip("not written yet")
    found = importlib.util.find_spec(module)
    assert found is not None
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("command", table.COMMANDS, ids=IDS)
def test_a_blank_call_has_every_key(command):
    raw = grammar.blank(command)
    expected = {argument.name for argument in command.arguments}
    expected |= {option.name for option in (*grammar.GLOBALS, *command.options)}
    assert set(raw) == expected
    if not any(argument.required for argument in command.arguments):
        assert set(grammar.finish(command, raw)) == expected | {"command"}


@pytest.mark.parametrize(
    ("words", "length"),
    [("5", 5000), ("0", 0), ("100ms", 100), ("5s", 5000), ("2m", 120_000), ("1h", 3_600_000)],
)
def test_durations(words, length):
    assert call("wait", timeout=words)["timeout"] == length


@pytest.mark.parametrize(
    "words",
    ["", "s", "1.5", "-1", "5 s", "5S", "1h30m", "ms", "+3", "٣", "1_000", "9" * 30, "5d", "0x5", "\ud800"],
)
def test_other_durations_are_refused(words):
    with pytest.raises(BusError) as caught:
        call("wait", timeout=words)
    assert caught.value.code == "invalid_input"
    caught.value.message.encode()


@pytest.mark.parametrize(
    ("title", "name", "code"),
    [
        ("wait", "after", "invalid_cursor"),
        ("release", "turn", "invalid_turn_id"),
        ("events", "limit", "invalid_input"),
    ],
)
@pytest.mark.parametrize("words", ["", "x", "-1", "1.0", "100ms", "1_0", "٣", " 1", "9" * 19])
def test_numbers_are_strict(title, name, code, words):
    with pytest.raises(BusError) as caught:
        call(title, **{name: words})
    assert caught.value.code == code


def test_park_and_claim_exclude_each_other():
    with pytest.raises(BusError) as caught:
        call("wait", park=True, claim=True)
    assert caught.value.code == "invalid_wait_mode"
    with pytest.raises(BusError) as caught:
        call("events", wait=True, follow=True)
    assert caught.value.code == "usage"


def test_types_are_split_and_empty_ones_refused():
    assert call("events", event=("a, b", "c"))["event"] == ("a", "b", "c")
    for words in ("", "a,,b", ","):
        with pytest.raises(BusError) as caught:
            call("events", event=(words,))
        assert caught.value.code == "invalid_event_type_filter"


def test_choices_name_their_own_code():
    assert call("standby", wake="manual")["wake"] == "manual"
    with pytest.raises(BusError) as caught:
        call("standby", wake="telepathy")
    assert caught.value.code == "invalid_standby_transport"


def test_text_that_is_no_text_is_refused_but_paths_are_not():
    assert call("join", path="/tmp/\udcff")["path"] == "/tmp/\udcff"
    with pytest.raises(BusError) as caught:
        call("kick", target="\udcff")
    assert caught.value.code == "invalid_input"


def test_defaults_are_values_too():
    assert call("wakes")["last"] == 3_600_000
    assert call("events")["target"] == "self"


def test_schema_finds_what_is_missing_or_unknown():
    good = {
        "status": "left",
        "agent_id": "a:1",
        "room_id": 1,
        "path": "/",
        "remaining_members": [],
        "hint": "x",
    }
    assert schema.problems("leave", good) == []
    assert schema.problems("leave", {**good, "extra": 1, "hint": "y", "path": None}) == [
        "leave left: extra is unknown",
    ]
    del good["path"]
    assert schema.problems("leave", good) == ["leave left: path is missing"]
    assert schema.problems("leave", {"status": "gone"}) == ["leave: no status 'gone'"]
