"""Codex: entries in its hooks.json, and on request our data directory in its sandbox.

Trust is the user's: we never write a trust hash, we say where to give it.
"""

from __future__ import annotations

import os

from tt.install import edit, registrations, skill, specs, toml_list
from tt.install.hooksfile import Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tt.install.work import Work

TOML = edit.Dialect(toml_list.holds, toml_list.add, toml_list.strip, toml_list.blank)


def paths(run: Work) -> tuple[str, str]:
    """Its hooks file and its configuration."""
    root = specs.spec("codex").directory(run.env, run.home)
    return os.path.join(root, "hooks.json"), os.path.join(root, "config.toml")


def roots_entry(data: str) -> toml_list.Entry:
    """What lets Codex's sandbox write our data directory; readers of the store need that too."""
    return toml_list.Entry("sandbox_workspace_write", "writable_roots", data)


def install(run: Work) -> None:
    """Hooks, sandbox, skill."""
    hooks, config = paths(run)
    edit.merge(run, "hooks", hooks, Wanted(groups=registrations.codex()), specs.spec("codex").note)
    _sandbox(run, config)
    skill.install_shared(run)


def _sandbox(run: Work, config: str) -> None:
    """Write the entry if it was asked for, now or before; else name it."""
    entry = roots_entry(run.data)
    chosen = run.managed.choice("codex")
    if run.options.allow_data_dir or chosen.get("allow_data_dir"):
        if edit.merge(run, "sandbox", config, entry, dialect=TOML) != "failed":
            chosen["allow_data_dir"] = True
        return
    there = edit.has(config, entry, TOML)
    wanted = f"its sandbox needs this in config.toml (or give --allow-data-dir): {' '.join(entry.line().split())}"
    run.tell("sandbox", config, "already_present" if there else "skipped", "" if there else wanted)


def uninstall(run: Work) -> None:
    """Everything out again."""
    hooks, config = paths(run)
    edit.unmerge(run, "hooks", hooks)
    edit.unmerge(run, "sandbox", config, TOML)
    run.managed.choices.pop("codex", None)
