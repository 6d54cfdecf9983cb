"""Which way a wake takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.rules import route
from bus.rules.route import Reach

FLAGS = ("wait", "rewake", "plugin", "monitor")
any_reach = st.builds(
    lambda flags, endpoints: Reach(**flags, endpoints=tuple(endpoints)),
    st.fixed_dictionaries({name: st.booleans() for name in FLAGS}),
    st.lists(st.sampled_from(("inbox_socket", "codex_queue", "cmux")), unique=True),
)


@pytest.mark.parametrize(
    ("reach", "chosen"),
    [
        (Reach(), "line"),
        (Reach(wait=True), "wait"),
        (Reach(monitor=True), "monitor"),
        (Reach(wait=True, monitor=True), "wait"),
    ],
)
def test_the_cheapest_way_is_taken(reach, chosen):
    assert route.choose(reach) == chosen


def test_transports_are_named_best_first():
    reach = Reach(wait=True, rewake=True, plugin=True, monitor=True, endpoints=("cmux",))
    assert reach.transports() == ["wait", "rewake", "opencode_plugin", "monitor", "cmux"]


def test_nobody_listens():
    assert Reach().transports() == []
    assert not Reach().reachable()


@given(any_reach)
def test_reachable_means_that_there_is_a_transport(reach):
    assert reach.reachable() == bool(reach.transports())
    assert reach.reachable() == (any(getattr(reach, name) for name in FLAGS) or bool(reach.endpoints))


@given(any_reach)
def test_a_live_wait_always_wins(reach):
    assert (route.choose(reach) == "wait") == reach.wait


@pytest.mark.parametrize("harness", ["claude", "antigravity", None, "codex", "grok", "opencode"])
def test_a_wait_serves_alone_where_its_end_wakes_the_model(harness):
    assert route.wait_serves(harness, turn_open=True)
    assert route.wait_serves(harness, turn_open=False) == (harness not in ("codex", "grok", "opencode"))


@given(any_reach)
def test_every_choice_has_a_rank(reach):
    chosen = route.choose(reach.replace(endpoints=tuple(e for e in reach.endpoints if e in route.ORDER)))
    assert chosen in route.ORDER
