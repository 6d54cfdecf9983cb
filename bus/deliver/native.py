"""Native submissions: Claude Code's inbox socket, `codex queue`, cmux.

Each answers (state, error): `sent` means handed over, not read; `failed` is definite, so the
next route may be tried; `ambiguous` stops the chain, because nobody is woken twice for one
event. Secrets (socket, token) never leave this module.
"""

from __future__ import annotations

import os

from bus import quickjson
from bus.store import mail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from bus.operations.offer import Offered
    from bus.store.agents import Agent

    Answer = tuple[str, str | None]

CLAUDE_SECONDS = 2.0
CODEX_SECONDS = 10.0
CMUX_SECONDS = 5.0


def submit(agent: Agent, name: str, offered: Offered) -> Answer:
    """Submit an offer through one endpoint of an agent. Never raises."""
    ends = quickjson.loads(agent.endpoints or "{}").get(name) or {}
    ways: dict[str, Callable[[], Answer]] = {
        "claude_inbox": lambda: claude(
            str(ends.get("socket", "")),
            str(ends.get("token", "")),
            offered.text,
            later=offered.level <= mail.AFTER_TURN,
        ),
        "codex_queue": lambda: codex(str(ends.get("thread", "")), offered.text),
        "cmux": lambda: cmux(str(ends.get("surface", "")), offered.line),
    }
    return ways[name]()


def claude(path: str, token: str, text: str, *, later: bool) -> Answer:
    """Two JSON lines, then half-close; the client never answers. `later`: after the whole turn."""
    import socket  # only a native wake pays for it

    message = {"type": "user", "message": {"role": "user", "content": text}, "priority": "later" if later else "next"}
    data = "".join(quickjson.dumps(line) + "\n" for line in ({"type": "auth", "token": token}, message)).encode()
    try:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:
        return "failed", "claude_inbox_unreachable"
    with peer:
        peer.settimeout(CLAUDE_SECONDS)
        try:
            peer.connect(path)
        except (OSError, ValueError):
            return "failed", "claude_inbox_unreachable"
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
        except TimeoutError:
            return "ambiguous", "claude_inbox_timeout"
        except (BrokenPipeError, ConnectionResetError):
            return "ambiguous", "claude_inbox_closed"
        except OSError:
            return "ambiguous", "claude_inbox_write_failed"
    return "sent", None


SECRETS = ("CLAUDE_CODE_MESSAGING_", "CLAUDE_CODE_SESSION", "CLAUDECODE")
# With these a terminal's wrapper of the client puts its own hooks into the call, and the submission fails.
WRAPPERS = ("CMUX_",)


def clean_env(without: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment for another client's program: no session's socket or token, PATH kept."""
    return {name: value for name, value in os.environ.items() if not name.startswith(SECRETS + without)}


def is_uuid(text: str) -> bool:
    """Is it a thread id as Codex gives them?"""
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        char in "0123456789abcdef" for part in parts for char in part.lower()
    )


def codex(thread: str, text: str) -> Answer:
    """`codex queue`: exit 0 means stored, not started."""
    if not is_uuid(thread):
        return "failed", "invalid_codex_thread"
    answer = _run(["codex", "queue", "--thread", thread, "--message", text], CODEX_SECONDS, WRAPPERS)
    if answer is None:
        return "failed", "codex_unavailable"
    code, words = answer
    if code == 0:
        return "sent", None
    if "no rollout found" in words:
        return "failed", "codex_thread_not_found"
    return "ambiguous", "codex_queue_timeout" if code is None else "codex_queue_failed"


def cmux(surface: str, line: str) -> Answer:
    """Type the fixed, body-free line, then press Enter separately; both must succeed."""
    if not surface:
        return "failed", "cmux_endpoint_required"
    answer = _run(["cmux", "send", "--surface", surface, line], CMUX_SECONDS)
    if answer is None:
        return "failed", "cmux_unavailable"
    if answer[0] != 0:
        return "ambiguous" if answer[0] is None else "failed", "cmux_send_failed"
    enter = _run(["cmux", "send-key", "--surface", surface, "enter"], CMUX_SECONDS)
    return ("sent", None) if enter is not None and enter[0] == 0 else ("ambiguous", "cmux_enter_failed")


def _run(argv: list[str], seconds: float, without: tuple[str, ...] = ()) -> tuple[int | None, str] | None:
    """Run a client's program: (exit code or None after a time-out, its words); None when it isn't there.

    `without`: beginnings of names that its environment is not to have.
    """
    import subprocess  # only a native wake pays for it

    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            env=clean_env(without),
            check=False,
        )
    except (OSError, ValueError):  # not there, not executable, not a program
        return None
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")
