"""Sizes, and the things that have exactly one place."""

from __future__ import annotations

import ast
import re

from tests.meta.sources import docstrings, sources, trees

FILE_LINES = 450
FUNCTION_LINES = 40
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")
SQL_PLACES = ("bus/store/",)
CLOCK = "bus/clock.py"
PRINTER = "tt/output.py"
CLOCK_READS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}


def function_lines(function) -> int:
    """Lines of a function without decorators and docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def dotted_end(node):
    """(`datetime`, `now`) for `datetime.now` and for `x.datetime.now`."""
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    return (getattr(owner, "id", None) or getattr(owner, "attr", ""), node.attr)


def clock_reads(tree):
    """Lines where the wall clock is read, or its reader imported by name."""
    for node in ast.walk(tree):
        by_name = isinstance(node, ast.ImportFrom) and any(
            (node.module, alias.name) in CLOCK_READS for alias in node.names
        )
        if by_name or dotted_end(node) in CLOCK_READS:
            yield getattr(node, "lineno", 0)


def test_files_are_short():
    long = {path: text.count("\n") for path, text in sources().items() if text.count("\n") > FILE_LINES}
    assert not long


def test_functions_are_short():
    long = [
        f"{path}:{node.lineno} {node.name} {function_lines(node)}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and function_lines(node) > FUNCTION_LINES
    ]
    assert not long


def test_every_file_says_what_it_owns():
    silent = [path for path, tree in trees().items() if not (ast.get_docstring(tree) or "").strip()]
    assert not silent


def test_sql_lives_in_the_store():
    found = []
    for path, tree in trees().items():
        if path.startswith(SQL_PLACES):
            continue
        texts = docstrings(tree)
        found += [
            f"{path}:{node.lineno} {node.value[:60]!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts
            if SQL.search(node.value)
        ]
    assert not found


def test_one_place_reads_the_clock():
    found = [f"{path}:{line}" for path, tree in trees().items() if path != CLOCK for line in clock_reads(tree)]
    assert not found


def test_one_place_prints():
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        if path != PRINTER
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]
    assert not found


def test_the_rules_find_what_they_forbid():
    bad = "import time\nfrom datetime import datetime\n"
    bad += "from time import time_ns\nx = time.time(), datetime.now()\n"
    assert list(clock_reads(ast.parse(bad))) == [3, 4, 4]
    assert SQL.search("SELECT 1")
    assert not SQL.search("please select")
    body = "def f():\n    '''Two\n    lines.'''\n    return 1\n"
    assert function_lines(ast.parse(body).body[0]) == 2
