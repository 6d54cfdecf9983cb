"""A crew as tests tell of it: an expo in the main checkout, a sous, people, and stations in worktrees."""

from __future__ import annotations

import hashlib
import os

from tests.kit.world import Agent, Proc, store
from tests.processes.stories import waiting


class Crew:
    """`ann` (a person), `expo`, `sous`, and one agent in each station; everybody has joined a room."""

    def __init__(self, world, count: int = 3, *, sous: bool = True) -> None:
        self.world = world
        self.repo = world.repo()
        self.ann = world.person("ann", self.repo)
        made = self.ann.tt("stations", "add", "--count", str(count), "--json").ok().json
        self.paths = [one["path"] for one in made["stations"]]
        self.expo = world.agent("expo", self.repo)
        self.sous = world.agent("sous", self.repo) if sous else None
        self.stations = [world.agent(f"s{number}", path) for number, path in enumerate(self.paths, 1)]
        for agent in self.agents:
            agent.tt("join").ok()
        if sous:
            self.ann.tt("config", "set", "sous", self.sous.id).ok()
        for agent in self.agents:
            agent.tt("inbox").ok()
        self.pair: tuple[Agent, ...] = ()
        self.waits: dict[str, Proc] = {}

    @property
    def agents(self):
        """All harness sessions."""
        return [self.expo, *([self.sous] if self.sous else []), *self.stations]

    def listen(self, *agents) -> None:
        """Each of them has a blocked wait from now on."""
        for agent in agents:
            self.waits[agent.name] = waiting(self.world, agent, "--park")

    def heard(self, agent):
        """The events with which the wait of this agent ends; it waits again."""
        result = self.waits.pop(agent.name).wait(30).ok().json
        self.listen(agent)
        return result["events"]

    def stop(self) -> None:
        """End every wait."""
        for wait in self.waits.values():
            wait.kill()
        self.waits.clear()


def disk(world) -> dict[str, object]:
    """Everything of every bus that a command could leave behind: rows, notify lines, bells."""
    found: dict[str, object] = {}
    for bus_dir in world.bus_dirs():
        with store(bus_dir) as con:
            text = "\n".join(con.iterdump())
        found[bus_dir] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        for folder, _, names in os.walk(bus_dir):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".notify") or os.path.basename(os.path.dirname(folder)) == "bell":
                    info = os.stat(path)
                    found[path] = (info.st_size, info.st_mtime_ns)
    return found


def refused(agent, code: str, *words: str, **more):
    """The command is refused with this code, and nothing on disk has changed."""
    before = disk(agent.world)
    error = agent.tt(*words, "--json", **more).failed(code).error
    assert disk(agent.world) == before, "a refusal left something behind"
    return error
