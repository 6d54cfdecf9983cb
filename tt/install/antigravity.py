"""Antigravity: one named hook in its hooks file.

Where the global file is differs between sources and versions; `~/.gemini/config/hooks.json` is
what most programs that write it use. Not tried against the real client.
"""

from __future__ import annotations

import os

from tt.install import edit, registrations, skill, specs
from tt.install.hooksfile import NAMED, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tt.install.work import Work


def path(run: Work) -> str:
    """Its hooks file."""
    return os.path.join(specs.spec("antigravity").directory(run.env, run.home), "config", "hooks.json")


def install(run: Work) -> None:
    """The named hook and the skill."""
    edit.merge(run, "hooks", path(run), Wanted(values={(NAMED,): registrations.antigravity()}))
    skill.install_shared(run)


def uninstall(run: Work) -> None:
    """The named hook out again."""
    edit.unmerge(run, "hooks", path(run))
