"""What an operation returns."""

from __future__ import annotations

from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.store.events import Draft

SYSTEM = "tt"  # the sender of events that nobody sent; no agent can have this id


class Guard(Record):
    """Start a guardian for this lease: its own is not there."""

    room: int
    lease: str
    owner: str
    anchor: str | None


class Wakes(Record):
    """To be carried out after the commit, never before.

    `rooms`: ring the room's bell (0: every listener of the bus). `boxes`: whatever is due there
    needs a wake. `bells`: ring for the agent's own processes, at no cost to anybody.
    """

    rooms: list[int] = []  # a record's default is never changed in place
    boxes: list[str] = []
    bells: list[str] = []
    guards: list[Guard] = []

    def __add__(self, other: Wakes) -> Wakes:
        """Both, each once."""
        return Wakes(
            rooms=list(dict.fromkeys(self.rooms + other.rooms)),
            boxes=list(dict.fromkeys(self.boxes + other.boxes)),
            bells=list(dict.fromkeys(self.bells + other.bells)),
            guards=self.guards + other.guards,
        )


class Receipt(Record):
    """What a result showed, to be marked as received once it was flushed.

    `mail` are (box, seq) rows, `cursors` the highest broadcast shown per room, `notices` events
    that count as told to the reader by this result.
    """

    agent: str
    route: str
    mail: list[tuple[str, int]] = []
    cursors: dict[int, int] = {}
    notices: list[Draft] = []
    claim: int | None = None

    def empty(self) -> bool:
        """Nothing was shown, so nothing is written."""
        return not (self.mail or self.cursors or self.notices)


class Outcome(Record):
    """A finished operation. `result` always carries `status`."""

    result: dict[str, Any]
    wakes: Wakes = Wakes()
    receipt: Receipt | None = None
