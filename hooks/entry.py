"""The way into every hook: read, decide, print, mark; whatever goes wrong, exit 0.

Kept true: exit 2 only for a deliberate block or a rewake; nothing on stdout but a finished
answer; an unknown name or option is silence; one bounded diagnostic line says what went wrong.
"""

from __future__ import annotations

import os
import select
import sys

from bus import clock
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hooks.wire import Event

NAMES = {
    "publish": "publish",
    "subagent-stop": "subagent_stop",
    "board": "board",
    "stop-guard": "stop_guard",
    "rewake": "rewake",
    "inbox": "inbox",
    "session": "session",
}
STDIN_BYTES = 4 * 1024 * 1024
STDIN_MS = 1000  # a harness that never closes stdin
LOG_BYTES = 64 * 1024
LINE_BYTES = 500


class Call(Record):
    """One call of a hook: its options, the event, the environment."""

    harness: str | None
    event: Event
    env: Mapping[str, str]
    flags: frozenset[str] = frozenset()

    @property
    def cwd(self) -> str:
        """Where the session works."""
        return self.event.cwd or os.getcwd()


class Answer(Record):
    """What a hook says; `after` runs once both streams were flushed."""

    code: int = 0
    stdout: str = ""
    stderr: str = ""
    after: Callable[[], None] | None = None


def main(argv: list[str]) -> int:
    """Run one hook by name; its exit code. Never raises."""
    name = argv[0] if argv else ""
    try:
        module = NAMES.get(name)
        return 0 if module is None else _run(module, argv[1:], os.environ)
    except BaseException as error:  # noqa: BLE001  # a hook that fails must not be felt
        _note(name, error)
        return 0


def _run(module: str, words: list[str], env: Mapping[str, str]) -> int:
    """Read the event, ask the hook, print, then let it mark what was printed."""
    missing = _missing()
    harness, flags, told = _options(words)
    if env.get("GROK_HOOK_EVENT") and harness == "claude":
        return 0  # Grok runs what it finds in Claude's settings; this is no Claude session
    if not harness and env.get("GROK_HOOK_EVENT"):
        harness = "grok"
    from hooks import wire

    event = wire.parse(_stdin(), env, told)
    if event is None or event.kind == "other":
        return 0
    hook = __import__("hooks." + module, fromlist=["run"]).run
    answer: Answer | None = hook(Call(harness, event, env, flags))
    if answer is None:
        return 0
    if _say(1, answer.stdout, missing) and _say(2, answer.stderr, missing):
        if answer.after is not None:
            answer.after()
        return answer.code
    return 0


def _options(words: list[str]) -> tuple[str | None, frozenset[str], str]:
    """--harness H and bare flags; what is unknown is ignored. A bare word names the event."""
    harness, flags, told = None, set(), ""
    left = iter(words)
    for word in left:
        if word == "--harness":
            harness = next(left, None)
        elif word.startswith("--harness="):
            harness = word.partition("=")[2]
        elif word.startswith("--"):
            flags.add(word)
        else:
            told = told or word
    return harness or None, frozenset(flags), told


def _stdin() -> bytes:
    """What the harness sends, limited in size and time."""
    end = clock.monotonic() + STDIN_MS
    poll = select.poll()
    poll.register(0, select.POLLIN)
    data = b""
    size = 0
    while True:
        left = end - clock.monotonic()
        if left <= 0 or not poll.poll(left):
            break
        piece = os.read(0, 1 << 16)
        if not piece:
            break
        size += len(piece)
        if size <= STDIN_BYTES:  # the rest is read and dropped: a broken pipe would be an error over there
            data += piece
    return data if size <= STDIN_BYTES else b""


def detached() -> bool:
    """Codex waits for every hook: go on in a process of our own. True in that process.

    To be called before a store is opened: a connection must not be carried over a fork.
    """
    if os.fork():
        return False
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    return True


def _missing() -> list[int]:
    """The standard streams that are closed; filled, or a file that we open would take such a number."""
    found = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            found.append(fd)
    return found


def _say(fd: int, words: str, missing: list[int]) -> bool:
    """Write all of it; false when nobody takes it."""
    if words and fd in missing:
        return False
    data = words.encode("utf-8", "replace")
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return False
    return True


def _note(name: str, error: BaseException) -> None:
    """One bounded line for `tt doctor`; the log starts anew when it is full."""
    try:
        from bus import datadir

        data = datadir.data_dir(os.environ)
        if not os.path.isdir(data):
            return
        path = os.path.join(data, "hooks.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
            flags |= os.O_TRUNC
        line = f"{clock.iso(clock.now())} {name} {type(error).__name__}: {error}".replace("\n", " ")
        fd = os.open(path, flags, 0o600)
        try:
            os.write(fd, line.encode("utf-8", "replace")[:LINE_BYTES] + b"\n")
        finally:
            os.close(fd)
    except Exception:  # noqa: BLE001, S110  # there is nobody left to tell
        pass


def attended(env: Mapping[str, str]) -> bool:
    """Does somebody sit at this session? In `-p` runs a hook that blocks would hold the process."""
    return env.get("CLAUDE_CODE_SESSION_ATTENDED") != "0" and env.get("CLAUDE_CODE_ENTRYPOINT") != "sdk-cli"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
