"""Whole processes, from start to exit: what every command of an agent costs."""

from __future__ import annotations

from tests.bench import kit
from tests.bench.kit import Row, interleaved, median

HANDOFF = ("--status", "done", "--next-action", "go on")


def rows(place):
    """Hot verbs, grants, the others."""
    floor = {"python+sqlite3": kit.python_sqlite(place)}
    node = kit.node(place)
    if node:
        floor["node"] = node
    yield from hot(place, floor)
    yield from granting(place, floor)
    yield from others(place, floor)


def hot(place, floor):
    """A third agent looks and writes while another one holds the turn."""
    repo = place.repo()
    ann, bob, cem = place.sessions(repo, 3)
    ann.result("try")
    cases = {
        "try": lambda: cem.tt("try"),
        "wait --timeout 0": lambda: cem.tt("wait", "--timeout", "0"),
        "msg send": lambda: cem.tt("msg", "send", bob.id, "hello"),
        "state": lambda: cem.tt("state"),
        "inbox": lambda: cem.tt("inbox"),
    }
    found = interleaved(cases | floor, place.times(40, 8))
    for name in cases:
        yield verb(name, found, 22, 1.8)


def verb(name: str, found, most: float, times: float | None = None) -> Row:
    """One row; `times` is the most it may cost in units of Python with sqlite3."""
    ours = median(found[name])
    compared = {other: round(median(found[other]), 1) for other in ("python+sqlite3", "node") if other in found}
    good = ours <= most and (times is None or ours <= times * compared["python+sqlite3"])
    reach = f"≤ {most}" + (f", ≤ {times}×" if times else "")
    return Row(f"`tt {name}`", ours, reach, ok=good, compared=compared)


def granting(place, floor):
    """Two agents hand the turn to and fro: each grant starts a guardian, each release ends one."""
    repo = place.repo()
    pair = place.sessions(repo, 2)
    samples: dict[str, list[float]] = {"try, granted": [], "wait, granted": [], "release": []}
    rest: dict[str, list[float]] = {name: [] for name in floor}
    for number in range(place.times(30, 8)):
        one = pair[number % 2]
        how = ("try", "wait")[number // 2 % 2]
        samples[f"{how}, granted"].append(one.tt(how))
        for name, case in floor.items():
            rest[name].append(case())
        samples["release"].append(one.tt("release", *HANDOFF))
    found = samples | rest
    yield verb("release", found, 22, 1.8)
    yield verb("try, granted", found, 45)
    yield verb("wait, granted", found, 45)


def others(place, floor):
    """Everything that is not hot."""
    repo = place.repo()
    ann, bob = place.sessions(repo, 2)
    ann.result("try")
    commands = [
        ("whoami",),
        ("list",),
        ("join",),
        ("events",),
        ("health",),
        ("wakes",),
        ("notes", "add", "remember"),
        ("notes", "list"),
        ("config", "list"),
        ("focus", "the parser"),
        ("msg", "recv"),
        ("--help",),
    ]
    cases = {" ".join(words[:2]): (lambda words=words: bob.tt(*words)) for words in commands}
    found = interleaved(cases | floor, place.times(20, 3))
    for name in cases:
        yield verb(name, found, 50)
