"""Which way a wake takes, chosen once per agent and event; pure.

Later transports are added here, in order of cost to the receiver: a live wait costs
nothing, a monitor line one turn, a native submission one turn and more uncertainty.
"""

from __future__ import annotations

from bus.records import Record


class Reach(Record):
    """By what an agent can be woken at this moment; `withheld` says why its inbox is no endpoint."""

    wait: bool = False
    rewake: bool = False
    plugin: bool = False
    monitor: bool = False
    endpoints: tuple[str, ...] = ()
    withheld: str | None = None

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


# Here an ended background command starts no turn: what a wait printed is read only when the
# model has another reason to run.
SLEEPS_THROUGH_EXIT = ("codex", "grok", "opencode")


def wait_serves(harness: str | None, *, turn_open: bool) -> bool:
    """Is a live wait a route by itself, or must another one be used as well?"""
    return turn_open or harness not in SLEEPS_THROUGH_EXIT


def choose(reach: Reach) -> str:
    """The route for one wake, best first; `line` when nobody is known to listen."""
    for name, there in (("wait", reach.wait), ("rewake", reach.rewake), ("opencode_plugin", reach.plugin)):
        if there:
            return name
    if reach.monitor:
        return "monitor"
    return reach.endpoints[0] if reach.endpoints else "line"


ORDER = ("wait", "rewake", "opencode_plugin", "monitor", "claude_inbox", "codex_queue", "cmux", "line")
