"""What git says about a directory: its working tree, its common dir, what has changed.

Git itself decides; the files it reads are read here only to avoid a process when there is
no git at all, when a bus for the answer exists already, and when git cannot be run (a hook
with a trimmed PATH must find the same bus as a shell). Every path that leaves this module
is absolute and real. Git is never asked with a variable that points it elsewhere, never
takes the index lock, and never runs longer than its deadline.
"""

from __future__ import annotations

import os
import stat
import sys

from bus.errors import BusError
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Every name of `git rev-parse --local-env-vars`, over all versions: a git hook in a linked
# worktree carries GIT_DIR, and git would answer for that repository instead of ours.
LOCAL_VARIABLES = frozenset(
    (
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    )
)
# No variable of git, but of how far it looks: two agents with different ones would
# otherwise find two buses for one directory.
_REACH = ("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")

_ASK_SECONDS = 5.0  # rev-parse takes about a millisecond; this only bounds a hanging disk
_STATUS_SECONDS = 2.0
_POINTER_BYTES = 16 * 1024  # a `.git` file holds one path

# `--path-format` first: after the other options it is silently ignored. `--show-toplevel`
# last: where it fails (bare, inside `.git`) the answers before it are printed all the same.
_ABSOLUTE = "--path-format=absolute"
_QUESTIONS = ("--is-bare-repository", "--git-dir", "--git-common-dir", "--show-toplevel")


class Tree(Record):
    """Where a directory stands in git.

    `top` is the working tree's top level, None where there is none (a bare repository).
    `common_dir` is shared by all linked worktrees and is what a bus is keyed by. `name` is
    the entry of a linked worktree in git, None for a main worktree.
    """

    top: str | None
    git_dir: str
    common_dir: str
    bare: bool
    linked: bool
    name: str | None


class Status(Record):
    """What is checked out and what differs from it.

    `branch` is None on a detached head, `head` (a commit id) None before the first commit.
    `changed` holds paths relative to the top level, sorted, both names of a rename,
    untracked files one by one; bytes that are no UTF-8 show as hex escapes. `dirty` is true when
    anything changed, also beyond the limit.
    """

    branch: str | None
    changed: list[str]
    dirty: bool
    head: str | None


class Done(Record):
    """A git process that ended: exit code and what it wrote."""

    code: int
    out: bytes
    err: str


def real(path: str) -> str:
    """The one name of an existing path: no links, and on macOS the spelling on disk."""
    path = os.path.realpath(path)
    if sys.platform == "darwin":
        return spelled_on_disk(path)
    return path


def spelled_on_disk(path: str) -> str:
    """Ask the kernel how a path is spelled, since `/Users/Ann` and `/users/ann` are one there.

    Gives the path back unchanged where the system cannot tell.
    """
    import fcntl  # only macOS comes here

    ask = getattr(fcntl, "F_GETPATH", None)
    if ask is None:
        return path
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
    except OSError:
        return path
    try:
        return os.fsdecode(fcntl.fcntl(descriptor, ask, bytes(1024)).rstrip(b"\0")) or path
    except OSError:
        return path
    finally:
        os.close(descriptor)


def upwards(path: str) -> Iterator[str]:
    """The directory itself and each one above it, the nearest first."""
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def clean_env(env: Mapping[str, str]) -> dict[str, str]:
    """The environment in which any git process of ours runs, whoever called us.

    Messages come in English (they are matched), and reading takes no lock: a `git status`
    in a hook would otherwise make the user's own commit fail on `index.lock`.
    """
    kept = {name: value for name, value in env.items() if name not in LOCAL_VARIABLES and name not in _REACH}
    kept["LC_ALL"] = "C"
    kept["LANGUAGE"] = ""
    kept["GIT_OPTIONAL_LOCKS"] = "0"
    # Fixed rather than kept: a mount inside a working tree still belongs to it.
    kept["GIT_DISCOVERY_ACROSS_FILESYSTEM"] = "1"
    return kept


def git(arguments: Sequence[str], env: Mapping[str, str], seconds: float = _ASK_SECONDS) -> Done | None:
    """Run git; None when there is no git, or it took too long. Reads nothing from stdin."""
    import subprocess  # 10 ms that the fast path must not pay

    try:
        done = subprocess.run(
            ["git", *arguments],
            env=clean_env(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Done(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))


def tree(path: str, env: Mapping[str, str]) -> Tree | None:
    """Where an existing directory stands in git; None when it stands in none.

    Without any trace of git above it this starts no process. Raises BusError
    `dubious_ownership` when git refuses a repository that belongs to somebody else.
    """
    path = real(path)
    if not any(_traces(directory) for directory in upwards(path)):
        return None
    done = git(("-C", path, "rev-parse", _ABSOLUTE, *_QUESTIONS), env)
    if done is None:
        return look(path)
    if done.code:
        _refuse_dubious(done.err, path)
        if "not a git repository" in done.err:
            return None
    answer = _answer(done, path, env)
    return answer or look(path)


def _traces(directory: str) -> bool:
    """Tell whether git could find a repository in this very directory."""
    return os.path.lexists(os.path.join(directory, ".git")) or _is_git_dir(directory)


def _refuse_dubious(message: str, path: str) -> None:
    """Turn git's refusal (two wordings over its versions) into ours."""
    if "dubious ownership" not in message and "unsafe repository" not in message:
        return
    where = look(path)
    shown = (where.top or where.git_dir) if where else path
    raise BusError(
        "dubious_ownership",
        f"git refuses the repository at {shown}: it belongs to another user",
        hint=f"if you trust it: git config --global --add safe.directory '{shown}'",
        path=shown,
    )


def _answer(done: Done, path: str, env: Mapping[str, str]) -> Tree | None:
    """Read what git printed, in the order of the questions; None when it is no answer."""
    if done.out.startswith(b"--"):  # older than 2.31, prints the option it does not know
        return None
    if b"\0" in done.out:  # no path has one: whatever answers to `git` here, it is not git
        return None
    lines: list[bytes | None] = [*done.out.split(b"\n")[:-1]]
    if done.code:
        lines.append(None)
    if len(lines) > len(_QUESTIONS):
        # A newline in a path: only one question at a time has a certain answer.
        lines = [_one_answer(question, path, env) for question in _QUESTIONS]
    if len(lines) < len(_QUESTIONS):
        return None
    bare, git_dir, common_dir, top = lines
    if not git_dir or not common_dir:
        return None
    top_text = os.fsdecode(top) if top else None
    return _made(os.fsdecode(git_dir), os.fsdecode(common_dir), top_text, bare=bare == b"true")


def _one_answer(question: str, path: str, env: Mapping[str, str]) -> bytes | None:
    """Ask git one thing; the answer ends with one newline, all others belong to it."""
    done = git(("-C", path, "rev-parse", _ABSOLUTE, question), env)
    return None if done is None or done.code else done.out[:-1]


def _made(git_dir: str, common_dir: str, top: str | None, *, bare: bool) -> Tree:
    """Put the facts together, for git's answers and for our own reading alike."""
    git_dir, common_dir = real(git_dir), real(common_dir)
    linked = git_dir != common_dir
    if top is None and (linked or not bare):
        top = _tree_of(git_dir)
    name = os.path.basename(git_dir) if linked else None
    return Tree(real(top) if top else None, git_dir, common_dir, bare and not linked, linked, name)


def _tree_of(git_dir: str) -> str | None:
    """The working tree that a git dir belongs to, for somebody who stands inside the git dir."""
    pointer = _first_line(os.path.join(git_dir, "gitdir"))
    entry = os.path.join(git_dir, pointer) if pointer else git_dir
    top = os.path.dirname(entry)
    return top if os.path.basename(entry) == ".git" and os.path.isdir(top) else None


def look(path: str) -> Tree | None:
    """The same as `tree` from the files alone, without a process and without git's refusals.

    Right for what `git init`, `clone`, `worktree` and `submodule` make; only git knows about
    `core.worktree` set by hand, so ask `ordinary` before trusting it where git can be run.
    """
    for directory in upwards(real(path)):
        git_dir = _git_dir_at(directory)
        if git_dir is None and os.path.isfile(os.path.join(directory, ".git")):
            return None  # points to nothing: git stops here too, the repository above is not meant
        if git_dir is not None:
            common_dir = _common_dir(git_dir)
            linked = git_dir != common_dir
            bare = not linked and _says_bare(common_dir)
            return _made(git_dir, common_dir, None if bare else directory, bare=bare)
        if _is_git_dir(directory):
            common_dir = _common_dir(directory)
            return _made(directory, common_dir, None, bare=_says_bare(common_dir))
    return None


def ordinary(found: Tree) -> bool:
    """Tell whether this is a layout in which reading the files cannot disagree with git."""
    config = _config(found.common_dir).lower()
    settings = [line.partition(b"=") for line in config.splitlines()]
    moved = any(equals and b"worktree" in key for key, equals, _ in settings)
    return found.top is not None and not moved and b"[include" not in config


def linked_top(directory: str) -> bool:
    """Tell whether this is the top level of a linked worktree.

    The `commondir` file tells it from a submodule, even one named `worktrees/x` or one
    inside a linked worktree; the path tells it when the repository is gone.
    """
    target = _pointed_to(os.path.join(directory, ".git"))
    if target is None:
        return False
    if os.path.isdir(target):
        return os.path.isfile(os.path.join(target, "commondir"))
    return os.path.basename(os.path.dirname(target)) == "worktrees"


def _git_dir_at(top: str) -> str | None:
    """The git dir that `<top>/.git` is or points to; None when there is no valid one."""
    entry = os.path.join(top, ".git")
    target = _pointed_to(entry) or entry
    return real(target) if _is_git_dir(target) else None


def _pointed_to(entry: str) -> str | None:
    """Where a `.git` *file* points, absolute; None when it is a directory or nothing."""
    try:
        if not stat.S_ISREG(os.stat(entry).st_mode):
            return None
    except (OSError, ValueError):
        return None
    line = _first_line(entry)
    if line is None or not line.startswith("gitdir: "):
        return None
    return os.path.join(os.path.dirname(entry), line[len("gitdir: ") :])


def _is_git_dir(directory: str) -> bool:
    """Git's own test: a HEAD, and objects and refs either here or in a common dir."""
    if not os.path.lexists(os.path.join(directory, "HEAD")):
        return False
    if os.path.isfile(os.path.join(directory, "commondir")):
        return True
    return all(os.path.isdir(os.path.join(directory, name)) for name in ("objects", "refs"))


def _common_dir(git_dir: str) -> str:
    """What a linked worktree shares with the others; any other git dir is its own."""
    pointer = _first_line(os.path.join(git_dir, "commondir"))
    return real(os.path.join(git_dir, pointer)) if pointer else git_dir


def _first_line(path: str) -> str | None:
    """The content of a pointer file without its final newline (others belong to the path)."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(_POINTER_BYTES).rstrip(b"\r\n"))
    except OSError:
        return None


def _config(common_dir: str) -> bytes:
    """The repository's own configuration, empty when it cannot be read."""
    try:
        with open(os.path.join(common_dir, "config"), "rb") as file:
            return file.read()
    except OSError:
        return b""


def _says_bare(common_dir: str) -> bool:
    """Tell whether the configuration calls this repository bare."""
    for line in _config(common_dir).lower().splitlines():
        key, _, value = line.partition(b"=")
        if key.strip() == b"bare":
            return value.strip() in (b"true", b"yes", b"on", b"1")
    return False


def status(top: str, env: Mapping[str, str], limit: int = 200) -> Status | None:
    """What is checked out at a top level and which files changed; at most `limit` of them.

    None when git failed, is missing, or took longer than two seconds.
    """
    # A file system monitor would be started by us and outlive us.
    arguments = ("-C", top, "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "-z", "--branch")
    done = git((*arguments, "--untracked-files=all"), env, _STATUS_SECONDS)
    if done is None or done.code:
        return None
    return parse_status(done.out, limit)


# How many fields stand before the path, by the first character of a record.
_FIELDS_BEFORE_PATH = {b"1": 8, b"2": 9, b"u": 10, b"?": 1}


def parse_status(out: bytes, limit: int) -> Status:
    """Read `git status --porcelain=v2 -z --branch`; unknown records are passed over."""
    about: dict[bytes, bytes] = {}
    changed: set[str] = set()
    records = iter(out.split(b"\0"))
    for record in records:
        kind = record[:1]
        if kind == b"#":
            key, _, value = record[2:].partition(b" ")
            about[key] = value
        elif kind in _FIELDS_BEFORE_PATH:
            changed.add(_text(record.split(b" ", _FIELDS_BEFORE_PATH[kind])[-1]))
            if kind == b"2":  # a rename: the name it had follows as a record of its own
                changed.add(_text(next(records, b"")))
    branch = about.get(b"branch.head", b"(detached)")
    head = about.get(b"branch.oid", b"(initial)")
    return Status(
        None if branch == b"(detached)" else _text(branch),
        sorted(changed)[:limit],
        bool(changed),
        None if head == b"(initial)" else _text(head),
    )


def _text(raw: bytes) -> str:
    """Text that the store and JSON accept, whatever bytes a file name has."""
    return raw.decode("utf-8", "backslashreplace")
