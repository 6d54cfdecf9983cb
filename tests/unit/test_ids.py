"""Ids: the grammar refuses whatever could leave its place, and file names are a bijection."""

from __future__ import annotations

import os
import string

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bus import ids
from bus.errors import BusError

GOOD = ("claude:1a2b3c4d", "human:ann", "human:ann:chat:9f00", "x-1:a", "codex:A.b_c@d+e-f", "a::", "grok:..")
BAD = (
    *("", ":", "claude", "claude:", ":x", "Claude:x", "1a:x", "-a:x", "a_b:x", "claude: x", "claude:x y"),
    *("claude:x/y", "claude:\0", "claude:x\n", "claude:é", "claude:\ud800", "cläude:x", "claude:" + "x" * 90),
    *("claude:../../etc", "claude:x\\y", "claude:x=y", "claude:\u202ex", "claude:" + "A" * 85),
)
REST = string.ascii_letters + string.digits + "._@+-:"


@pytest.mark.parametrize("text", GOOD)
def test_good_agent_id_comes_back_unchanged(text):
    assert ids.check_agent_id(text) == text


@pytest.mark.parametrize("text", BAD)
def test_bad_agent_id_is_refused_by_code(text):
    with pytest.raises(BusError) as caught:
        ids.check_agent_id(text)
    assert caught.value.code == "invalid_input"
    assert caught.value.details == {"field": "agent_id"}
    assert caught.value.message.isascii() or "…" in caught.value.message


def test_longest_agent_id():
    assert ids.check_agent_id("claude:" + "x" * 89)
    with pytest.raises(BusError):
        ids.check_agent_id("claude:" + "x" * 90)


def test_refusal_of_something_huge_is_short():
    with pytest.raises(BusError) as caught:
        ids.check_agent_id("x" * 1_000_000)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("text", ["expo", "sous", "station-1", "a", "0", "x" * 64, "wt-room", "a.b_c-d", "a.."])
def test_good_station(text):
    assert ids.check_station(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        ".git",
        "-a",
        "_a",
        "A",
        "a b",
        "a/b",
        "x" * 65,
        "a\n",
        "é",
        "room",
        "bus",
        "all",
        "next",
        "a:b",
    ],
)
def test_bad_station_is_refused(text):
    with pytest.raises(BusError) as caught:
        ids.check_station(text)
    assert caught.value.code == "invalid_input"


def test_reserved_words():
    assert sorted(ids.RESERVED) == [*("all", "any", "bus", "everyone", "expo", "human", "next", "room", "self", "sous")]


@given(st.text())
@example("")
@example(".")
@example("..")
@example("=")
@example("=3d")
@example("\ud800")
@example("a/../b")
def test_file_name_round_trip_and_safety(text):
    name = ids.file_name(text)
    assert ids.from_file_name(name) == text
    assert set(name) <= set(string.ascii_lowercase + string.digits + "._-=")
    assert name
    assert not name.startswith(".")
    assert os.path.basename(name) == name


@given(st.text(max_size=8), st.text(max_size=8))
def test_two_texts_never_share_a_file_where_case_is_ignored(one, other):
    assume(one != other)
    assert ids.file_name(one).casefold() != ids.file_name(other).casefold()


@given(st.text(alphabet="=abAB0123.x3dD", max_size=10))
def test_from_file_name_takes_only_what_file_name_gives(name):
    try:
        text = ids.from_file_name(name)
    except BusError:
        return
    assert ids.file_name(text) == name


@pytest.mark.parametrize(
    "name", ["A", "=61", "=3D", "=", "==", "=3", "=zz", ".a", "a/b", "=ff", "x=", "é", "", "\ud800"]
)
def test_foreign_file_names(name):
    if name == "=":
        assert ids.from_file_name(name) == ""
        return
    with pytest.raises(BusError):
        ids.from_file_name(name)


@given(
    st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=10),
    st.text(alphabet=REST, min_size=1, max_size=85),
)
def test_every_accepted_id_fits_a_file_system(kind, rest):
    text = f"{kind}:{rest}"
    try:
        ids.check_agent_id(text)
    except BusError:
        assert len(ids.file_name(text)) > ids.FILE_NAME_BYTES
    assert ids.from_file_name(ids.file_name(text)) == text


def test_new_ids_are_random_hex():
    made = {ids.new_id("ev-") for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(one) == 19 and one.startswith("ev-") and int(one[3:], 16) >= 0 for one in made)
    assert len(ids.new_id("", 4)) == 8


def test_is_kind():
    assert ids.is_kind("claude-2")
    assert not any(map(ids.is_kind, ("", "2a", "A", "a:", "-")))
