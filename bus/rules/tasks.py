"""The transitions of tickets and asks, and who may make them: one table; pure."""

from __future__ import annotations

from bus.records import Record
from bus.rules import roles

QUEUED, ASSIGNED, IN_PROGRESS, RETURNED, DONE, CANCELLED = (
    "queued",
    "assigned",
    "in_progress",
    "returned",
    "done",
    "cancelled",
)
ACTIVE = (QUEUED, ASSIGNED, IN_PROGRESS, RETURNED)
STATES = (*ACTIVE, DONE, CANCELLED)
ASK_OPEN, ASK_ANSWERED = "open", "answered"
PRIORITIES = ("low", "normal", "high", "urgent")


class Step(Record):
    """A verb: from which states, to which, and by whom."""

    sources: tuple[str, ...]
    target: str
    who: tuple[str, ...]


STEPS = {
    "assign": Step(ACTIVE, ASSIGNED, (roles.EXPO, roles.PERSON)),
    "start": Step((ASSIGNED,), IN_PROGRESS, ("assignee",)),
    "return": Step((IN_PROGRESS,), RETURNED, ("assignee",)),
    "done": Step((RETURNED,), DONE, ("creator", roles.EXPO, roles.PERSON)),
    "cancel": Step(ACTIVE, CANCELLED, ("creator", roles.EXPO, roles.PERSON)),
    "answer": Step((ASK_OPEN,), ASK_ANSWERED, ("assignee", roles.EXPO, roles.PERSON)),
    "escalate": Step((ASK_OPEN,), ASK_OPEN, ("creator", "assignee", roles.EXPO, roles.PERSON)),
}


def allowed(verb: str, role: str, *, creator: bool, assignee: bool) -> bool:
    """May somebody of this role, who made it or was given it, take this step?"""
    who = STEPS[verb].who
    return role in who or (creator and "creator" in who) or (assignee and "assignee" in who)
