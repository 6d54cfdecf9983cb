"""Fixtures for the real clients: `model`, `project`, `claude`, `codex`. Skips say what is missing."""

from __future__ import annotations

import os

import pytest

from tests.clients.clients import NOWHERE, Claude, Codex
from tests.clients.model import Model
from tests.clients.where import find, version, why_not
from tests.kit.procs import gone, holding, kill_holding

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 180  # seconds a test may take; a hang guard


def pytest_collection_modifyitems(items) -> None:
    """Real clients take longer to start than a unit test may."""
    for item in items:
        if str(item.path).startswith(HERE + os.sep) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT))


def pytest_report_header() -> list[str]:
    """Which clients, or why none."""
    return [why_not(name) or f"{name}: {version(name)} in {find(name)}" for name in ("claude", "codex")]


class Project:
    """A repository with a bus and a room: `bob`, another agent, has joined it; `ann` is a person."""

    def __init__(self, world) -> None:
        self.world = world
        self.path = world.repo("proj")
        self.bob = world.agent("bob", self.path)
        self.bob.tt("join").ok()
        self.ann = world.person("ann", self.path)

    def __fspath__(self) -> str:
        return self.path

    def busy(self) -> None:
        """Bob holds the turn, so that the wait of another member goes on waiting."""
        assert self.bob.tt("try").ok().json["status"] == "your_turn"

    def tt(self, client, *words: str):
        """`tt WORDS` by a person at the shell who has this client's home, and the client on PATH."""
        return self.world.person("ann", self.path, **self.around(client)).tt(*words, timeout=60)

    def peer(self, client, name: str = "carl", **env: str):
        """Another agent of the same user as the client: its home, its programs. It has joined."""
        made = self.world.agent(name, self.path, **self.around(client), **env)
        made.tt("join").ok()
        return made

    def around(self, client) -> dict[str, str]:
        """The variables that a program beside this client has; none of a session."""
        path = os.path.dirname(client.program) + os.pathsep + self.world.env()["PATH"]
        temporary = {"TMPDIR": client.env["TMPDIR"]}
        return {"HOME": client.home, "PATH": path, **temporary, **NOWHERE}


@pytest.fixture(scope="session", autouse=True)
def nothing_left(tmp_path_factory):
    """After the last test no process knows of this run's folder."""
    yield
    base = str(tmp_path_factory.getbasetemp())
    left = [pid for pid in holding(base) if not gone(pid)]
    if left:
        kill_holding(base)
        pytest.fail(f"processes outlived their tests: {left}")


@pytest.fixture
def model(world):
    """The scripted model; its requests are in `requests.jsonl` of the test's folder."""
    made = Model(os.path.join(world.top, "requests.jsonl"))
    yield made
    made.close()


@pytest.fixture
def project(world) -> Project:
    """A repository with a bus."""
    return Project(world)


def _client(kind, world, model, project):
    reason = why_not(kind.kind)
    if reason:
        pytest.skip(reason)
    made = kind(world, model, project.path)
    yield made
    made.close()


@pytest.fixture
def claude(world, model, project):
    """Claude Code in the project; nothing runs yet."""
    yield from _client(Claude, world, model, project)


@pytest.fixture
def codex(world, model, project):
    """Codex in the project; nothing runs yet."""
    yield from _client(Codex, world, model, project)


@pytest.fixture
def another(world, model):
    """Makes further Claudes: `another(directory, name)`."""
    made = []

    def make(directory: str, name: str) -> Claude:
        made.append(Claude(world, model, directory, name))
        return made[-1]

    yield make
    for one in made:
        one.close()
