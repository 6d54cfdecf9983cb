"""A long past: every verb at a million events and two hundred members, against a thousand events."""

from __future__ import annotations

import os
import sqlite3

from tests.bench.kit import Row, interleaved, median

MEMBERS = 200


def rows(place):
    """One row per verb."""
    sizes = {"small": 1_000, "large": place.times(1_000_000, 100_000)}
    stores = {name: make(place, size) for name, size in sizes.items()}
    cases = {}
    for name, (ann, bob) in stores.items():
        for words in verbs(ann.id):
            cases[f"{name} {' '.join(words[:2])}"] = lambda words=words, bob=bob: bob.tt(*words)
    found = interleaved(cases, place.times(25, 5))
    for words in verbs(""):
        verb = " ".join(words[:2])
        ours, small = median(found[f"large {verb}"]), median(found[f"small {verb}"])
        what = f"{sizes['large']:,} events, {MEMBERS} members: `tt {verb}`"
        yield Row(what, ours, "≤ 1.3×", ok=ours <= 1.3 * small, compared={"1,000 events": round(small, 1)})


def verbs(target: str):
    """What an agent does all day."""
    return [
        ("try",),
        ("wait", "--timeout", "0"),
        ("msg", "send", target, "hello"),
        ("state",),
        ("inbox",),
        ("events",),
        ("health",),
        ("list",),
        ("wakes",),
        ("notes", "list"),
    ]


def make(place, count: int):
    """A bus with that many events and two hundred members, two of them alive."""
    repo = place.repo()
    ann, bob = place.sessions(repo, 2)
    ann.result("try")
    bus_dir = next(path for path in place.world.bus_dirs() if os.path.basename(repo) + "-" in path)
    con = sqlite3.connect(os.path.join(bus_dir, "bus.db"), isolation_level=None)
    con.execute("PRAGMA synchronous = OFF")
    con.execute("BEGIN")
    try:
        fill(con, [ann.id, bob.id], count)
        con.execute("COMMIT")
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        con.close()
    bob.result("inbox")
    return ann, bob


def fill(con: sqlite3.Connection, present: list[str], count: int) -> None:
    """Members of the past, public and directed messages, all read by those who are there."""
    now = con.execute("SELECT MAX(at) FROM events").fetchone()[0]
    past = [f"claude:{n:08x}" for n in range(MEMBERS - len(present))]
    con.executemany(
        "INSERT INTO agents (id, kind, harness, name, last_seen) VALUES (?, 'harness', 'claude', 'claude', ?)",
        [(agent, now) for agent in past],
    )
    con.executemany(
        "INSERT INTO members (agent, room, cursor, rank, joined_at) VALUES (?, 1, 0, ?, ?)",
        [(agent, 10 + n, now) for n, agent in enumerate(past)],
    )
    start = con.execute("SELECT MAX(seq) FROM events").fetchone()[0]
    body = '{"text": "something that was said some time ago, of an ordinary length for a message"}'
    con.executemany(
        "INSERT INTO events (seq, id, room, type, sender, public, at, body) VALUES (?, ?, 1, 'message', ?, ?, ?, ?)",
        (
            (start + n, f"eold{n:012x}", past[n % len(past)], n % 3 == 0, now - (count - n) * 10, body)
            for n in range(1, count + 1)
        ),
    )
    con.executemany(
        "INSERT INTO mail (box, seq, received_at, received_by) VALUES (?, ?, ?, 'wait')",
        ((present[n % 2], start + n, now) for n in range(1, count + 1) if n % 3),
    )
    con.execute("UPDATE members SET cursor = ?", (start + count,))
    con.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'events'", (start + count,))
