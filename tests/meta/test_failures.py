"""Each failure that such systems are known for has its tests, or a reason why it cannot happen here."""

from __future__ import annotations

import ast
import functools
import os
import re

import pytest

from tests.kit.world import ROOT
from tests.meta import failures
from tests.meta.sources import docstrings, trees

# Looking through all processes cost prompts of the system, false deaths, and the shells of whoever looked.
FORBIDDEN = re.compile(r"^(\S*/)?(ps|lsof|pkill|killall|pgrep|process_iter|net_connections)\b")
# The demo ends what it started itself, and asks for the environment, which nobody else shares.
ALLOWED = {"tt/demo_world.py": ["process_iter"]}


@functools.cache
def named_in(path: str) -> tuple[str, ...]:
    """The names of the tests in a file below `tests`, also those in classes."""
    with open(os.path.join(ROOT, "tests", path), encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    inner = list(tree.body)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            inner += node.body
    return tuple(node.name for node in inner if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


@pytest.mark.parametrize("failure", failures.COVERED)
def test_its_tests_exist(failure):
    assert failures.COVERED[failure]
    for named in failures.COVERED[failure]:
        path, _, name = named.partition("::")
        assert name in named_in(path), f"{named} is no test"


def test_each_failure_stands_once_and_in_plain_words():
    parts = (
        *(failures.LIFE, failures.ORDER, failures.WAITING, failures.PLACES, failures.COMMANDS),
        *(failures.DELIVERY, failures.STORE_AND_INSTALL, failures.TICKETS_AND_BOARD),
        *(failures.CANNOT, failures.NOT_BUILT),
    )
    names = [name for part in parts for name in part]
    assert len(names) == len(set(names))
    assert all(10 < len(name) < 90 and name[-1] != "." for name in names)
    assert all(reason.strip() for part in (failures.CANNOT, failures.NOT_BUILT) for reason in part.values())


def texts(tree: ast.Module) -> list[str]:
    """Names and literal texts of a module, without its docstrings."""
    said = docstrings(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            found.append(node.value)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
    return found


def looks_through_processes(tree: ast.Module) -> list[str]:
    return [text for text in texts(tree) if FORBIDDEN.match(text)]


def test_nobody_looks_through_the_table_of_processes():
    found = {path: words for path, tree in trees().items() if (words := looks_through_processes(tree))}
    assert found == ALLOWED


def test_the_rule_finds_what_it_forbids():
    for bad in (
        "psutil.process_iter()",
        "run(['pkill', '-f', 'x'])",
        "run(['ps', '-o', 'lstart='])",
        "x = 'lsof -p 1'",
    ):
        assert looks_through_processes(ast.parse(bad)), bad
    assert looks_through_processes(ast.parse("'''lsof in words'''\nsteps = 'the ps and pidfd', 'psutil'")) == []
