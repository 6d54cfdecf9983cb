"""The open-turn mark: small, atomic, silent about what it can't read."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import bell, limits, marks
from bus.marks import Mark
from bus.store.db import Bus

ME = "claude:aa"


@pytest.fixture(scope="module")
def bus(tmp_path_factory):
    return Bus(str(tmp_path_factory.mktemp("bus")), None)


def path(bus) -> str:
    return os.path.join(bus.agent_bell(ME), "turn")


def test_a_session_whose_hooks_were_never_seen_has_a_closed_turn(tmp_path):
    assert marks.read(Bus(str(tmp_path), None), ME) == Mark()
    assert not Mark().is_open(1)


@given(
    st.booleans(),
    st.integers(0, 1 << 50),
    st.text(max_size=200),
    st.text(max_size=200),
    st.integers(0, 1 << 50),
)
def test_what_is_written_is_read(bus, opened, at, prompt, blocked, person_at):
    assert marks.write(bus, ME, Mark(opened, at, prompt, blocked, person_at))
    found = marks.read(bus, ME)
    assert (found.opened, found.at, found.person_at) == (opened, at, person_at)
    assert marks.word(found.blocked) == marks.word(blocked)
    again = marks.read(bus, ME)
    assert marks.write(bus, ME, again)
    assert marks.read(bus, ME) == found


@given(st.text(max_size=150), st.text(max_size=150))
def test_two_prompts_are_two_words(one, other):
    assert (marks.word(one) == marks.word(other)) == (one == other or {one, other} <= {"", marks.NOTHING})


def test_ids_as_clients_give_them_stay_as_they_are():
    for text in ("2b0c1d2e-0000-4000-8000-aabbccddeeff", "turn_9.a:b"):
        assert marks.word(text) == text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"open",
        b"open x - - 0",
        b"open 1 - - y",
        b"open 1 2 3 4 5 6",
        "open ² - - 0".encode(),
        b"open -1 - - 0",
        b"\xff\xfe\x00",
        b"open 1" * 5000,
    ],
)
def test_a_broken_mark_is_a_closed_turn(bus, text):
    os.makedirs(bus.agent_bell(ME), exist_ok=True)
    with open(path(bus), "wb") as file:
        file.write(text)
    assert not marks.read(bus, ME).is_open(5)


def test_an_old_mark_counts_as_closed():
    mark = Mark(True, 1000)
    assert mark.is_open(1000)
    assert mark.is_open(mark.closes_at() - 1)
    assert not mark.is_open(mark.closes_at())
    assert mark.closes_at() == 1000 + limits.OPEN_TURN


def test_writing_rings_and_leaves_nothing_behind(bus, monkeypatch):
    rang: list[str] = []
    monkeypatch.setattr(bell, "ring", rang.append)
    marks.write(bus, ME, Mark(True, 1))
    assert rang == [bus.agent_bell(ME)]
    assert [name for name in os.listdir(bus.agent_bell(ME)) if name.startswith("turn")] == ["turn"]
    assert os.stat(path(bus)).st_mode & 0o077 == 0


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "bell").write_text("a file")
    assert not marks.write(Bus(str(tmp_path), None), ME, Mark(True, 1))
