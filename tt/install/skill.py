"""The skill in a harness's folder: a link to ours, or with `--copy` a snapshot.

Keeps true: a copy that somebody edited is never overwritten without `--replace`; a duplicate
is removed only if it is a link to our skill.
"""

from __future__ import annotations

import os
import shutil

from tt.install import spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tt.install.specs import Spec
    from tt.install.work import Work

NAME = "talking-stick"
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "skill")
LINK = "link"  # in the state, in place of a digest


def files(folder: str) -> dict[str, bytes]:
    """Relative path → content of every file of a skill, sorted; editors' and Python's leavings are not looked at."""
    found: dict[str, bytes] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith((".pyc", "~")):
                path = os.path.join(place, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder).replace(os.sep, "/")] = file.read()
    return found


def digest(folder: str) -> str:
    """One short name for all files of a skill."""
    listed = b"".join(
        name.encode() + b"\0" + spans.digest(data).encode() + b"\n" for name, data in files(folder).items()
    )
    return spans.digest(listed)


def shared_path(home: str) -> str:
    """Where Codex, Grok, OpenCode and Antigravity all look."""
    return os.path.join(home, ".agents", "skills", NAME)


def install_shared(run: Work) -> None:
    """The shared skill, once for all, and the harness's own duplicates pruned."""
    from tt.install import specs

    place(run, shared_path(run.home))
    prune(run, specs.spec(run.harness))


def place(run: Work, path: str) -> str:
    """Put the skill at a path, or bring it up to date, and tell of it."""
    state, detail = _decide(run, path)
    if state in ("added", "updated"):
        copied = _wants_copy(run, path)
        detail = detail or ("a copy" if copied else f"a link to {SOURCE}")
        if not run.dry:
            try:
                run.make_dirs(os.path.dirname(path))
                copied = _write(path, copied=copied)
            except OSError as error:
                return run.tell("skill", path, "failed", f"{error.strerror or error}")
            run.managed.skills[path] = digest(SOURCE) if copied else LINK
    return run.tell("skill", path, state, detail)


def _wants_copy(run: Work, path: str) -> bool:
    """A copy if asked for, or if there is one and no link is asked for."""
    before = run.managed.skills.get(path, LINK)
    return run.options.copy or (before != LINK and not run.options.link)


def _decide(run: Work, path: str) -> tuple[str, str]:
    """The state a path will be in, and a word about it."""
    copied = _wants_copy(run, path)
    if os.path.islink(path):
        ours = is_ours(run, path)
        if ours and not copied and os.path.realpath(path) == os.path.realpath(SOURCE):
            return "already_present", ""
        if ours or run.options.overwrite:
            return "updated", ""
        return "skipped", f"a link to {os.readlink(path)}, not ours; --replace overwrites it"
    if not os.path.lexists(path):
        return "added", ""
    if not os.path.isdir(path):
        return ("updated", "") if run.options.overwrite else ("skipped", "not a skill; --replace overwrites it")
    present = digest(path)
    if present == digest(SOURCE) and (copied or not run.options.link):
        return "already_present", "a copy"
    if present in (run.managed.skills.get(path), digest(SOURCE)) or run.options.overwrite:
        return "updated", ""
    return "skipped", "edited by somebody, so it is kept; --replace overwrites it"


def is_ours(run: Work, path: str) -> bool:
    """Whether a link leads to our skill, of this install or of one that we put there and is gone."""
    if os.path.realpath(path) == os.path.realpath(SOURCE):
        return True
    return os.path.islink(path) and run.managed.skills.get(path) == LINK


def _write(path: str, *, copied: bool) -> bool:
    """The new skill in the place of whatever is there. Whether it is a copy: links need a right on some systems."""
    fresh = os.path.join(os.path.dirname(path), f".{NAME}.new")
    _delete(fresh)
    if not copied:
        try:
            os.symlink(SOURCE, fresh)
        except OSError:
            copied = True
    if copied:
        _copy(fresh)
    old = os.path.join(os.path.dirname(path), f".{NAME}.old")
    _delete(old)
    if os.path.lexists(path):
        os.rename(path, old)
    os.rename(fresh, path)
    _delete(old)
    return copied


def _copy(path: str) -> None:
    """A snapshot of our skill."""
    for name, data in files(SOURCE).items():
        target = os.path.join(path, *name.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)


def _delete(path: str) -> None:
    """Remove a link, file or folder that is ours to remove."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def withdraw(run: Work, path: str) -> str:
    """Take the skill away again and tell of it; an edited copy stays."""
    recorded = run.managed.skills.get(path)
    if not os.path.lexists(path):
        run.managed.skills.pop(path, None)
        return run.tell("skill", path, "already_absent")
    link = os.path.islink(path)
    ours = is_ours(run, path) if link else os.path.isdir(path) and digest(path) in (recorded, digest(SOURCE))
    if not ours:
        return run.tell("skill", path, "skipped", "not ours" if link else "edited by somebody, so it is kept")
    if not run.dry:
        _delete(path)
    run.managed.skills.pop(path, None)
    return run.tell("skill", path, "removed")


def prune(run: Work, spec: Spec) -> None:
    """Remove the harness's own duplicates of the shared skill, which it would list twice."""
    for parts in spec.old_skills:
        path = os.path.join(run.home, *parts, NAME)
        if os.path.islink(path) and is_ours(run, path):
            if not run.dry:
                os.unlink(path)
            run.managed.skills.pop(path, None)
            run.tell("duplicate skill", path, "removed", "a link to our skill")
