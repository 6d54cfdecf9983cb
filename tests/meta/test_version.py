from __future__ import annotations

import os
import tomllib

import tt
from tests.kit.world import ROOT


def test_the_version_literal_is_the_one_of_the_package():
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    assert tt.__version__ == project["version"]
