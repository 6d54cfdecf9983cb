"""`python -m tests bench [--quick] [--json PATH] [--only PART,…]`: print the table, write the figures.

Reports, never gates: exit 0 whatever the figures say. A row that cannot be measured says why.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import sys
import tempfile
import time

from tests.bench import crowd, history, latency, verbs
from tests.bench.kit import Place, Row
from tests.kit import guard

PARTS = {"latency": latency, "verbs": verbs, "crowd": crowd, "history": history}
HEAD = ["", "what", "ours", "reach", "compared", "ratio"]


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    return {
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load": [round(one, 2) for one in os.getloadavg()],
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def measure(place: Place, parts) -> list[Row]:
    """All rows of these parts, each named on stderr as it is done."""
    found = []
    for name in parts:
        began = time.perf_counter()
        try:
            for row in PARTS[name].rows(place):
                found.append(row)
                print("  ".join(cell for cell in row.cells() if cell.strip()), file=sys.stderr, flush=True)
        except Exception as problem:  # noqa: BLE001  # the other parts are still worth having
            found.append(Row(name, f"not measured: {type(problem).__name__}: {problem}"[:200], "", unit=""))
            print(found[-1].ours, file=sys.stderr)
        print(f"  ({name}: {time.perf_counter() - began:.0f} s)", file=sys.stderr)
    return found


def table(rows: list[Row]) -> str:
    """Columns as wide as they must be."""
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def stop(_number, _frame) -> None:
    """SIGTERM cleans up as Ctrl-C does."""
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests bench")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller crowds: under 90 s")
    parser.add_argument("--json", metavar="PATH", help="where the figures go; default: the temp folder")
    parser.add_argument("--only", metavar="PART,…", default=",".join(PARTS), help="some of " + ", ".join(PARTS))
    options = parser.parse_args(arguments)
    parts = [name for name in options.only.split(",") if name in PARTS]
    path = os.path.abspath(options.json or os.path.join(tempfile.gettempdir(), "tt-bench.json"))
    signal.signal(signal.SIGTERM, stop)
    for name in [name for name in os.environ if guard.foreign(name)]:
        del os.environ[name]  # a harness may have started us
    seen = machine()
    place = Place(options.quick)
    try:
        rows = measure(place, parts)
    except KeyboardInterrupt:
        return 130
    finally:
        place.close()
    print(table(rows))
    print("machine: " + ", ".join(f"{name} {value}" for name, value in seen.items()))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": seen, "quick": options.quick, "rows": [row.as_json() for row in rows]}, file, indent=1)
    print(f"figures: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
