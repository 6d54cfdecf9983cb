"""Rooms and seats for tables of rules, and strategies for any of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bus import limits
from bus.rules import turn
from bus.rules.fairness import Seat
from bus.store.rooms import Room

NOW = 1_790_000_000_000
NAMES = ("me", "ann", "bob", "cat", "dan", "eve")
FACTS = ("observer", "parked", "present", "fresh", "gone", "vanished", "reachable", "waiting")
TRUE_OR_FALSE = st.booleans()


def room(**changes) -> Room:
    """An idle room, never held; `owner=` and `reserved_for=` bring their columns along."""
    values: list[Any] = [1, "/work", NOW - limits.DAY, NOW, "idle", None, 7, *[None] * 8, NOW - limits.HOUR, None]
    found = Room(*values).replace(**changes)
    if found.owner and "lease_until" not in changes:
        found.lease_until = NOW + limits.LEASE
    if found.reserved_for and "reserved_until" not in changes:
        found.reserved_until = NOW + limits.RESERVATION
    return found


def seat(agent: str, rank: int = 1, last_turn: int = 0, **facts) -> Seat:
    return Seat(agent, rank, last_turn, **facts)


def stick(found: Room, **facts) -> turn.Stick:
    return turn.Stick(found, **facts)


@st.composite
def any_seats(draw, names=NAMES):
    """Members with distinct ranks in any order, sparse as departures leave them."""
    present = draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)))
    ranks = draw(st.lists(st.integers(1, 50), unique=True, min_size=len(present), max_size=len(present)))
    held = draw(st.lists(st.integers(0, 5), min_size=len(present), max_size=len(present)))
    facts = st.fixed_dictionaries(dict.fromkeys(FACTS, TRUE_OR_FALSE))
    graces = st.integers(1, limits.GONE_GRACE_INFERRED)
    found = [Seat(name, rank, turn_id, **draw(facts)) for name, rank, turn_id in zip(present, ranks, held, strict=True)]
    for one in found:  # only one that is gone can have vanished, and has until then a grace
        one.vanished = one.vanished and one.gone
        one.grace_left = draw(graces) if one.gone and not one.vanished else 0
    return found


@st.composite
def any_stick(draw, names=NAMES):
    """Any room that the schema allows, with any facts about its owner."""
    times = st.integers(-2 * limits.LEASE, 2 * limits.LEASE).map(lambda offset: NOW + offset)
    state = draw(st.sampled_from(("idle", "owned", "reserved")))
    found = room(
        state=state,
        owner=draw(st.sampled_from(names)) if state == "owned" else None,
        lease_until=draw(times) if state == "owned" else None,
        reserved_for=draw(st.sampled_from(names)) if state == "reserved" else None,
        reserved_until=draw(times) if state == "reserved" else None,
        reserved_why=draw(st.sampled_from(("sequence", "direct_pass"))) if state == "reserved" else None,
        idle_since=draw(times),
        prior_owner=draw(st.sampled_from((None, *names))),
    )
    return turn.Stick(
        found,
        pending=draw(TRUE_OR_FALSE),
        owner_gone=draw(TRUE_OR_FALSE),
        owner_silent=draw(st.integers(0, 2 * limits.HOUR)),
        owner_grace=draw(st.sampled_from((limits.GONE_GRACE, limits.GONE_GRACE_INFERRED))),
    )
