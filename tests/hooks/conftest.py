"""A repository with a bus, a person beside it, and sessions whose hooks run."""

from __future__ import annotations

import pytest

from tests.hooks.kit import Session


class Scene:
    """`repo` has a bus and a room; `ann` is a person in it; `session` makes client sessions."""

    def __init__(self, world) -> None:
        self.world = world
        world.limit(SWEEP=0)  # every writer sweeps: what is due is found at once
        self.repo = world.repo()
        self.ann = world.person("ann", self.repo)
        self.ann.tt("join").ok()

    def session(self, name: str = "bob", *, cwd: str | None = None, harness: str = "claude", begin=True, **env):
        made = Session(self.world, name, cwd or self.repo, harness, **env)
        if begin:
            made.begin().ok()
        return made

    def says(self, to, text: str, *args: str, sender=None):
        """A message; by a person, where nobody else is named."""
        return (
            (sender or self.ann)
            .tt("msg", "send", *args, getattr(to, "id", to), "--stdin", "--json", input=text)
            .ok()
            .json
        )


@pytest.fixture
def scene(world):
    return Scene(world)
