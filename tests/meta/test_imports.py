"""Import budget: what a fresh interpreter loads for a hot module. Deterministic, unlike milliseconds."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from tests.kit.world import ROOT
from tests.meta.sources import module_name, sources

# Each costs milliseconds at every hook and every hot command.
SLOW = {"contextlib", "dataclasses", "importlib.metadata", "importlib.resources", "inspect", "logging"}
SLOW |= {"pathlib", "random", "secrets", "shutil", "subprocess", "tempfile", "typing", "uuid", "asyncio"}
HEAVY = {"click", "filelock", "orjson", "prompt_toolkit", "psutil", "psycopg", "watchdog", "mcp"}

# Entry points of hot verbs and hooks.
HOT = [
    "bus.operations.enter",
    "bus.operations.join",
    "bus.operations.messages",
    "bus.operations.notes",
    "bus.operations.receive",
    "bus.operations.settings",
    "bus.operations.standby",
    "bus.operations.turns",
    "bus.operations.views",
    "bus.deliver",
    "monitor.follow",
    "monitor.granting",
    "monitor.guardian",
    "monitor.waiting",
    "hooks.board",
    "hooks.publish",
    "hooks.stop_guard",
    "tt.main",
]

# Modules of the hot packages that may load more, each with its reason.
EXEMPT = {
    "bus.store.migrate": "runs once per version of the schema, under a file lock",
}

PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
import importlib, json
for name in sys.argv[2:]:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


@functools.cache
def modules() -> set[str]:
    """Names of all modules of the packages."""
    return {module_name(path) for path in sources()}


def loaded(*names: str, site: bool = False) -> set[str]:
    """What is loaded after importing these; without `site` any third-party import fails at once."""
    env = {"PATH": os.defpath, "HOME": os.devnull}
    words = [sys.executable, "-I", *([] if site else ["-S"]), "-c", PROBE, ROOT, *names]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_probe_itself_loads_nothing_slow():
    assert not loaded() & (SLOW | HEAVY)


def test_the_probe_sees_what_it_forbids():
    assert loaded("dataclasses", "uuid") & SLOW >= {"dataclasses", "uuid"}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_entry_point_loads_nothing_slow(name):
    if name not in modules():
        pytest.skip(f"{name} does not exist yet")
    assert not loaded(name) & (SLOW | HEAVY)


@pytest.mark.parametrize("package", ["bus", "hooks", "monitor"])
def test_no_module_of_a_hot_package_loads_anything_slow(package):
    """One interpreter for the whole package; when it fails, each module on its own names the culprits."""
    names = sorted(name for name in modules() - EXEMPT.keys() if name.split(".")[0] == package)
    names = [name for name in names if not name.endswith("__main__")]
    if loaded(*names) & (SLOW | HEAVY):
        found = {name: loaded(name) & (SLOW | HEAVY) for name in names}
        assert not {name: slow for name, slow in found.items() if slow}


def test_every_exemption_is_still_needed():
    for name in EXEMPT:
        assert (loaded(name, site=True) - loaded(site=True)) & (SLOW | HEAVY), name
