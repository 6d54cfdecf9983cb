"""The files of Claude Code's plugin, generated below our data directory as a marketplace of one.

    <data>/claude-plugin/.claude-plugin/marketplace.json
                        /talking-stick/.claude-plugin/plugin.json
                                      /hooks/hooks.json, monitors/monitors.json, skills/talking-stick/…

The version carries a digest of the content, so that a client which copies plugins notices a change.
"""

from __future__ import annotations

import json
import os
import shutil

from tt import __version__
from tt.install import registrations, skill, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tt.install.work import Work

NAME = "talking-stick"
ID = f"{NAME}@{NAME}"
_ABOUT = "Turns, messages and wakes for coding agents that share one repository."


def folder(data: str) -> str:
    """The marketplace."""
    return os.path.join(data, "claude-plugin")


def contents(*, guard: bool) -> tuple[str, dict[str, str]]:
    """The version, and relative path → text of every file."""
    hooks = {"description": _ABOUT, **registrations.as_file(registrations.claude(guard=guard, in_settings=False))}
    monitor = {"name": "mail", "command": registrations.monitor_line(), "description": "Talking Stick mail"}
    inside = {"hooks/hooks.json": _json(hooks), "monitors/monitors.json": _json([monitor])}
    inside |= {f"skills/{skill.NAME}/{name}": data.decode() for name, data in skill.files(skill.SOURCE).items()}
    version = f"{__version__}+{spans.digest(_json(inside))[:8]}"
    about = {"name": NAME, "version": version, "description": _ABOUT, "author": {"name": "Talking Stick"}}
    entry = {"name": NAME, "source": f"./{NAME}", "description": _ABOUT, "version": version}
    market = {"name": NAME, "owner": {"name": "Talking Stick"}, "metadata": {"description": _ABOUT}, "plugins": [entry]}
    files = {".claude-plugin/marketplace.json": _json(market), f"{NAME}/.claude-plugin/plugin.json": _json(about)}
    return version, files | {f"{NAME}/{name}": text for name, text in inside.items()}


def generate(run: Work, *, guard: bool) -> str:
    """Write what differs, remove what is no longer part of it, tell of both in one line; the version."""
    version, files = contents(guard=guard)
    top = folder(run.data)
    states = [
        run.own("plugin files", os.path.join(top, *name.split("/")), text, quiet=not run.dry)
        for name, text in files.items()
    ]
    stale = (
        [name for name in skill.files(top) if name not in files and not name.startswith(".")]
        if os.path.isdir(top)
        else []
    )
    for name in stale:
        run.disown("plugin files", os.path.join(top, *name.split("/")), quiet=not run.dry)
    if not run.dry:
        same = set(states) == {"already_present"} and not stale
        new = set(states) == {"added"}
        run.tell(
            "plugin files", top, "already_present" if same else "added" if new else "updated", f"version {version}"
        )
    return version


def remove(run: Work) -> bool:
    """The whole folder goes. Whether it was there."""
    top = folder(run.data)
    there = os.path.isdir(top)
    for path in [path for path in run.managed.owned if path.startswith(top + os.sep)]:
        run.managed.owned.pop(path)
    run.managed.dirs[:] = [path for path in run.managed.dirs if path != top and not path.startswith(top + os.sep)]
    if there and not run.dry:
        shutil.rmtree(top)
    return there


def _json(value: Any) -> str:
    """As a client would write it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
