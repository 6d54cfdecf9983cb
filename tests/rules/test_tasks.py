"""The table of transitions: from where, to where, by whom; and nothing else."""

from __future__ import annotations

import pytest

from bus.rules import roles, tasks

# verb: (from, to, who)
TABLE = {
    "assign": ("queued assigned in_progress returned", "assigned", "expo person"),
    "start": ("assigned", "in_progress", "assignee"),
    "return": ("in_progress", "returned", "assignee"),
    "done": ("returned", "done", "creator expo person"),
    "cancel": ("queued assigned in_progress returned", "cancelled", "creator expo person"),
    "answer": ("open", "answered", "assignee expo person"),
    "escalate": ("open", "open", "creator assignee expo person"),
}
ROLES = (roles.PERSON, roles.EXPO, roles.SOUS, roles.STATION)


@pytest.mark.parametrize("verb", TABLE)
def test_transitions(verb):
    sources, target, who = TABLE[verb]
    step = tasks.STEPS[verb]
    assert (set(step.sources), step.target, set(step.who)) == (set(sources.split()), target, set(who.split()))


def test_no_other_verb():
    assert set(tasks.STEPS) == set(TABLE)


@pytest.mark.parametrize("state", [tasks.DONE, tasks.CANCELLED, tasks.ASK_ANSWERED])
def test_final_states_have_no_way_out(state):
    assert not [verb for verb, step in tasks.STEPS.items() if state in step.sources]


@pytest.mark.parametrize("verb", TABLE)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("creator", [True, False])
@pytest.mark.parametrize("assignee", [True, False])
def test_permissions(verb, role, creator, assignee):
    who = TABLE[verb][2].split()
    expected = role in who or (creator and "creator" in who) or (assignee and "assignee" in who)
    assert tasks.allowed(verb, role, creator=creator, assignee=assignee) == expected
