"""Carrying out, after the commit, what an operation returned: bells, notify lines, guardians.

Kept true: nothing here runs before the commit; listeners are probed after it, since probing
before it loses wakes; whatever fails leaves mail due, and the next sweep finds it.
"""

from __future__ import annotations

from bus import bell, clock, crash
from bus.deliver import guardian, wake
from bus.operations import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.deliver.wake import Delivery
    from bus.operations.outcome import Outcome, Wakes
    from bus.store.db import Bus


TOLD = ("delegated", "ticket", "asked", "answered", "escalated")


def send(bus: Bus, wakes: Wakes) -> list[Delivery]:
    """Ring, wake and start what is named; one delivery for each box."""
    crash.point("before_bell")
    for room in wakes.rooms:
        bell.ring(bus.room_bell(room))
    now = clock.now()
    rang = bool(wakes.rooms)
    done = [wake.serve(bus, box, rang=rang, now=now) for box in wakes.boxes]
    for agent in wakes.bells:
        bell.ring(bus.agent_bell(agent))
    crash.point("after_bell")
    for guard in wakes.guards:
        guardian.adopt(bus, guard)
    return done


def ring(bus: Bus, wakes: Wakes) -> None:
    """Only the bells of what is named: for who has no time for a native wake. What needs one stays due."""
    for room in wakes.rooms:
        bell.ring(bus.room_bell(room))
    for agent in [*wakes.bells, *(agent for box in wakes.boxes for agent in wake.readers(bus, box))]:
        bell.ring(bus.agent_bell(agent))


def after_write(bus: Bus, data: str, served: list[Delivery]) -> None:
    """The end of every writing command: what a dead sender left due, and once a second a whole sweep."""
    besides = tuple(one.box for one in served)
    found = sweep.due(bus, besides=besides) + sweep.sweep(bus, data=data)
    # The sweep finds what was served a moment ago as well: a hundred waits need one bell, not two each.
    send(bus, found.replace(boxes=[box for box in found.boxes if box not in besides]))


def after_read(bus: Bus) -> None:
    """The end of a reading command: ring for what is due, write nothing."""
    ring(bus, sweep.due(bus))


def carry_out(bus: Bus, outcome: Outcome) -> list[Delivery]:
    """Carry out an outcome; the result of a message, ticket or question is told what became of it."""
    done = send(bus, outcome.wakes)
    status = outcome.result.get("status")
    if status == "sent" or (status in TOLD and outcome.wakes.boxes):
        outcome.result.update(wake.report(done))
    return done
