"""Who may say and hand out what: every pair of roles, in both topologies."""

from __future__ import annotations

import pytest

from bus.rules import roles
from bus.rules.roles import EXPO, OPEN, PERSON, SOUS, STATION, STRICT, Actor


@pytest.mark.parametrize(
    ("person", "station", "me", "sous", "expected"),
    [
        (True, None, "human:ann", None, PERSON),
        (True, "station-1", "human:ann", "station-1", PERSON),
        (False, "expo", "claude:a", None, EXPO),
        (False, "expo", "claude:a", "claude:a", SOUS),
        (False, "expo", "claude:b", "claude:a", EXPO),
        (False, "sous", "claude:a", "claude:a", SOUS),
        (False, "station-2", "claude:a", "station-2", SOUS),
        (False, "station-1", "claude:a", "station-2", STATION),
        (False, "wt-expo", "claude:a", None, STATION),
        (False, "wt-sous", "claude:a", None, STATION),
        (False, None, "claude:a", None, STATION),
        (False, None, "human:ann", None, STATION),
        (False, "", "expo", None, STATION),
    ],
)
def test_role(person, station, me, sous, expected):
    assert roles.role(person=person, station=station, me=me, sous=sous) == expected


ACTORS = {
    "expo": Actor(EXPO, "expo"),
    "sous": Actor(SOUS, "sous"),
    "person": Actor(PERSON),
    "one": Actor(STATION, "station-1"),
    "two": Actor(STATION, "station-2"),
    "unknown": Actor(STATION, None),
}
CLOSED = {("one", "two"), ("two", "one"), ("one", "unknown"), ("unknown", "one"), ("unknown", "two")}
CLOSED |= {("two", "unknown"), ("unknown", "unknown")}


@pytest.mark.parametrize("sender", ACTORS)
@pytest.mark.parametrize("target", ACTORS)
def test_messages(sender, target):
    assert roles.message_refused(OPEN, ACTORS[sender], ACTORS[target]) is None
    refused = roles.message_refused(STRICT, ACTORS[sender], ACTORS[target])
    assert bool(refused) == ((sender, target) in CLOSED)


@pytest.mark.parametrize("sender", ACTORS)
@pytest.mark.parametrize("own_room", [True, False])
def test_broadcasts(sender, own_room):
    assert roles.broadcast_refused(OPEN, ACTORS[sender], own_room=own_room) is None
    refused = roles.broadcast_refused(STRICT, ACTORS[sender], own_room=own_room)
    assert bool(refused) == (ACTORS[sender].role == STATION and not own_room)


@pytest.mark.parametrize(
    ("role", "composes", "assigns"),
    [(PERSON, True, True), (EXPO, False, True), (SOUS, True, False), (STATION, False, False), ("cook", False, False)],
)
def test_delegation(role, composes, assigns):
    assert (roles.delegation_refused(role, assigns=False) is None) == composes
    assert (roles.delegation_refused(role, assigns=True) is None) == assigns


def test_the_other_half_is_named():
    assert "sous" in roles.delegation_refused(EXPO, assigns=False)
    assert "expo" in roles.delegation_refused(SOUS, assigns=True)
