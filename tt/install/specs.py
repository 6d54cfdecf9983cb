"""The table of harnesses: where each keeps its settings, how it is recognised, what we write there.

Everything about a harness that another module needs to know before it acts is one row here.
"""

from __future__ import annotations

import os

from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tt.install.work import Work


class Spec(Record):
    """One harness. Paths are relative to its root; `module` has `install(run)` and `uninstall(run)`."""

    name: str
    title: str
    programs: tuple[str, ...]
    variable: str  # names the root; empty: there is none
    root: tuple[str, ...]  # below the home directory
    marks: tuple[str, ...] = ("",)  # directories below the root that show that it is in use
    shared_skill: bool = True  # reads ~/.agents/skills
    old_skills: tuple[tuple[str, ...], ...] = ()  # below home: where duplicates of the skill may be
    note: str = ""

    @property
    def module(self) -> str:
        """The module that knows how."""
        return f"tt.install.{self.name}"

    def directory(self, env: Mapping[str, str], home: str) -> str:
        """Its root, whether it exists or not."""
        named = env.get(self.variable, "") if self.variable else ""
        if named.startswith("~/"):
            named = home + named[1:]
        if not os.path.isabs(named):
            return os.path.join(home, *self.root)
        return os.path.join(named, "opencode") if self.variable == "XDG_CONFIG_HOME" else os.path.normpath(named)

    def present(self, run: Work) -> bool:
        """Whether the harness is on this machine: its program or its settings are."""
        root = self.directory(run.env, run.home)
        return any(os.path.isdir(os.path.join(root, mark)) for mark in self.marks) or bool(run.which(*self.programs))


SPECS = (
    Spec("claude", "Claude Code", ("claude",), "CLAUDE_CONFIG_DIR", (".claude",), shared_skill=False),
    Spec(
        "codex",
        "Codex",
        ("codex",),
        "CODEX_HOME",
        (".codex",),
        old_skills=((".codex", "skills"),),
        note="its hooks run only after you trusted them: open /hooks in Codex",
    ),
    Spec(
        "grok",
        "Grok Build",
        ("grok",),
        "GROK_HOME",
        (".grok",),
        old_skills=((".grok", "skills"),),
        note="run /hooks in Grok to reload them",
    ),
    Spec(
        "opencode",
        "OpenCode",
        ("opencode",),
        "XDG_CONFIG_HOME",
        (".config", "opencode"),
        old_skills=((".opencode", "skills"), (".config", "opencode", "skills")),
        note="takes effect when OpenCode starts the next time",
    ),
    Spec(
        "antigravity",
        "Antigravity",
        ("agy", "antigravity"),
        "",
        (".gemini",),
        marks=("antigravity-cli", "antigravity"),
        old_skills=((".gemini", "config", "skills"), (".gemini", "antigravity", "skills")),
    ),
    Spec(
        "gemini",
        "Gemini CLI",
        ("gemini",),
        "",
        (".gemini",),
        marks=("settings.json", "skills"),
        shared_skill=False,
        old_skills=((".gemini", "skills"),),
        note="deprecated: nothing is installed, what was is cleaned up",
    ),
)
NAMES = tuple(spec.name for spec in SPECS)
ALIASES = {"claude-code": "claude", "gemini-cli": "gemini", "agy": "antigravity"}  # names people know them by
AGENTS = "agents"  # a target of uninstall: the shared skill alone


def spec(name: str) -> Spec:
    """The row of a harness that is in the table."""
    return next(one for one in SPECS if one.name == name)
