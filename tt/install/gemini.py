"""Gemini CLI is deprecated: a notice, and what older installs left is cleaned up."""

from __future__ import annotations

import os

from tt.install import edit, skill, specs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tt.install.work import Work


def install(run: Work) -> None:
    """Nothing but the notice and the clean-up."""
    spec = specs.spec("gemini")
    _clean(run)
    run.tell("hooks", spec.directory(run.env, run.home), "skipped", spec.note)


def uninstall(run: Work) -> None:
    """The clean-up alone."""
    _clean(run)
    if not run.lines or run.lines[-1]["harness"] != run.harness:
        run.tell("hooks", specs.spec("gemini").directory(run.env, run.home), "already_absent")


def _clean(run: Work) -> None:
    """Entries with our marker in its settings, and links to our skill."""
    settings = os.path.join(specs.spec("gemini").directory(run.env, run.home), "settings.json")
    if edit.mentions_us(settings):
        edit.unmerge(run, "hooks", settings)
    skill.prune(run, specs.spec("gemini"))
