"""`tt monitor`: follow the caller's notify file, one line for each wake, for a harness's monitor.

Kept true: it follows from the offset noted before it looked, so no line is lost in between;
nothing else goes to stdout; without a bus it blocks, silent, and makes none. Where the system
has a usable `tail -F` it becomes that, lock and pid with it, and costs a megabyte.
"""

from __future__ import annotations

import os
import signal
import sys

from bus import bell, clock, deliver, identity, ids, limits, locks, notify, places, process
from bus.errors import BusError
from bus.operations import enter, offer, present, receive, sweep
from bus.operations.outcome import Wakes
from bus.store import agents, db, listeners
from bus.store.listeners import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    _serve(ctx)
    ctx.close()
    tail = next((name for name in TAILS if os.access(name, os.X_OK)), None)
    if tail is not None and sys.platform == "linux":
        os.execv(tail, [tail, "-c", f"+{offset + 1}", "-F", notify_path])  # noqa: S606  # an argument list, no shell
    return _follow(notify_path, offset)


def _enter(env: Mapping[str, str], path: str | None, agent: str | None) -> Context:
    """The caller's view of its bus; waits, without a timer, until there is one."""
    data = places.data_dir(env)
    place = places.find(path, env)
    if not places.has_bus(place.bus_dir):
        places.ensure_private(data)
        _block(env, os.path.join(data, "buses"), lambda: places.has_bus(places.find(path, env).bus_dir))
    try:
        return enter.enter(path, agent=agent, need_room=False, env=env)
    except BusError as error:
        if error.code != "session_ended":
            raise
        ended = str(error.details["agent_id"])
    # A resumed session: its SessionStart hook, which runs beside us, has not said so yet.
    with db.open_bus(places.find(path, env).bus_dir) as bus:
        key = identity.caller(env, os.getpid(), agent=agent).session_key
        _block(env, bus.agent_bell(ended), lambda: (agents.session(bus.con, key) or ("", ""))[1] == "live")
    return enter.enter(path, agent=agent, need_room=False, env=env)


def _block(env: Mapping[str, str], directory: str, there: Callable[[], bool]) -> None:
    """Wait for something that a bell announces; ends the process with its client."""
    caller = identity.caller(env, os.getpid())
    pid = process.anchor_pid(caller.anchor) if caller.verified and caller.anchor else None
    try:
        client = process.ExitWatch(pid, process.anchor_start(caller.anchor or "")) if pid is not None else None
    except (ProcessLookupError, OSError):
        sys.exit(0)
    with bell.Ears([directory], [client] if client is not None else []) as ears:
        ears.arm()
        while not there():
            if client is not None and client in ears.wait():
                sys.exit(0)
            if client is None:
                ears.wait()


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
        if agents.get(con, ctx.me) is None:  # else SessionStart says who is where: it must find its predecessor
            present.register(con, ctx)
        room = ctx.found.id if ctx.found is not None else 0
        listeners.save(con, Listener(ctx.me, "monitor", ids.new_id("m", 6), room, "active", os.getpid(), clock.now()))


def _serve(ctx: Context) -> None:
    """What waits already gets one line in the file, with its row, behind the offset that we follow from.

    None where another listener or an open wake sees to it.
    """
    known = agents.get(ctx.bus.con, ctx.me)
    if known is None:
        return
    offer.unheard(ctx.bus, known, ctx.now)
    boxes = receive.boxes(ctx.bus.con, ctx.me)
    deliver.send(ctx.bus, Wakes(boxes=[box for box in sweep.due(ctx.bus).boxes if box in boxes]))


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
