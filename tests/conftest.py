"""Guards for every test, and the `world` fixture."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.kit.guard import isolation, pytest_configure, pytest_unconfigure
from tests.kit.world import World, invariants

__all__ = ["isolation", "pytest_configure", "pytest_unconfigure", "world"]

# Two cores shared with other tests: a slow example is no defect.
settings.register_profile("tests", deadline=None, print_blob=True)
settings.load_profile("tests")


@pytest.fixture
def world(tmp_path):
    """A world of repositories and agents; afterwards nothing of it runs and every bus is sound."""
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.close()
    for bus_dir in made.bus_dirs():
        invariants(bus_dir)
