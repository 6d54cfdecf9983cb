"""SessionStart and SessionEnd: who this session is, and that it is over."""

from __future__ import annotations

import os

from bus import clock, datadir, deliver, process, quickjson
from bus.operations import present, session
from hooks.entry import Answer, attended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.operations.enter import Context
    from hooks.entry import Call


def run(call: Call) -> Answer | None:
    """Record the session; tell it in two lines how the bus works here."""
    if call.event.subagent:
        return None
    if call.harness == "grok":
        _record_grok(call)
    if call.event.kind not in ("session_start", "session_end"):
        return None
    ctx = session.enter(call.env, call.cwd, call.harness, call.event.session_id or None)
    if ctx is None:
        return None
    try:
        if call.event.kind == "session_end":
            if session.live(ctx):
                # 1.5 s is all that a client leaves: `codex queue` alone may take ten.
                deliver.ring(ctx.bus, session.end(ctx, call.event.reason).wakes)
            return None
        return _started(call, ctx)
    finally:
        ctx.close()


def _started(call: Call, ctx: Context) -> Answer | None:
    """Bind, then say how things are."""
    told = {"permission_mode": call.event.permission_mode} if call.event.permission_mode else {}
    outcome = session.begin(ctx, call.event.source, told)
    deliver.carry_out(ctx.bus, outcome)
    if call.harness == "grok":
        return None
    text = "\n".join(_lines(call, ctx))
    shown = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
    return Answer(stdout=quickjson.dumps(shown, ensure_ascii=False) + "\n")


def _lines(call: Call, ctx: Context) -> list[str]:
    """Two facts: what this is, and whether a wake is armed."""
    first = f"talking-stick: this repository has a bus; you are {ctx.me}. `tt` shows what others say and who may write."
    armed = call.harness == "claude" and attended(call.env)
    if armed or present.reach(ctx.bus, ctx.me).reachable():
        return [first, "Mail for you wakes this session by itself; it needs no polling."]
    return [first, "Nothing wakes this session by itself: `tt inbox` reads mail, one `tt wait` waits for it."]


def _record_grok(call: Call) -> None:
    """Grok names its session only to hooks: note it beside its process, once."""
    pid = os.getppid()
    anchor = process.anchor(pid)
    data = datadir.data_dir(call.env)
    if not call.event.session_id or anchor is None or not os.path.isdir(data):
        return
    path = os.path.join(data, "grok-sessions.jsonl")
    line = {"anchor": anchor, "session_id": call.event.session_id, "workspace": call.cwd}
    if _recorded(path, line):
        return
    line["at"] = clock.iso(clock.now())
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, (quickjson.dumps(line) + "\n").encode())
    finally:
        os.close(fd)


def _recorded(path: str, line: dict[str, str]) -> bool:
    """Is this session, process and workspace noted already?"""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            wanted = quickjson.dumps(line)[:-1]
            return any(noted.startswith(wanted) for noted in file)
    except OSError:
        return False
