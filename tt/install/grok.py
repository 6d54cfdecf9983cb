"""Grok Build: three small hooks files of our own, under the names of older installs."""

from __future__ import annotations

import json
import os

from tt.install import registrations, skill, specs
from tt.install.hooksfile import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tt.install.work import Work


def folder(run: Work) -> str:
    """Where Grok looks for hooks that it trusts."""
    return os.path.join(specs.spec("grok").directory(run.env, run.home), "hooks")


def install(run: Work) -> None:
    """The files and the skill."""
    note = specs.spec("grok").note
    for name, groups in registrations.grok().items():
        text = json.dumps(registrations.as_file(groups), indent=2, ensure_ascii=False) + "\n"
        run.own("hooks", os.path.join(folder(run), name), text, note)
    skill.install_shared(run)


def uninstall(run: Work) -> None:
    """The files out again."""
    for name in registrations.grok():
        run.disown("hooks", os.path.join(folder(run), name), MARKER)
