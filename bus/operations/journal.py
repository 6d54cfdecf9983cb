"""The journal: commits, memory files, handoffs, tickets, asks, as events for others to read."""

from __future__ import annotations

import os

from bus import clock, digest, gitdir, limits
from bus.operations import receive
from bus.operations.enter import room_or_bus
from bus.operations.outcome import Outcome
from bus.records import Record
from bus.store import db, events, rooms
from bus.store.events import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bus.operations.enter import Context

TYPES = ("commit", "memory", "release", "pass", "assign", "handoff", "ticket", "ask", "answer")
COMMITS_MOST = 50
SUBJECT_CHARS = 200
INDEX_FILE = "MEMORY.md"


class Commit(Record):
    """A commit that is announced."""

    sha: str
    subject: str


def new_commits(root: str, before: str, after: str, env: Mapping[str, str]) -> list[Commit]:
    """Commits of this author on this branch between two heads, oldest first; merged-in ones are others' news.

    None where `before` is no ancestor: after a rebase or reset everything would look new.
    """
    if before == after:
        return []
    asked = gitdir.git(["-C", root, "merge-base", "--is-ancestor", before, after], env)
    author = gitdir.git(["-C", root, "config", "user.email"], env)
    if asked is None or asked.code != 0 or author is None or author.code != 0:
        return []
    email = author.out.decode("utf-8", "replace").strip()
    words = ["log", "--first-parent", "--no-merges", "-z", "--format=%H %ae%n%s", "-n", str(COMMITS_MOST)]
    done = gitdir.git(["-C", root, *words, f"{before}..{after}"], env)
    if done is None or done.code != 0:
        return []
    found = []
    for entry in done.out.decode("utf-8", "replace").split("\0"):
        head, _, subject = entry.strip("\n").partition("\n")
        sha, _, by = head.partition(" ")
        if sha and by == email:
            found.append(Commit(sha, " ".join(subject.split())[:SUBJECT_CHARS]))
    return found[::-1]


def project_folder(root: str) -> str:
    """How the client names its folder for a project: every character that is no letter or digit is a hyphen."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in root)


def memory_files(env: Mapping[str, str], home: str, root: str) -> dict[str, int]:
    """The client's memory files of this project: name → time of change, ms. The index file is no news."""
    base = env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    folder = os.path.join(base, "projects", project_folder(root), "memory")
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    found = {}
    for name in names[:500]:
        if name.endswith(".md") and name != INDEX_FILE:
            try:
                found[name] = os.stat(os.path.join(folder, name)).st_mtime_ns // 1_000_000
            except OSError:
                continue
    return found


def record(ctx: Context, commits: list[Commit], branch: str | None, memory: dict[str, int]) -> None:
    """Write what is new: each commit and each state of a memory file once for the bus, whoever publishes it first."""
    if not commits and not memory:
        return
    with db.Write(ctx.bus.con) as con:
        where = room_or_bus(con, ctx)
        for commit in commits:
            body: dict[str, Any] = {"sha": commit.sha, "subject": commit.subject, "branch": branch}
            draft = Draft(where, "commit", ctx.me, ctx.now, body, sender_station=ctx.station())
            events.append_once(con, draft, f"commit-{commit.sha}")
        for name, changed_at in sorted(memory.items()):
            draft = Draft(where, "memory", ctx.me, ctx.now, {"file": name}, sender_station=ctx.station())
            state = f"{ctx.place.root}\0{name}\0{changed_at}".encode("utf-8", "surrogateescape")
            events.append_once(con, draft, f"memory-{digest.digest(state)[:24]}")


def view(ctx: Context, since_ms: int, limit: int | None = None) -> Outcome:
    """What happened on this bus since then, oldest first."""
    most = limit or limits.VIEW_EVENTS
    everywhere = (rooms.BUS, *(room.id for room in rooms.every(ctx.bus.con)))
    wanted = events.View(everywhere, 0, most + 1, None, ctx.me, TYPES, None, ctx.now - since_ms)
    found = events.view(ctx.bus.con, wanted, newest_first=True)
    more = len(found) > most
    shown = receive.shown(ctx.bus.con, ctx.me, found[1:] if more else found)
    result: dict[str, Any] = {"status": "journal", "entries": shown, "since": clock.iso(ctx.now - since_ms)}
    if more:
        result["more"] = True
    return Outcome(result)


def line(event: dict[str, Any]) -> str:
    """An entry as one line, for the board; escaped by who shows it."""
    kind = event["type"]
    if kind == "commit":
        return f"committed {event.get('sha', '')[:10]} on {event.get('branch')}: {event.get('subject', '')}"
    if kind == "memory":
        return f"changed the memory file {event.get('file', '')}"
    if kind in ("ticket", "ask", "answer"):
        return (
            f"{kind} {event.get('ticket_id') or event.get('ask_id')} {event.get('state', '')}: {event.get('title', '')}"
        )
    handoff = event.get("handoff") or {}
    return f"handed over turn {event.get('turn_id')}: {handoff.get('status', '')}"
