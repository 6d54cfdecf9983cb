"""Where things live, and which bus and room a directory belongs to.

`find` is the one function that decides it, for commands, hooks and doctor alike: the nearest
directory with a room in the index, else git's common dir, else the workspace root. It keeps
true that one directory has one answer, whatever links, git variables or spelling led to it,
and that the answer costs no process once there is a room.
"""

from __future__ import annotations

import os
import stat

from bus import gitdir
from bus.datadir import data_dir, ensure_private, home_dir, store_error
from bus.digest import digest
from bus.errors import BusError
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Entry",
    "Place",
    "absolute",
    "buses",
    "data_dir",
    "ensure_private",
    "find",
    "index_add",
    "index_read",
    "index_remove",
]

MARKERS = ("CLAUDE.md", "AGENTS.md", "package.json", "pyproject.toml", "Cargo.toml", "go.mod")
MAIN_STATION = "expo"
PATH_CHARS = 4096  # no system takes a longer path
_NAME_CHARS = 40  # of the readable part of a bus directory's name
_INDEX_FORMAT = "1"


class Place(Record):
    """What a path means.

    `requested` is the real directory that was named; `root` where a new room would be;
    `room` the deepest existing room at or above, None when there is none; `bus_dir` exists
    or is to be made; `key` is what its name hashes; `repo` the repository or workspace, for
    people; `station_hint` is `expo` in a main worktree, git's entry name in a linked one
    (not yet checked against reserved names), None outside git.
    """

    requested: str
    root: str
    room: str | None
    bus_dir: str
    key: str
    repo: str
    linked: bool
    station_hint: str | None
    warnings: list[str]
    room_id: str | None = None


class Entry(Record):
    """One room in the index, with all that `find` would otherwise ask git for."""

    bus: str
    room_id: str
    path: str
    linked: bool
    station: str | None
    key: str
    repo: str


# --- buses ----------------------------------------------------------------------


def buses(data: str) -> list[str]:
    """The directories of all buses that have a database, sorted."""
    parent = os.path.join(data, "buses")
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return []
    return [path for name in names if has_bus(path := os.path.join(parent, name))]


def has_bus(bus_dir: str) -> bool:
    """Tell whether there is a database. Only looked at, never opened: closing it would drop its locks."""
    return os.path.isfile(os.path.join(bus_dir, "bus.db"))


# --- the index of rooms -------------------------------------------------------------


def index_add(
    data: str,
    room_path: str,
    bus_dir: str,
    room_id: str,
    *,
    place: Place,
) -> None:
    """Say that a directory is a room of a bus. Replaces what was said before, atomically.

    `place` is the one that `find` gave for the room. Raises BusError when it cannot be written.
    """
    entry = Entry(
        os.path.basename(bus_dir), room_id, room_path, place.linked, place.station_hint, place.key, place.repo
    )
    name = _index_file(data, room_path)
    draft = f"{name}.{os.getpid()}.new"
    ensure_private(os.path.dirname(name))
    try:
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(_packed(entry))
            os.replace(draft, name)
        except OSError:
            _unlink(draft)
            raise
    except OSError as error:
        raise store_error(error, name) from error


def index_remove(data: str, room_path: str, room_id: str | None = None) -> None:
    """Forget a room; nothing happens when it is not there.

    With `room_id` only that room is forgotten: a slow leaver must not remove the entry of a
    room that somebody made at the same path meanwhile.
    """
    if room_id is not None:
        entry = index_read(data, room_path)
        if entry is not None and entry.room_id != room_id:
            return
    _unlink(_index_file(data, room_path))


def index_read(data: str, path: str) -> Entry | None:
    """The room at exactly this real path; None when there is none or it cannot be read."""
    try:
        with open(_index_file(data, path), "rb") as file:
            entry = _unpacked(file.read())
    except OSError:
        return None
    return entry if entry is not None and entry.path == path else None


def _index_file(data: str, path: str) -> str:
    return os.path.join(data, "rooms", _hash(path)[:16])


def _hash(path: str) -> str:
    """SHA-256 of the bytes of a path (not of its text), so that all locales agree, in hex."""
    return digest(os.fsencode(path))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _packed(entry: Entry) -> bytes:
    """One value a line; newlines in a path are escaped."""
    linked = "linked" if entry.linked else "main"
    values = (
        _INDEX_FORMAT,
        entry.bus,
        entry.room_id,
        entry.path,
        linked,
        entry.station or "",
        entry.key,
        entry.repo,
    )
    lines = (os.fsencode(value).replace(b"%", b"%25").replace(b"\n", b"%0A") for value in values)
    return b"".join(line + b"\n" for line in lines)


def _unpacked(raw: bytes) -> Entry | None:
    """Read an entry; None for another format or a bus name that would leave its directory."""
    lines = [os.fsdecode(line.replace(b"%0A", b"\n").replace(b"%25", b"%")) for line in raw.split(b"\n")]
    if len(lines) < len(Entry.fields) + 2 or lines[0] != _INDEX_FORMAT:  # type: ignore[attr-defined]
        return None
    _, bus, room_id, path, linked, station, key, repo, *_ = lines
    if bus != os.path.basename(bus) or bus in ("", ".", ".."):
        return None
    return Entry(bus, room_id, path, linked == "linked", station or None, key, repo)


# --- which bus, which room ----------------------------------------------------------


def find(path: str | None, env: Mapping[str, str], *, exact: bool = False) -> Place:
    """Decide what a path (else `TT_ROOM`, else the working directory) means.

    A file means its directory. With `exact` the root is that very directory, and only a room
    there counts as the room; the bus is the same as without. Makes and changes nothing.
    Raises BusError: `room_not_found` (no such directory), `invalid_input`,
    `dubious_ownership`, `bare_repository` (no working tree, and no room above).
    """
    requested = _requested(path, env)
    data = data_dir(env)
    home = gitdir.real(home_dir(env))
    entry, nested = _room_above(requested, data, home)
    if entry is not None:
        return _in_room(requested, data, entry, nested, exact=exact)
    place = _without_room(requested, data, home, env, exact=exact)
    # The search above ends below $HOME; a working tree whose top *is* $HOME may have a room.
    at_root = _live_entry(data, place.root)
    if at_root is not None:
        return _in_room(requested, data, at_root, [], exact=exact)
    return place


def _requested(path: str | None, env: Mapping[str, str]) -> str:
    """The real directory that was named."""
    if path is None:
        path = env.get("TT_ROOM") or os.curdir
    if not path or "\0" in path:
        raise BusError("invalid_input", "the path is empty" if not path else "the path contains a NUL")
    try:
        os.stat(path)  # before resolving: a dangling link must not turn into its parent
        found = gitdir.real(path)
        if not stat.S_ISDIR(os.stat(found).st_mode):
            found = os.path.dirname(found)
        found.encode("utf-8")
    except UnicodeEncodeError:
        raise BusError("invalid_input", f"the path is not valid UTF-8: {path!a}") from None
    except OSError as error:
        raise _no_directory(path, error) from None
    return found


def absolute(path: str) -> str:
    """The real path of what is named, which need not exist; `room_not_found` where the working directory is gone."""
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise _no_directory(path, error) from None
    except UnicodeEncodeError:
        raise BusError("invalid_input", f"the path is no text: {path[:PATH_CHARS]!a}") from None


def _no_directory(path: str, error: OSError) -> BusError:
    """Say what is wrong with a path, or that the working directory itself is gone."""
    if not os.path.isabs(path) and _cwd_is_gone():
        message, hint = "the working directory no longer exists", "cd to a directory that exists"
        return BusError("room_not_found", message, hint=hint)
    path = path[:PATH_CHARS]  # it is quoted, and may be anything
    return BusError("room_not_found", f"no such directory: {path} ({error.strerror})", hint="check the path", path=path)


def _cwd_is_gone() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _room_above(requested: str, data: str, home: str) -> tuple[Entry | None, list[str]]:
    """The nearest room at or above, and the repositories that begin below it.

    Ends at the top level of a linked worktree (it has its own files, so its own stick) and
    below $HOME (a room there would swallow every scratch directory).
    """
    nested: list[str] = []
    for directory in gitdir.upwards(requested):
        if directory == home and directory != requested:
            break
        entry = _live_entry(data, directory)
        if entry is not None:
            return entry, nested
        if os.path.lexists(os.path.join(directory, ".git")):
            if gitdir.linked_top(directory):
                break
            nested.append(directory)
        if directory == home:
            break
    return None, nested


def _live_entry(data: str, path: str) -> Entry | None:
    """The room at this path, unless its bus was deleted."""
    entry = index_read(data, path)
    return entry if entry is not None and has_bus(os.path.join(data, "buses", entry.bus)) else None


def _in_room(requested: str, data: str, entry: Entry, nested: list[str], *, exact: bool) -> Place:
    """The place as the index knows it: no process, no look at git."""
    warnings: list[str] = []
    here = entry.path == requested
    if nested and not exact:
        warnings.append(
            f"{nested[0]} is a repository of its own, but the room at {entry.path} above it is used"
            " (tt join --force-new makes one here)"
        )
    root = requested if exact else (nested[0] if nested else entry.path)
    known = here or not exact
    return Place(
        requested,
        root,
        entry.path if known else None,
        os.path.join(data, "buses", entry.bus),
        entry.key,
        entry.repo,
        entry.linked,
        entry.station,
        warnings,
        entry.room_id if known else None,
    )


def _without_room(requested: str, data: str, home: str, env: Mapping[str, str], *, exact: bool) -> Place:
    """The place where a first room would be: git's working tree, else the workspace."""
    tree = _tree(requested, data, env)
    if tree is None:
        root = requested if exact else _workspace(requested, home)
        return Place(requested, root, None, bus_dir_for(data, root), root, root, False, None, _unread_git(requested))
    if tree.top is None:
        raise BusError(
            "bare_repository",
            f"{tree.common_dir} has no working tree here, so there can be no room",
            hint="go to one of its worktrees (git worktree list), or make one: git worktree add",
            path=tree.common_dir,
        )
    return Place(
        requested,
        requested if exact else tree.top,
        None,
        bus_dir_for(data, tree.common_dir),
        tree.common_dir,
        _repository(tree),
        tree.linked,
        tree.name if tree.linked else MAIN_STATION,
        [],
    )


def _tree(requested: str, data: str, env: Mapping[str, str]) -> gitdir.Tree | None:
    """Ask git, unless a bus for an ordinary repository shows that it was asked before."""
    seen = gitdir.look(requested)
    if seen is not None and gitdir.ordinary(seen) and has_bus(bus_dir_for(data, seen.common_dir)):
        return seen
    return gitdir.tree(requested, env)


def _unread_git(requested: str) -> list[str]:
    """Warn of a `.git` that git cannot use, such as a worktree whose repository is gone."""
    where = next((directory for directory in gitdir.upwards(requested) if _dead_git(directory)), None)
    if where is None:
        return []
    return [f"git cannot use {os.path.join(where, '.git')}; this is treated as a directory outside git"]


def _dead_git(directory: str) -> bool:
    """Tell whether something here is named `.git`, once git has said there is no repository."""
    return os.path.lexists(os.path.join(directory, ".git"))


def _workspace(requested: str, home: str) -> str:
    """The nearest directory with a marker, else the directory itself.

    Markers count for what is below them except in $HOME, in the file system's root and in
    shared scratch directories: a stray one there would put strangers into one room.
    """
    for directory in gitdir.upwards(requested):
        if directory != requested and (directory == home or _is_everybodys(directory)):
            break
        if any(os.path.isfile(os.path.join(directory, marker)) for marker in MARKERS) or _dead_git(directory):
            return directory
    return requested


def _is_everybodys(directory: str) -> bool:
    """The root, or a directory like /tmp in which anybody may put a file."""
    if os.path.dirname(directory) == directory:
        return True
    try:
        mode = os.stat(directory).st_mode
    except OSError:
        return True
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)


def _repository(tree: gitdir.Tree) -> str:
    """The path that people know a repository by."""
    if os.path.basename(tree.common_dir) == ".git":
        return os.path.dirname(tree.common_dir)
    return tree.common_dir if tree.linked or tree.top is None else tree.top


def bus_dir_for(data: str, key: str) -> str:
    """The bus directory of a real common dir or workspace root, existing or to be made.

    The hash decides, the readable part is for people: a bus that has another one is kept.
    """
    ending = "-" + _hash(key)[:10]
    parent = os.path.join(data, "buses")
    expected = os.path.join(parent, bus_label(key) + ending)
    if has_bus(expected):
        return expected
    return next((path for path in buses(data) if path.endswith(ending)), expected)


def bus_label(key: str) -> str:
    """A short safe name for a key: `[A-Za-z0-9._-]`, never empty, never starting with a dot."""
    name = os.path.basename(key)
    if name.startswith("."):  # `<repo>/.git`, `<repo>/.bare`
        name = os.path.basename(os.path.dirname(key)) or name
    name = name.removesuffix(".git")
    safe = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in name)
    while "--" in safe:
        safe = safe.replace("--", "-")
    return safe.strip(".-")[:_NAME_CHARS].rstrip(".-") or "repo"
