"""The developer's commands: `python -m tests fast | full | lint | types | bench | clients [ARG…]`.

Further arguments go to the tool that runs (pytest, mypy, the benchmark). The exit code is
that tool's; the last line counts what ran.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from xml.etree.ElementTree import parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = ("pytest", "xdist", "pytest_timeout", "hypothesis", "mypy", "ruff", "importlinter")
LIBRARIES = ("click", "orjson", "watchdog", "psutil", "filelock")
FAILED = 1  # pytest's code for tests that failed
NO_TESTS = 5  # pytest's code for "nothing was collected"

QUICK = ("unit", "rules", "store", "cli", "meta")
SERIAL = ("processes",)  # real processes racing each other: one test at a time
APART = ("bench", "clients", "kit")  # have commands of their own


def missing() -> list[str]:
    """Packages that the tests need and this Python does not have."""
    return [name for name in (*LIBRARIES, *TOOLS) if importlib.util.find_spec(name) is None]


def run(*command: str) -> int:
    """Run one tool from the top of the repository, with our standard streams."""
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def python(*arguments: str) -> int:
    """Run a Python program by the interpreter that runs us."""
    return run(sys.executable, *arguments)


def folders(names) -> list[str]:
    """Those of the test folders that exist."""
    return [f"tests/{name}" for name in names if os.path.isdir(os.path.join(ROOT, "tests", name))]


def count(report: str, totals: dict[str, int]) -> None:
    """Add one pytest run's numbers."""
    if not os.path.exists(report):
        return
    for suite in parse(report).iter("testsuite"):
        for key in totals:
            totals[key] += int(suite.get(key, 0))


def pytest_runs(runs: list[list[str]], extra: list[str]) -> int:
    """Run pytest once per list; paths among the extra arguments replace ours. Ends with the count."""
    began = time.monotonic()
    if any(os.path.exists(os.path.join(ROOT, argument.partition("::")[0])) for argument in extra):
        runs = [[argument for argument in runs[0] if not argument.startswith("tests/")]]
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    codes = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, arguments in enumerate(runs):
            report = os.path.join(scratch, f"{number}.xml")
            codes.append(python("-m", "pytest", f"--junitxml={report}", *arguments, *extra))
            count(report, totals)
    passed = totals["tests"] - totals["failures"] - totals["errors"] - totals["skipped"]
    print(
        f"total: {passed} passed, {totals['failures']} failed, {totals['errors']} errors, "
        f"{totals['skipped']} skipped in {time.monotonic() - began:.1f} s"
    )
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    return bad[0] if bad else min(codes, default=NO_TESTS)


def fast(extra: list[str]) -> int:
    """What to run after every change: no races of real processes, nothing slow."""
    return pytest_runs([["-n2", "-m", "not slow", *folders(QUICK)]], extra)


def full(extra: list[str]) -> int:
    """Every test but those against real clients: first in parallel, then the races one by one."""
    every = sorted(os.listdir(os.path.join(ROOT, "tests")))
    parallel = folders(name for name in every if name not in (*SERIAL, *APART) and name[0] not in "_.")
    runs = [["-n2", *parallel]]
    if folders(SERIAL):
        runs.append(folders(SERIAL))
    return pytest_runs(runs, extra)


def clients(extra: list[str]) -> int:
    """Tests against the real clients, one by one (`--long`: the long ones too); they skip where none is installed."""
    if not folders(["clients"]):
        print("total: 0 passed (there are no tests/clients)")
        return NO_TESTS
    long = "--long" in extra
    chosen = [] if long else ["-m", "not long"]
    rest = [argument for argument in extra if argument != "--long"]
    # a skip names what is missing; -rs prints it even in a run that is otherwise fine
    code = pytest_runs([["-rs", *chosen, *folders(["clients"])]], rest)
    if code != FAILED:
        return code
    # Other people's terminals redraw when they like. What fails twice is ours; what passes now is named as such.
    print("clients: what failed is tried once more")
    return pytest_runs(
        [["-rs", "--last-failed", "--last-failed-no-failures=none", *chosen, *folders(["clients"])]], rest
    )


def lint(extra: list[str]) -> int:
    """Style, format and directions of imports. Extra arguments go to `ruff check`."""
    imports = "from importlinter.cli import lint_imports_command as main; main()"
    codes = [
        python("-m", "ruff", "check", *extra),
        python("-m", "ruff", "format", "--check"),
        python("-c", imports, "--no-cache"),
    ]
    print(f"total: {codes.count(0)} of {len(codes)} lint steps passed")
    return next((code for code in codes if code), 0)


def types(extra: list[str]) -> int:
    """Check types; mypy's own last line counts."""
    return python("-m", "mypy", *extra)


def bench(extra: list[str]) -> int:
    """Measure and print the table of figures."""
    return python("-m", "tests.bench", *extra)


COMMANDS = {"fast": fast, "full": full, "lint": lint, "types": types, "bench": bench, "clients": clients}


def main(arguments: list[str]) -> int:
    """Run one command; usage errors exit 2, missing packages exit 1."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        for name, command in COMMANDS.items():
            print(f"  {name:8} {command.__doc__}", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    lacking = missing()
    if lacking:
        print(f"missing: {', '.join(lacking)}\ninstall: {sys.executable} -m pip install -e '.[test]'")
        return 1
    return COMMANDS[arguments[0]](arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
