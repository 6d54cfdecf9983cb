"""The commands that set things up: installing, instructions, the program itself. Part of `tt.table`."""

from __future__ import annotations

from tt.grammar import Argument, Command, Option

_HARNESSES = ("claude", "codex", "grok", "opencode", "antigravity", "gemini")
_ALIASES = ("claude-code", "gemini-cli", "agy")  # see tt.install.specs
_PRINT = Option("--print", "show every file and command, change nothing")
_USER = Option("--user", "the layer of this user (default)")
_PROJECT = Option("--project", "the layer of this project")
_LAYER = (_USER, _PROJECT)
_ONE_LAYER = (("user", "project"),)

GROUPS = {"instructions": "What agents are told, in layers"}

COMMANDS = (
    Command(
        ("install",),
        "Set up hooks and skill for harnesses",
        "tt.commands.install:install",
        (
            Argument(
                "harness", f"of {', '.join(_HARNESSES)}", many=True, kind="choice", choices=(*_HARNESSES, *_ALIASES)
            ),
        ),
        (
            Option("--all", "every harness that is on this machine"),
            _PRINT,
            Option("--copy", "copy the skill instead of linking it"),
            Option("--link", "link the skill where it was copied"),
            Option("--replace", "overwrite a skill that was edited"),
            Option("--no-guard", "Claude: never block the end of a turn; kept over upgrades"),
            Option("--settings", "Claude: write into its settings, no plugin"),
            Option("--accept-inbound", "Claude: take messages of other sessions without a dialog"),
            Option("--allow-data-dir", "Codex: let its sandbox write our data directory"),
        ),
        exclusive=(("copy", "link"),),
    ),
    Command(
        ("uninstall",),
        "Take back what install wrote",
        "tt.commands.install:uninstall",
        (
            Argument(
                "harness",
                "the harnesses; agents is the shared skill alone",
                many=True,
                kind="choice",
                choices=(*_HARNESSES, "agents", *_ALIASES),
            ),
        ),
        (
            Option("--all", "every harness, and the shared skill"),
            Option("--shared", "the shared skill in ~/.agents"),
            _PRINT,
        ),
    ),
    Command(
        ("instructions", "show"),
        "Show what an agent is told",
        "tt.commands.instructions:show",
        options=(
            Option("--harness", "for this harness, or all", "choice", "NAME", choices=(*_HARNESSES, "all")),
            Option(
                "--scope",
                "one layer alone",
                "choice",
                "LAYER",
                choices=("effective", "bundled", "user", "project"),
                default="effective",
            ),
        ),
    ),
    Command(
        ("instructions", "edit"),
        "Open a layer in an editor, made on first use",
        "tt.commands.instructions:edit",
        options=(Option("--replace", "start again from the layer below"), *_LAYER),
        exclusive=_ONE_LAYER,
    ),
    Command(
        ("instructions", "update"),
        "Bring a layer up to date with the one below",
        "tt.commands.instructions:update",
        options=(Option("--replace", "although it was edited"), *_LAYER),
        exclusive=_ONE_LAYER,
    ),
    Command(
        ("instructions", "reset"),
        "Remove a layer",
        "tt.commands.instructions:reset",
        options=_LAYER,
        exclusive=_ONE_LAYER,
    ),
    Command(
        ("self-update",),
        "Update tt itself",
        "tt.selfupdate:run",
        options=(
            Option("--print", "only show the command"),
            Option("--manager", "what it was installed with", "choice", "NAME", choices=("pipx", "uv", "pip")),
        ),
    ),
)
