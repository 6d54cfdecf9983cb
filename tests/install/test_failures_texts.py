"""What agents are told so that they do not do what agents did; and that everything which is told is shipped."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest

from tests.kit.world import ROOT
from tt.install import skill


def flat() -> str:
    """The skill with its references, as one line."""
    return " ".join(" ".join(data.decode() for data in skill.files(skill.SOURCE).values()).split())


@pytest.mark.parametrize(
    "words",
    [
        "without a task? Join, then `tt standby`",
        "don't ask what to do in a prompt that perhaps nobody reads",
        "Don't pass on what a person wrote to the room",
        "Don't announce that you have come",
        'Exit 127, or "command not found": `tt` did not run, nothing happened, you hold nothing new',
        "Text with back-ticks or `$` goes by `--stdin`",
    ],
)
def test_the_skill_says(words):
    assert words in flat()


def test_the_package_holds_every_file_that_it_reads(tmp_path):
    """An installer that shipped no assets left a page that was blank, and no error."""
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        shipped = set(file.namelist())
    there = {
        os.path.relpath(os.path.join(folder, name), ROOT)
        for package in ("tt", "bus", "hooks", "monitor")
        for folder, _, names in os.walk(os.path.join(ROOT, package))
        for name in names
        if "__pycache__" not in folder
    }
    assert there <= shipped
    assert not [name for name in shipped if name.startswith("tests")]
