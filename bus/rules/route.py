"""Which way a wake takes, chosen once per agent and event; pure.

Later transports are added here, in order of cost to the receiver: a live wait costs
nothing, a monitor line one turn, a native submission one turn and more uncertainty.
"""

from __future__ import annotations

from bus.records import Record


class Reach(Record):
    """By what an agent can be woken at this moment."""

    wait: bool = False
    rewake: bool = False
    plugin: bool = False
    monitor: bool = False
    endpoints: tuple[str, ...] = ()

    def transports(self) -> list[str]:
        """Names, best first."""
        live = [
            name
            for name, there in (
                ("wait", self.wait),
                ("rewake", self.rewake),
                ("opencode_plugin", self.plugin),
                ("monitor", self.monitor),
            )
            if there
        ]
        return live + list(self.endpoints)

    def reachable(self) -> bool:
        """The one definition that candidates, sends, health and board share."""
        return bool(self.transports())


def choose(reach: Reach) -> str:
    """The route for one wake: `wait`, `monitor`, or `line` when nobody is known to listen."""
    if reach.wait:
        return "wait"
    if reach.monitor:
        return "monitor"
    return "line"
