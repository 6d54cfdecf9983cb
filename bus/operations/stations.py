"""Stations: a role by place. Names, topology, and the managed worktrees.

Kept true: address and rights hang on the recorded working tree, never on a folder's name or a
variable; removing refuses to lose work.
"""

from __future__ import annotations

import itertools
import os

from bus import datadir, gitdir
from bus.errors import BusError
from bus.operations import present, where
from bus.operations.outcome import Outcome, Wakes
from bus.rules import roles
from bus.store import agents, config, db, worktrees
from bus.store.worktrees import Worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from bus.operations.enter import Context

COUNT_MOST = 50
NUMBER_MOST = 10_000
GIT_SECONDS = 60.0
# What we put into a station's worktree; it is no dirt of the person's.
SEED_PATH = os.path.join(".claude", "settings.local.json")
SEED = '{\n  "permissions": {\n    "allow": ["Bash(tt:*)", "Monitor"]\n  }\n}\n'


def _manager(ctx: Context) -> None:
    """Only the expo and people change worktrees."""
    if where.actor(ctx).role not in (roles.EXPO, roles.PERSON):
        raise BusError("not_permitted", "only the expo and people manage stations", "ask them: `tt ask …`")


def listing(ctx: Context) -> Outcome:
    """Every station with its worktree and who is there."""
    con = ctx.bus.con
    known: dict[str, dict[str, Any]] = {}
    for tree in worktrees.every(con):
        known[tree.station] = {"path": tree.path, "branch": tree.branch, "managed": True, "agents": []}
    for agent in agents.every(con):
        if agent.kind == "harness" and agent.station:
            entry = known.setdefault(
                agent.station, {"path": agent.worktree, "branch": None, "managed": False, "agents": []}
            )
            if not present.Sign(ctx.bus, agent, ctx.now).gone:
                entry["agents"].append(agent.id)
    rows = [{"station": name, **entry} for name, entry in sorted(known.items())]
    return Outcome({"status": "stations", "topology": where.topology(con), "stations": rows})


def plan(ctx: Context, count: int = 1) -> Outcome:
    """What `add` would do, to the letter of the rules that it seeds. Changes nothing."""
    _manager(ctx)
    _counted(count)
    base = _base(ctx)
    names = itertools.islice(_free_names(ctx, base), count)
    found = [_shown(Worktree(os.path.join(base, name), name, f"tt/{name}", ctx.now)) for name in names]
    result = {"status": "planned", "stations": found, "topology": _topology_then(ctx), "seed": SEED}
    return Outcome(result | {"seed_path": SEED_PATH})


def add(ctx: Context, count: int = 1) -> Outcome:
    """Make worktrees, each on a branch of its own. From the first one on the topology is strict-hub.

    Raises not_permitted, invalid_input; when git refuses a later one, those that were made stay and are told.
    """
    _manager(ctx)
    _counted(count)
    base, made, warning = _base(ctx), [], None
    datadir.ensure_private(base)
    for tree in worktrees.every(ctx.bus.con):
        if os.path.isdir(tree.path):
            _seed(ctx, tree.path)  # one that lost its rules gets them again; what somebody wrote stays
    for _ in range(count):
        try:
            made.append(_shown(_add_one(ctx, base)))
        except BusError as error:
            if not made:
                raise
            warning = error.message
            break
    result = {"status": "stations_added", "stations": made, "topology": where.topology(ctx.bus.con)}
    return Outcome(result | ({"warning": warning} if warning else {}))


def _counted(count: int) -> None:
    """A number of stations that somebody can mean."""
    if not 0 < count <= COUNT_MOST:
        raise BusError("invalid_input", f"--count takes 1 to {COUNT_MOST}", count=count)


def _base(ctx: Context) -> str:
    """Where worktrees of this bus are made."""
    return os.path.join(os.path.realpath(datadir.data_dir(ctx.env)), "worktrees", ctx.bus.name)


def _topology_then(ctx: Context) -> str:
    """The topology once there is a managed station."""
    return config.get(ctx.bus.con, "topology") or roles.STRICT


def _shown(tree: Worktree) -> dict[str, Any]:
    """A station as `add` tells of it."""
    return {"station": tree.station, "path": tree.path, "branch": tree.branch}


def _add_one(ctx: Context, base: str) -> Worktree:
    """One worktree: the row is written first, so that two who add at once take different numbers.

    The topology changes last: where git made nothing, nothing else changes either.
    """
    con = ctx.bus.con
    tree = _reserve(ctx, base)
    words = ["-C", _main(ctx), "worktree", "add", "-q", "-b", tree.branch or "", tree.path, *_start(ctx)]
    done = gitdir.git(words, ctx.env, seconds=GIT_SECONDS)
    if done is None or done.code != 0:
        with db.Write(con):
            worktrees.remove(con, tree.station)
        said = done.err.strip() if done is not None else "git did not answer"
        raise BusError("invalid_input", f"git made no worktree: {said[:300]}", "commit something first?")
    with db.Write(con):
        present.register(con, ctx)
        if config.get(con, "topology") is None:
            config.put(con, "topology", roles.STRICT)
    _seed(ctx, tree.path)
    return tree


def _reserve(ctx: Context, base: str) -> Worktree:
    """The row of the first free number. Git is asked before the transaction, never in it."""
    con = ctx.bus.con
    for name in _free_names(ctx, base):
        tree = Worktree(os.path.join(base, name), name, f"tt/{name}", ctx.now)
        with db.Write(con):
            if worktrees.by_station(con, name) is None:  # else somebody was faster
                worktrees.add(con, tree)
                return tree
    raise BusError("invalid_input", "there is no free number for a station left")


def _free_names(ctx: Context, base: str) -> Iterator[str]:
    """Names that no row, directory or branch has taken, by number."""
    con = ctx.bus.con
    words = ["-C", _main(ctx), "for-each-ref", "--format=%(refname)", "refs/heads/tt/"]
    done = gitdir.git(words, ctx.env)
    branches = set(done.out.decode("utf-8", "replace").split()) if done is not None else set()
    for number in range(1, NUMBER_MOST):
        name = f"station-{number}"
        taken = f"refs/heads/tt/{name}" in branches or os.path.lexists(os.path.join(base, name))
        if not taken and worktrees.by_station(con, name) is None:
            yield name


def _main(ctx: Context) -> str:
    """Where git is asked about the repository as a whole."""
    return ctx.place.repo if os.path.isdir(ctx.place.repo) else ctx.place.root


def _start(ctx: Context) -> list[str]:
    """New stations start at what is checked out where the command stands."""
    done = gitdir.git(["-C", ctx.place.root or _main(ctx), "rev-parse", "--verify", "-q", "HEAD"], ctx.env)
    return [done.out.decode().strip()] if done is not None and done.code == 0 else []


def _seed(ctx: Context, path: str) -> None:
    """Our permission rules, kept out of git's sight: a tool's own file must not dirty the tree."""
    target = os.path.join(path, SEED_PATH)
    if os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(SEED)
    ignored = gitdir.git(["-C", path, "check-ignore", "-q", SEED_PATH], ctx.env)
    if ignored is not None and ignored.code != 0:
        exclude = os.path.join(ctx.place.key, "info", "exclude")
        os.makedirs(os.path.dirname(exclude), exist_ok=True)
        with open(exclude, "a", encoding="utf-8") as file:
            file.write(f"\n# talking-stick: permission rules of stations\n/{SEED_PATH}\n")


def remove(ctx: Context, station: str, *, force: bool = False) -> Outcome:
    """Remove a managed worktree and its branch.

    Raises station_not_found, and unless forced station_dirty or station_unmerged: nothing is lost then.
    """
    _manager(ctx)
    tree = _managed(ctx, station)
    there = os.path.isdir(tree.path)
    if not force:
        _refuse_loss(ctx, tree, there=there)
    _git_or_refuse(ctx, ["worktree", "remove", "--force", tree.path], missing_is_fine=not there)
    _git_or_refuse(ctx, ["worktree", "prune"], missing_is_fine=True)
    if tree.branch:
        _git_or_refuse(ctx, ["branch", "-q", "-D", tree.branch], missing_is_fine=True)
    with db.Write(ctx.bus.con) as con:
        worktrees.remove(con, station)
    return Outcome({"status": "station_removed", **_shown(tree)})


def _managed(ctx: Context, station: str) -> Worktree:
    """The station that we made, or a refusal."""
    tree = worktrees.by_station(ctx.bus.con, station)
    if tree is None:
        raise BusError("station_not_found", f"there is no managed station {station[:64]!r}", "see `tt stations`")
    return tree


def _ours(tree: Worktree, path: str) -> bool:
    """Our own file as we wrote it, and nothing else."""
    if path != SEED_PATH:
        return False
    try:
        with open(os.path.join(tree.path, path), encoding="utf-8", errors="replace") as file:
            return file.read() == SEED
    except OSError:
        return False


def _git_or_refuse(ctx: Context, words: list[str], *, missing_is_fine: bool) -> None:
    """Run git; what it refuses is refused."""
    done = gitdir.git(["-C", _main(ctx), *words], ctx.env, seconds=GIT_SECONDS)
    if (done is None or done.code != 0) and not missing_is_fine:
        said = done.err.strip() if done is not None else "git did not answer"
        raise BusError("invalid_input", f"git refused: {said[:300]}")


def _refuse_loss(ctx: Context, tree: Worktree, *, there: bool) -> None:
    """Uncommitted changes, or commits that are nowhere else. Where git does not answer, it may be either."""
    found = gitdir.status(tree.path, ctx.env) if there else None
    if there and found is None:
        said = f"git does not say how {tree.station} stands"
        raise BusError("station_dirty", said, "look there, or --force", changed=[])
    dirt = [path for path in found.changed if not _ours(tree, path)] if found is not None else []
    if dirt:
        raise BusError(
            "station_dirty",
            f"{tree.station} has uncommitted changes: {', '.join(dirt[:5])}",
            "commit them there, or --force",
            changed=dirt[:50],
        )
    left = _only_there(ctx, tree, found.head if found is not None else None)
    if left:
        raise BusError(
            "station_unmerged",
            f"{tree.station} has {len(left)} commits that are not merged: {left[0][:80]}",
            f"merge {tree.branch} first, or --force",
            commits=left,
        )


def _only_there(ctx: Context, tree: Worktree, head: str | None) -> list[str]:
    """Commits of the station's branch, or of what is checked out there, that no other branch, tag or remote has."""
    main = _main(ctx)
    branch = f"refs/heads/{tree.branch}"
    known = gitdir.git(["-C", main, "rev-parse", "--verify", "-q", branch], ctx.env)
    tips = ([branch] if known is not None and known.code == 0 else []) + ([head] if head else [])
    if not tips:
        return []
    others = ["--not", f"--exclude={tree.branch}", "--branches", "--tags", "--remotes"]
    done = gitdir.git(["-C", main, "log", "--format=%h %s", "-n", "20", *tips, *others], ctx.env, seconds=GIT_SECONDS)
    if done is None or done.code != 0:
        return ["git does not say which"]
    return done.out.decode("utf-8", "replace").splitlines()


def attach(ctx: Context, station: str) -> Outcome:
    """How to start a session at a station."""
    tree = _managed(ctx, station)
    command = f"cd {_quoted(tree.path)} && claude"
    return Outcome({"status": "attach", "station": station, "path": tree.path, "command": command}, Wakes())


def _quoted(path: str) -> str:
    """A path as a shell takes it."""
    import shlex

    return shlex.quote(path)
