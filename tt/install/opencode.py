"""OpenCode: one plugin file of our own, which names the session to our programs and wakes it."""

from __future__ import annotations

import json
import os
import sys

from tt.install import registrations, skill, specs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tt.install.work import Work

_TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opencode_plugin.js")
_MARK = "// Talking Stick for OpenCode."


def path(run: Work) -> str:
    """The plugin, where OpenCode looks for the user's own."""
    return os.path.join(specs.spec("opencode").directory(run.env, run.home), "plugins", "talking-stick.js")


def text() -> str:
    """The plugin with our paths in it, as strings of JavaScript."""
    with open(_TEMPLATE, encoding="utf-8") as file:
        plugin = file.read()
    for name, value in (("PYTHON", sys.executable), ("PROGRAM", registrations.PROGRAM)):
        plugin = plugin.replace(f'"@{name}@"', json.dumps(value))
    return plugin


def install(run: Work) -> None:
    """The plugin and the skill."""
    run.own("plugin", path(run), text(), specs.spec("opencode").note)
    skill.install_shared(run)


def uninstall(run: Work) -> None:
    """The plugin out again."""
    run.disown("plugin", path(run), _MARK)
