"""The light reader and click read every call alike, or the light reader leaves it alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus.errors import BusError
from tt import app, grammar, quick, table

HOT = [command for command in table.COMMANDS if command.hot]
WORDS = st.one_of(
    st.sampled_from(["", "-", "--", "-x", "--json", "--=x", "--bogus", "a=b", "room", "next", "5", "ü", "--agent"]),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
)


def by_click(argv):
    seen = []

    def invoke(command, raw):
        seen.append((command, raw))
        return 0

    app.run(list(argv), invoke)
    (found,) = seen
    return found


@st.composite
def calls(draw):
    """Words of a command, its options in any way of writing them, and now and then noise."""
    command = draw(st.sampled_from(table.COMMANDS))
    words = list(draw(st.sampled_from([command.words, *((*command.words[:-1], name) for name in command.aliases)])))
    pieces = [[draw(WORDS)] for argument in command.arguments if argument.required or draw(st.booleans())]
    for option in draw(st.lists(st.sampled_from(grammar.options_of(command)), max_size=4)):
        if option.kind == "flag":
            pieces.append([option.flag])
        elif draw(st.booleans()):
            pieces.append([option.flag, draw(WORDS)])
        else:
            pieces.append([f"{option.flag}={draw(WORDS)}"])
    pieces += [[word] for word in draw(st.lists(WORDS, max_size=2))]
    return words + [part for piece in draw(st.permutations(pieces)) for part in piece]


@settings(max_examples=600, deadline=None)
@given(calls())
def test_both_readers_read_every_call_alike(argv):
    light = quick.read(argv)
    if light is None:
        return
    command, raw = by_click(argv)
    assert command is light[0]
    assert raw == light[1]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(WORDS, st.sampled_from(["wait", "try", "msg", "send", "--help", "-h"])), max_size=6))
def test_it_never_fails(argv):
    light = quick.read(argv)
    if light is not None:
        assert by_click(argv) == light


@pytest.mark.parametrize(
    "argv",
    [
        ["try"],
        ["try", "--json", "--park"],
        ["wait", ".", "--timeout", "5s", "--after=12", "--json"],
        ["msg", "send", "claude", "hello", "there", "--no-wake", "now"],
        ["msg", "send", "room", "--", "--not-an-option", "-x"],
        ["msg", "send", "room", "-"],
        ["msg", "reply", "42", "yes"],
        ["release", "--status", "-done-", "--next-action=", "--turn", "3"],
        ["pass", "codex", "--stdin"],
        ["assign", "next", ".", "--operator-requested", "--stdin"],
        ["state", "--agent", "claude:1", "--text"],
        ["inbox", "--peek", "--path", "/tmp"],
        ["standby", "--wake", "manual"],
        ["join", "--force-new"],
        ["leave", "--agent", "x", "--agent", "y"],
        ["events", "--event", "a", "--event", "b,c", "--limit", "3"],
    ],
    ids=" ".join,
)
def test_well_formed_hot_calls_need_no_click(argv):
    light = quick.read(argv)
    assert light is not None
    assert by_click(argv) == light


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--json", "try"],
        ["try", "--help"],
        ["wait", "-h"],
        ["wait", "--timeout"],
        ["try", "a", "b"],
        ["try", "--json=1"],
        ["try", "--bogus"],
        ["msg", "send"],
        ["msg"],
        ["schema"],
        ["release", "--path", "."],
    ],
    ids=" ".join,
)
def test_the_rest_is_left_to_click(argv):
    assert quick.read(argv) is None


def test_global_options_may_come_before_the_words():
    command, raw = by_click(["--json", "--agent", "a:1", "msg", "--path", "/x", "send", "room", "hi"])
    assert command.title == "msg send"
    assert (raw["json"], raw["agent"], raw["path"], raw["body"]) == (True, "a:1", "/x", ("hi",))
    assert by_click(["--agent", "a:1", "try", "--agent", "b:2"])[1]["agent"] == "b:2"


@pytest.mark.parametrize("argv", [["release", "--path", "."], ["--path", ".", "release"], ["join", "--path", "."]])
def test_path_is_a_usage_error_where_it_is_an_argument(argv):
    with pytest.raises(BusError) as caught:
        by_click(argv)
    assert caught.value.code == "usage"


SLOW = """
click typing enum dataclasses pathlib subprocess logging uuid tempfile shutil contextlib
orjson psutil watchdog
"""


@pytest.mark.parametrize("command", HOT, ids=[command.title for command in HOT])
def test_reading_a_hot_verb_loads_nothing_slow(command):
    argv = [
        *command.words,
        *("1" if argument.kind == "int" else "x" for argument in command.arguments if argument.required),
    ]
    code = "import sys; from tt import grammar, main, quick; "
    code += f"grammar.finish(*quick.read({argv!r})); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert not set(SLOW.split()) & set(done.stdout.split())
    assert not {name for name in done.stdout.split() if name.startswith("tt.commands")}
