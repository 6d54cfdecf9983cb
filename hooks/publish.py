"""Stop, SessionStart, SessionEnd, StopFailure, idle: presence, and what the bus needs done."""

from __future__ import annotations

import os

from bus import datadir, deliver, marks, quickjson
from bus.operations import journal, session, sweep
from hooks import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.enter import Context
    from bus.operations.journal import Commit
    from hooks.entry import Answer, Call

SETTINGS_BYTES = 1 << 20


def run(call: Call) -> Answer | None:
    """Publish presence and sweep. Prints nothing."""
    if call.event.subagent or call.event.kind not in ("stop", "session_start", "session_end", "stop_failure", "idle"):
        return None
    seen = session.locate(call.env, call.cwd, call.harness, call.event.session_id or None)
    if seen is None or (call.harness == "codex" and not entry.detached()):
        return None
    ctx = session.arrive(seen)
    try:
        if call.event.kind == "session_start":  # whichever hook of a start comes first binds the session
            deliver.send(ctx.bus, session.for_others(ctx, session.begin(ctx, call.event.source, {}).wakes))
        if session.live(ctx) and call.event.kind != "session_end":
            told = _told(call, ctx)
            journal.record(ctx, *_news(call, ctx, told))  # before the baseline moves: what was said is not said again
            session.publish(ctx, told)
            _close_turn(call, ctx)
        deliver.send(ctx.bus, sweep.due(ctx.bus) + sweep.sweep(ctx.bus, data=datadir.data_dir(ctx.env)))
    finally:
        ctx.close()
    return None


def _news(call: Call, ctx: Context, told: dict[str, Any]) -> tuple[list[Commit], str | None, dict[str, int]]:
    """Commits and memory files since the last publish of this session; its first one is the baseline."""
    before = session.stored(ctx)
    home = datadir.home_dir(call.env)
    memory = journal.memory_files(call.env, home, ctx.place.root) if call.harness == "claude" else {}
    told["memory"] = memory
    known = before.get("memory")
    changed = {name: at for name, at in memory.items() if known.get(name) != at} if isinstance(known, dict) else {}
    head, last = told.get("head"), before.get("head")
    same_branch = before.get("branch") == told.get("branch")
    fresh = bool(head and last and same_branch)
    commits = journal.new_commits(ctx.place.root, str(last), str(head), call.env) if fresh else []
    return commits, told.get("branch"), changed


def _told(call: Call, ctx: Context) -> dict[str, Any]:
    """What this hook saw of its session."""
    told = session.working_tree(ctx)
    if call.event.permission_mode:
        told["permission_mode"] = call.event.permission_mode
    if call.event.transcript:
        told["transcript"] = call.event.transcript
    if call.harness == "claude":
        told["inbound"] = inbound(call, ctx.place.root)
    return told


def inbound(call: Call, root: str) -> str | None:
    """The client's `crossSessionInbound`, by its settings files; a later one wins."""
    home = call.env.get("CLAUDE_CONFIG_DIR") or os.path.join(datadir.home_dir(call.env), ".claude")
    project = os.path.join(root, ".claude")
    found = None
    for path in (
        os.path.join(home, "settings.json"),
        os.path.join(project, "settings.json"),
        os.path.join(project, "settings.local.json"),
    ):
        value = _setting(path)
        found = value if value is not None else found
    return found


def _setting(path: str) -> str | None:
    """One file's word."""
    try:
        with open(path, encoding="utf-8") as file:
            settings = quickjson.loads(file.read(SETTINGS_BYTES))
    except (OSError, ValueError):
        return None
    value = settings.get("crossSessionInbound") if isinstance(settings, dict) else None
    return value if isinstance(value, str) else None


def _close_turn(call: Call, ctx: Context) -> None:
    """A turn that ended without the guard's word: after an interrupt, an error, or where no guard is installed."""
    by_guard = call.event.kind == "stop" and "--no-guard" not in call.flags
    mark = marks.read(ctx.bus, ctx.me)
    if mark.opened and not by_guard and call.event.kind != "session_start":
        marks.write(ctx.bus, ctx.me, mark.replace(opened=False, at=ctx.now))
