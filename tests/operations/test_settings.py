"""Settings of the bus, which only a person changes, and what an agent says it is doing."""

from __future__ import annotations

import pytest

from bus import limits
from bus.operations import join, settings
from tests.kit.desk import ANN, A, B


@pytest.fixture
def one(desk):
    desk.stations[A] = "line-1"
    desk.join(A)
    return desk


def test_defaults(one):
    result = one.do(A, settings.get, "retention")
    assert (result["value"], result["default"]) == ("168", True)
    assert [row["key"] for row in one.do(A, settings.all_keys)["settings"]] == list(settings.KEYS)


@pytest.mark.parametrize(("given", "kept"), [("0", "0"), ("24", "24"), ("007", "7"), ("8760", "8760")])
def test_a_person_sets(one, given, kept):
    assert one.do(ANN, settings.put, "retention", given)["value"] == kept
    result = one.do(A, settings.get, "retention")
    assert (result["value"], result["default"]) == (kept, False)
    assert one.do(A, settings.all_keys)["settings"][0]["value"] == kept


@pytest.mark.parametrize(
    ("agent", "key", "value", "code"),
    [
        (A, "retention", "1", "not_permitted"),
        (ANN, "colour", "1", "unknown_config_key"),
        (ANN, "retention", "", "invalid_input"),
        (ANN, "retention", "-1", "invalid_input"),
        (ANN, "retention", "1.5", "invalid_input"),
        (ANN, "retention", "8761", "invalid_input"),
        (ANN, "retention", "9" * 50, "invalid_input"),
        (ANN, "retention", "0000000008761", "invalid_input"),
        (ANN, "retention", "٣", "invalid_input"),
        (ANN, "retention", "1 ", "invalid_input"),
    ],
)
def test_refused(one, agent, key, value, code):
    one.refused(agent, code, settings.put, key, value)


def test_unknown_key(one):
    error = one.refused(A, "unknown_config_key", settings.get, "x" * 500)
    assert "retention" in error.hint
    assert len(error.message) < 200


def test_focus(one):
    assert one.do(A, settings.focus)["focus"] is None
    assert one.do(A, settings.focus, "  the   parser\n")["focus"] == "the parser"
    assert one.do(A, settings.focus)["focus"] == "the parser"
    one.join(A)
    assert one.do(A, settings.focus)["focus"] == "the parser"
    assert one.do(A, settings.focus, clear=True)["focus"] is None


def test_a_person_speaks_for_a_station(one):
    assert one.do(ANN, settings.focus, "review", station="line-1")["agent_id"] == A
    assert one.do(A, settings.focus)["focus"] == "review"


@pytest.mark.parametrize(
    ("agent", "text", "station", "code"),
    [
        (A, "x" * (limits.FOCUS_CHARS + 1), None, "invalid_input"),
        (A, " \n ", None, "invalid_body"),
        (A, "x", "line-1", "not_permitted"),
        (ANN, "x", "nowhere", "station_not_found"),
    ],
)
def test_focus_refused(one, agent, text, station, code):
    one.refused(agent, code, settings.focus, text, station=station)


def test_a_station_that_everybody_left(one):
    one.join(B)
    one.do(A, join.leave)
    one.refused(ANN, "station_not_found", settings.focus, "x", station="line-1")
