"""Runs the table: which harnesses, in which order, under one lock, and what came of it.

An absent harness is skipped and nothing is made for it. One that fails doesn't stop the others.
"""

from __future__ import annotations

import os
import sys

from bus import datadir
from bus.errors import BusError
from tt.install import skill, specs
from tt.install.jsontext import Malformed
from tt.install.work import Changed, Failed, Options, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Result = dict[str, Any]

LOCK_SECONDS = 30  # another install may wait for a client's plugin command
_CHANGES = ("added", "updated", "removed")


def install(env: Mapping[str, str], names: list[str], options: Options, *, dry: bool) -> Result:
    """Install for these harnesses."""
    run = Work(env, options, dry=dry)

    def steps() -> None:
        for name in names:
            run.harness = name
            spec = specs.spec(name)
            if spec.present(run):
                _guarded(run, _module(spec).install)
            else:
                run.tell("harness", spec.directory(env, run.home), "skipped", f"{spec.title} is not on this machine")

    return _under_lock(run, steps, "installed")


def uninstall(env: Mapping[str, str], names: list[str], *, shared: bool, dry: bool) -> Result:
    """Uninstall for these harnesses; `shared` takes the skill in ~/.agents as well."""
    run = Work(env, Options(), dry=dry)

    def steps() -> None:
        for name in names:
            run.harness = name
            _guarded(run, _module(specs.spec(name)).uninstall)
        if shared:
            run.harness = specs.AGENTS
            _guarded(run, lambda work: skill.withdraw(work, skill.shared_path(work.home)))
        run.drop_dirs()

    return _under_lock(run, steps, "uninstalled")


def _module(spec: specs.Spec) -> Any:
    """The module that knows the harness; loaded when it is its turn."""
    return __import__(spec.module, fromlist=["install"])


def _guarded(run: Work, step: Callable[[Work], object]) -> None:
    """One harness; what it can't do is a line, not the end."""
    try:
        step(run)
    except (Failed, Malformed, Changed, OSError) as error:
        where = specs.spec(run.harness).directory(run.env, run.home) if run.harness in specs.NAMES else run.home
        run.tell("harness", where, "failed", str(error))


def _under_lock(run: Work, steps: Callable[[], None], status: str) -> Result:
    """Do the steps while no other install runs, and keep the state whatever happens."""
    if run.dry:
        steps()
        return _result(run, status)
    from filelock import FileLock, Timeout

    # Nothing of ours is here and nothing of ours is to be taken away: no directory is made for that.
    if status == "installed" or os.path.isdir(run.data):
        datadir.ensure_private(run.data)
        try:
            with FileLock(os.path.join(run.data, "install.lock"), timeout=LOCK_SECONDS):
                run.managed = type(run.managed)(run.data)  # as the one before us left it
                try:
                    steps()
                finally:
                    run.managed.save()
        except Timeout as error:
            raise BusError("store_busy", "another install is running", "try again when it is done") from error
    else:
        steps()
    return _result(run, status)


def _result(run: Work, status: str) -> Result:
    """What is printed. BusError when nothing worked, since nothing has changed then."""
    failed = [line for line in run.lines if line["state"] == "failed"]
    changed = [line for line in run.lines if line["state"] in _CHANGES]
    if failed and not changed:
        first = failed[0]
        what = f"{first['harness']} {first['what']} failed: {first['path']}: {first.get('detail', '')}"
        raise BusError("cli_error", what, "nothing was changed", results=run.lines)
    result: Result = {"status": "planned" if run.dry else status, "results": run.lines, "failed": len(failed)}
    if run.dry:
        result["python"] = sys.executable
    if failed:
        result["hint"] = "some of it failed; what is shown as failed was left as it is"
    return result
