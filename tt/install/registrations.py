"""The shell lines that harnesses run, and which hook stands at which event of which harness.

Every line ends at once, silently, with code 0, when our program is gone: Python itself would
exit 2 for a missing file, and 2 blocks prompts and tools. The lines are short, because a client
quotes them to its model.
"""

from __future__ import annotations

import os
import shlex
import sys

from tt.install.hooksfile import MARKER, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Handler = dict[str, Any]

TIMEOUT = 20  # seconds, for everything that does its work and ends
FOREVER = 86_400  # a rewake without an explicit timeout is killed silently after 600 s
_AT_END = 1  # SessionEnd has 1.5 s in all, and what a plugin asks for can't raise that
_CODEX_AT_END = 3  # Codex's own limit
_NEVER_ENDS = "sleep 2147483647"  # a plugin monitor that ends is told to the model as a turn

PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(PACKAGES, "hooks", "run.py")


def line(name: str, harness: str | None = None, *, args: str = "", not_in_grok: bool = False) -> str:
    """The shell line of one hook. `not_in_grok`: Grok runs what it finds in Claude's settings as well.

    `-S`: site-packages cost a third of a silent hook's time; the one hook that needs them asks for them.
    """
    program = shlex.quote(PROGRAM)
    test = f"[ -f {program} ]" + (' && [ -z "$GROK_HOOK_EVENT" ]' if not_in_grok else "")
    words = [shlex.quote(sys.executable), "-I", "-S", program, name, *(["--harness", harness] if harness else [])]
    return f"{test} || exit 0; exec {' '.join(words)}{args and ' ' + args}{MARKER}"


def monitor_line() -> str:
    """The shell line of Claude's plugin monitor. Without our program it blocks, so that nobody is told."""
    program = shlex.quote(os.path.join(PACKAGES, "tt", "__main__.py"))
    start = f"exec {shlex.quote(sys.executable)} -I -m tt monitor"
    return f"[ -f {program} ] || exec {_NEVER_ENDS}; {start}{MARKER}"


def handler(command: str, timeout: int = TIMEOUT, **more: bool) -> Handler:
    """One entry of a hooks file."""
    return {"type": "command", "command": command, "timeout": timeout, **more}


def claude(*, guard: bool, in_settings: bool) -> list[Group]:
    """Claude Code's hooks: what must answer is synchronous, what only tells us is not."""

    def hook(name: str, timeout: int = TIMEOUT, args: str = "", how: str = "") -> Handler:
        more = {how: True} if how else {}
        return handler(line(name, "claude", args=args, not_in_grok=in_settings), timeout, **more)

    rewake = hook("rewake", FOREVER, how="asyncRewake")
    publish = hook("publish", how="async")
    # Byte-identical to Grok's own entry, so that Grok runs it once; a plugin is not read by Grok.
    stop_guard = handler(stop_line()) if in_settings else hook("stop-guard")
    # Without a guard nobody else would write that the turn is closed.
    at_stop = publish if guard else hook("publish", args="--no-guard", how="async")
    return [
        Group("SessionStart", [hook("session"), publish, rewake]),
        Group("UserPromptSubmit", [hook("board")]),
        Group("Stop", [*([stop_guard] if guard else []), at_stop, rewake]),
        Group("StopFailure", [publish]),
        Group("Notification", [publish], "idle_prompt"),
        Group("SubagentStop", [hook("subagent-stop", how="async")]),
        Group("SessionEnd", [hook("session", _AT_END), hook("publish", _AT_END)]),
    ]


def stop_line() -> str:
    """The guard's line that Claude's settings and Grok share; it tells the dialect from its input."""
    return line("stop-guard")


def codex() -> list[Group]:
    """Codex's hooks, all synchronous: it never runs async ones."""

    def hook(name: str, timeout: int = TIMEOUT) -> Handler:
        return handler(line(name, "codex"), timeout)

    return [
        Group("SessionStart", [hook("session")]),
        Group("UserPromptSubmit", [hook("board")]),
        Group("Stop", [hook("stop-guard"), hook("publish")]),
        Group("SessionEnd", [hook("session", _CODEX_AT_END)]),
    ]


def grok() -> dict[str, list[Group]]:
    """Grok's three files, by name. The names are those of older installs, which they replace."""
    session, inbox = handler(line("session", "grok")), handler(line("inbox", "grok"))
    return {
        "talking-stick-session.json": [
            Group(name, [session]) for name in ("SessionStart", "UserPromptSubmit", "SessionEnd")
        ],
        "talking-stick-stop.json": [Group("Stop", [handler(stop_line())])],
        "talking-stick-inbox.json": [Group(name, [inbox]) for name in ("PostToolUse", "PostToolUseFailure", "Stop")],
    }


def antigravity() -> dict[str, list[Handler]]:
    """Antigravity's named hook. Its input has no event name, so each command gets it as an argument.

    Never PreToolUse: that event fails closed, and nobody may be blocked by accident.
    """

    def hook(name: str, event: str) -> Handler:
        return handler(line(name, "antigravity", args=event))

    return {
        "SessionStart": [hook("session", "SessionStart")],
        "Stop": [hook("publish", "Stop")],
    }


def as_file(groups: list[Group]) -> dict[str, Any]:
    """A whole hooks file of ours."""
    events: dict[str, list[Any]] = {}
    for group in groups:
        shown: dict[str, Any] = {} if group.matcher is None else {"matcher": group.matcher}
        events.setdefault(group.event, []).append({**shown, "hooks": group.handlers})
    return {"hooks": events}
