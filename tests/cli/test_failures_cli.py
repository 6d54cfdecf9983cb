"""What cleans up ends its own processes and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tt import demo_world

SLEEP = "import time; time.sleep(60)"


@pytest.fixture
def sleeper():
    made = []

    def start(*words: str, **env: str):
        argv = [sys.executable, "-I", "-S", "-c", SLEEP, *words]
        made.append(subprocess.Popen(argv, env={"PATH": os.environ["PATH"], **env}))
        return made[-1].pid

    yield start
    for process in made:
        process.kill()
        process.wait()


def test_the_demo_ends_nobody_who_only_names_its_folder(sleeper, tmp_path):
    """A word in a command line was taken for a proof, and the shell that asked was killed."""
    data = str(tmp_path / "data")
    own = sleeper(TALKING_STICK_DATA_DIR=data)
    sleeper(data)
    sleeper(f"tail -f {data}/x", NOTE=data)
    sleeper(TALKING_STICK_DATA_DIR=data + "-of-another")
    assert [process.pid for process in demo_world.belonging(data)] == [own]
