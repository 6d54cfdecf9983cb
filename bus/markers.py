"""What harnesses leave in the environment of their children, and how their processes are named.

Tables, and small questions to them. Variables are inherited and can be dropped or set by
anyone: `bus.identity` weighs them against the processes above us.
"""

from __future__ import annotations

from bus import ids
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bus.process import Proc


class Marker(Record):
    """What one harness puts into the environment of its children, by name."""

    harness: str
    shown_by: tuple[tuple[str, str], ...]  # name and value; an empty value means any
    sessions: tuple[str, ...] = ()  # where its session id is, best first
    pids: tuple[str, ...] = ()  # where its own pid is, best first


# The order is the order of the rules. GROK_SESSION_ID alone shows nothing: it outlives Grok.
MARKERS = (
    Marker("claude", (("CLAUDECODE", "1"),), ("CLAUDE_CODE_SESSION_ID",), ("CLAUDE_PID", "CMUX_CLAUDE_PID")),
    Marker("codex", (("CODEX_THREAD_ID", ""), ("CODEX_MANAGED_BY_NPM", "1")), ("CODEX_THREAD_ID",)),
    Marker(
        "antigravity",
        (("ANTIGRAVITY_AGENT", "1"), ("ANTIGRAVITY_CONVERSATION_ID", ""), ("ANTIGRAVITY_TRAJECTORY_ID", "")),
        ("ANTIGRAVITY_CONVERSATION_ID", "ANTIGRAVITY_TRAJECTORY_ID"),
    ),
    Marker("gemini", (("GEMINI_CLI", "1"),)),
    Marker("grok", (("GROK_AGENT", "1"),), ("GROK_SESSION_ID",)),
    Marker("opencode", (("OPENCODE", "1"),), ("TT_HARNESS_SESSION_ID", "OPENCODE_RUN_ID"), ("OPENCODE_PID",)),
)
BY_HARNESS = {marker.harness: marker for marker in MARKERS}
CMUX = "CMUX_AGENT_LAUNCH_KIND"
# No names by themselves, but no person has them: an agent that dropped its marker keeps one of these.
_TRACES = (
    "AI_AGENT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_PID",
    "CMUX_CLAUDE_PID",
    "CODEX_CI",
    "CODEX_MANAGED_BY_BUN",
    "CODEX_SANDBOX",
    "CODEX_SESSION_ID",
    "CODEX_TOOL_CALL_ID",
    "GROK_HOOK_EVENT",
    "OPENCODE_PID",
    "OPENCODE_RUN_ID",
)
TERMINALS = ("ITERM_SESSION_ID", "CMUX_TAB_ID", "KITTY_WINDOW_ID", "WEZTERM_PANE", "TMUX_PANE", "STY")
# A shared daemon has these from whoever started it first.
_UNTRUSTED = frozenset((*TERMINALS, "TMUX", "HANDS_ID", "CMUX_SURFACE_ID", "CMUX_WORKSPACE_ID", CMUX))

_PROGRAMS = {
    "claude": "claude",
    "codex": "codex",
    "grok": "grok",
    "opencode": "opencode",
    "agy": "antigravity",
    "antigravity": "antigravity",
    "gemini": "gemini",
}
_PACKAGES = {"claude-code": "claude", "gemini-cli": "gemini", "opencode-ai": "opencode"}
_SCRIPT_HOSTS = frozenset(("node", "nodejs", "bun", "deno"))
_SHELLS = frozenset(
    (
        "sh",
        "bash",
        "dash",
        "zsh",
        "fish",
        "ksh",
        "mksh",
        "tcsh",
        "csh",
        "ash",
        "nu",
        "pwsh",
        "xonsh",
        "busybox",
    )
)
# Above a program, but never a harness: the generic ancestry passes over them.
_SYSTEM = _SHELLS.union(
    ("init", "systemd", "launchd", "login", "sshd", "su", "sudo", "doas", "tini", "docker-init", "dumb-init"),
    ("containerd-shim", "conmon", "bwrap", "env", "timeout", "nice", "nohup", "setsid", "script", "make"),
    ("just", "xargs", "git", "uv", "tox", "tmux", "screen", "zellij", "cmux", "iterm2", "terminal", "kitty"),
    ("wezterm", "wezterm-gui", "alacritty", "ghostty", "konsole", "xterm", "gnome-terminal-server", "foot"),
    ("python", "python3", "pytest", "tt"),
)


def shown(env: Mapping[str, str]) -> dict[str, str]:
    """The harnesses whose markers are set, with the variable that shows each, in order of the rules."""
    found: dict[str, str] = {}
    for marker in MARKERS:
        name = next((name for name, value in marker.shown_by if _has(env, name, value)), None)
        if name:
            found[marker.harness] = name
    kind = _cmux_kind(env)
    if kind:
        found.setdefault(kind, CMUX)
    return found


def named_pids(env: Mapping[str, str], harnesses: Iterable[str | None]) -> dict[int, str]:
    """The processes that these harnesses name as their own: pid and harness."""
    found: dict[int, str] = {}
    for harness in harnesses:
        marker = BY_HARNESS.get(harness or "")
        texts = (env.get(name, "") for name in marker.pids) if marker else ()
        pid = next((int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= 10), 0)
        if pid > 1 and harness:
            found.setdefault(pid, harness)
    return found


def traces(env: Mapping[str, str]) -> list[str]:
    """Variables that only a harness sets, even where its marker is gone."""
    return [name for name in _TRACES if env.get(name)]


def trusted(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without names that a shared daemon has from the session that started it.

    `TT_TEST_…` stays: tests set it for everything they start.
    """
    return {
        name: value
        for name, value in env.items()
        if name not in _UNTRUSTED and (not name.startswith("TT_") or name.startswith("TT_TEST_"))
    }


def is_on(value: str | None) -> bool:
    """Whether a switch in the environment is on."""
    return (value or "").strip().lower() in ("1", "true")


def harness_of(proc: Proc) -> str | None:
    """Which harness a process is: by its name, its program, or the script that it runs."""
    for text in (proc.name, proc.argv0, proc.exe):
        found = _PROGRAMS.get(program(text))
        if found:
            return found
    script = _script(proc)
    if not script:
        return None
    parts = script.replace("\\", "/").split("/")
    packages = (_PACKAGES.get(part) for part in parts[:-1])
    return _PROGRAMS.get(program(script)) or next(filter(None, packages), None)


def is_shell(proc: Proc) -> bool:
    """Whether the process is a shell; a login shell's name begins with a hyphen."""
    return program(proc.name.lstrip("-")) in _SHELLS


def generic(proc: Proc) -> str | None:
    """The kind that an unknown harness gets from its program, None for shells, tools and terminals."""
    name = program((_script(proc) or proc.argv0 or proc.name).lstrip("-"))
    kind = "".join(char if char.isascii() and char.isalnum() else "-" for char in name.lower()).strip("-")[:32]
    usable = proc.pid > 1 and name not in _SYSTEM and proc.name not in _SYSTEM
    return kind if usable and ids.is_kind(kind) and kind not in ids.RESERVED else None


def program(path: str) -> str:
    """The bare name of a program: no folder, no `.exe` or `.js`, no platform, no version folder."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    if folder.endswith("/versions"):  # …/claude/versions/2.1.332
        name = folder.removesuffix("/versions").rpartition("/")[2]
    for ending in (".exe", ".js", ".mjs", ".cjs", ".ts"):
        name = name.removesuffix(ending)
    for platform in ("-x86_64", "-aarch64", "-linux-", "-darwin-"):
        name = name.partition(platform)[0]
    return name


def _script(proc: Proc) -> str:
    """The script that node, bun or deno runs: the first argument that is no option."""
    hosts = (program(proc.name), program(proc.argv0), program(proc.exe))
    if not any(name in _SCRIPT_HOSTS for name in hosts):
        return ""
    words = (word for word in proc.argv[1:] if word and not word.startswith("-") and word != "run")
    return next(words, "")


def _has(env: Mapping[str, str], name: str, value: str) -> bool:
    """Whether a variable is set, to this value if there is one to check."""
    found = env.get(name)
    return found == value if value else bool(found)


def _cmux_kind(env: Mapping[str, str]) -> str | None:
    """The harness that cmux says it launched; a name of its own is taken if the grammar allows it."""
    text = env.get(CMUX, "").strip().lower()
    kind = _PROGRAMS.get(text) or _PACKAGES.get(text) or text
    return kind if len(kind) <= 32 and ids.is_kind(kind) and kind not in ids.RESERVED else None
