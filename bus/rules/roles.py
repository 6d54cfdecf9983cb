"""Who may say and hand out what, by role and topology; pure.

A role follows from the recorded working tree, from the settings of the bus, or from being a
person; never from a name. Whoever has no known role is treated as a station.
"""

from __future__ import annotations

from bus.records import Record

OPEN, STRICT = "open", "strict-hub"
TOPOLOGIES = (OPEN, STRICT)
PERSON, EXPO, SOUS, STATION = "person", "expo", "sous", "station"


class Actor(Record):
    """Somebody as these rules see them: `station` is where its worktree is, None for none."""

    role: str
    station: str | None = None


def role(*, person: bool, station: str | None, me: str, sous: str | None) -> str:
    """The caller's role."""
    if person:
        return PERSON
    if sous is not None and sous == me:
        return SOUS  # named as such, also where the expo works
    if station == EXPO:
        return EXPO
    if sous is not None and sous == station:
        return SOUS
    return STATION


def message_refused(topology: str, sender: Actor, target: Actor) -> str | None:
    """Why this message is refused under this topology, or None. Asked before anything is written."""
    if topology != STRICT or sender.role != STATION or target.role != STATION:
        return None
    if sender.station is not None and sender.station == target.station:
        return None
    where = target.station or "an agent without a known station"
    return f"stations do not write to each other here (you: {sender.station or 'unknown'}, to: {where})"


def broadcast_refused(topology: str, sender: Actor, *, own_room: bool) -> str | None:
    """Why this room or bus message is refused. A message inside the sender's own room is no broadcast."""
    if topology != STRICT or sender.role != STATION or own_room:
        return None
    return f"a station does not broadcast here (you: {sender.station or 'unknown'})"


def delegation_refused(sender: str, *, assigns: bool) -> str | None:
    """Why this delegation is refused, in every topology: the sous composes, the expo assigns, people do both."""
    if sender == PERSON:
        return None
    if sender == EXPO:
        return None if assigns else "the expo assigns: name somebody with --to; composing without it is the sous's half"
    if sender == SOUS:
        return "the sous composes: leave --to out; assigning is the expo's half" if assigns else None
    return "only the expo, the sous and people delegate"
