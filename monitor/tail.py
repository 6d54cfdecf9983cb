"""`tt monitor`: follow the caller's notify file, one line for each wake, for a harness's monitor.

Kept true: it follows from the offset noted before it looked, so no line is lost in between;
nothing else goes to stdout; without a bus it blocks, silent, and makes none. Where the system
has a usable `tail -F` it becomes that, lock and pid with it, and costs a megabyte.
"""

from __future__ import annotations

import os
import signal
import sys

from bus import bell, clock, ids, limits, locks, notify, places
from bus.errors import BusError
from bus.operations import enter, offer, present, receive
from bus.store import agents, db, listeners, wakes
from bus.store.listeners import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from bus.operations.enter import Context

TAILS = ("/usr/bin/tail", "/bin/tail")
READ = 1 << 16


def run(env: Mapping[str, str], *, path: str | None, agent: str | None) -> int:
    """Register as the caller's monitor, then follow for ever. 0 when the reader or the client is gone.

    Raises duplicate_listener, and what finding a place raises.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ctx = _enter(env, path, agent)
    held = locks.hold(ctx.bus.lock(ctx.me, "monitor"), inheritable=True)
    if held is None:
        raise BusError("duplicate_listener", f"{ctx.me} has a monitor already", "one is enough; leave it running")
    notify_path = ctx.bus.notify_path(ctx.me)
    _start_anew(notify_path)
    offset = os.path.getsize(notify_path)
    _register(ctx)
    _first_line(ctx)
    ctx.close()
    tail = next((name for name in TAILS if os.access(name, os.X_OK)), None)
    if tail is not None and sys.platform == "linux":
        os.execv(tail, [tail, "-c", f"+{offset + 1}", "-F", notify_path])  # noqa: S606  # an argument list, no shell
    return _follow(notify_path, offset)


def _enter(env: Mapping[str, str], path: str | None, agent: str | None) -> Context:
    """The caller's view of its bus; waits, without a timer, until there is one."""
    data = places.data_dir(env)
    place = places.find(path, env)
    if db.exists(place.bus_dir):
        return enter.enter(path, agent=agent, need_room=False, env=env)
    places.ensure_private(data)
    with bell.Ears([os.path.join(data, "buses")]) as ears:
        ears.arm()
        while not db.exists(places.find(path, env).bus_dir):
            ears.wait()
    return enter.enter(path, agent=agent, need_room=False, env=env)


def _start_anew(path: str) -> None:
    """Make the file; one that grew large is replaced, never truncated: `tail -F` prints fragments then."""
    try:
        if os.path.getsize(path) > limits.NOTIFY_FILE:
            os.replace(path, path + ".old")
    except FileNotFoundError:
        pass
    notify.append(path, b"")


def _register(ctx: Context) -> None:
    """Describe the listener whose lock we hold, and make the agent known."""
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        room = ctx.found.id if ctx.found is not None else 0
        listeners.save(con, Listener(ctx.me, "monitor", ids.new_id("m", 6), room, "active", os.getpid(), clock.now()))


def _first_line(ctx: Context) -> None:
    """What waits already gets one line, unless another listener or an open wake sees to it."""
    con = ctx.bus.con
    known = agents.get(con, ctx.me)
    reach = present.reach(ctx.bus, ctx.me, known)
    there = wakes.open_of(con, ctx.me, known.generation) if known is not None else None
    if there is not None and there.route == "line":
        offer.reopen(ctx.bus, there.id, ctx.now)  # a line that nobody was there to read woke nobody
        there = None
    due = offer.levels(con, receive.boxes(con, ctx.me), ctx.now)
    if not due or there is not None or reach.wait or reach.rewake:
        return
    sys.stdout.buffer.write(notify.line(ctx.now, "tt", f"{len(due)} unread: read them with `tt inbox`"))
    sys.stdout.buffer.flush()


def _follow(path: str, offset: int) -> int:
    """The same as `tail -F`, for systems without it: by file events."""
    with bell.Ears([os.path.dirname(path)]) as ears:
        ears.arm()
        while True:
            offset = _copy(path, offset)
            ears.wait(clock.now() + limits.FALLBACK_POLL)


def _copy(path: str, offset: int) -> int:
    """Print what was appended; a new, shorter file is read from its beginning."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset if size >= offset else 0)
            while piece := file.read(READ):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return file.tell()
    except FileNotFoundError:
        return 0


def call_to_arm(env: Mapping[str, str], harness: str | None) -> dict[str, object]:
    """The exact Monitor call to arm by hand, for one harness."""
    command = f"exec {os.path.join(os.path.dirname(sys.executable), 'tt')} monitor"
    if harness in (None, "claude"):
        most = 600_000 if env.get("CLAUDE_CODE_SESSION_ATTENDED") == "0" else 1_800_000
        call = {"tool": "Monitor", "command": command, "description": "tt inbox", "timeout_ms": most}
        note = "it expires after this time; the plugin that `tt install claude-code` sets up does not"
        return {"status": "monitor", "call": call, "note": note}
    return {"status": "monitor", "call": {"command": command}, "note": f"{harness} has no monitor tool; use `tt wait`"}
