"""Stations: a role by place. Names, topology, and the managed worktrees.

Kept true: address and rights hang on the recorded working tree, never on a folder's name or a
variable; removing refuses to lose work.
"""

from __future__ import annotations

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
    from typing import Any

    from bus.operations.enter import Context

COUNT_MOST = 50
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


def add(ctx: Context, count: int = 1) -> Outcome:
    """Make worktrees, each on a branch of its own. From the first one on the topology is strict-hub."""
    _manager(ctx)
    if not 0 < count <= COUNT_MOST:
        raise BusError("invalid_input", f"--count takes 1 to {COUNT_MOST}", count=count)
    base = os.path.join(datadir.data_dir(ctx.env), "worktrees", ctx.bus.name)
    datadir.ensure_private(base)
    made = [_add_one(ctx, base) for _ in range(count)]
    return Outcome({"status": "stations_added", "stations": made, "topology": where.topology(ctx.bus.con)})


def _add_one(ctx: Context, base: str) -> dict[str, Any]:
    """One worktree: the row is written first, so that two who add at once take different numbers."""
    con = ctx.bus.con
    with db.Write(con):
        taken = {tree.station for tree in worktrees.every(con)}
        number = next(n for n in range(1, 10_000) if f"station-{n}" not in taken and _free(ctx, base, n))
        name = f"station-{number}"
        tree = Worktree(os.path.realpath(os.path.join(base, name)), name, f"tt/{name}", ctx.now)
        worktrees.add(con, tree)
        if config.get(con, "topology") is None:
            config.put(con, "topology", roles.STRICT)
    done = gitdir.git(
        ["-C", ctx.place.root, "worktree", "add", "-b", f"tt/{name}", tree.path], ctx.env, seconds=GIT_SECONDS
    )
    if done is None or done.code != 0:
        with db.Write(con):
            worktrees.remove(con, name)
        said = done.err.strip() if done is not None else "git did not answer"
        raise BusError("invalid_input", f"git made no worktree: {said[:300]}", "commit something first?")
    _seed(ctx, tree.path)
    return {"station": name, "path": tree.path, "branch": tree.branch}


def _free(ctx: Context, base: str, number: int) -> bool:
    """Neither a directory nor a branch of that number is left over."""
    if os.path.exists(os.path.join(base, f"station-{number}")):
        return False
    branch = f"refs/heads/tt/station-{number}"
    done = gitdir.git(["-C", ctx.place.root, "show-ref", "--verify", "--quiet", branch], ctx.env)
    return done is None or done.code != 0


def _seed(ctx: Context, path: str) -> None:
    """Our permission rules, kept out of git's sight: a tool's own file must not dirty the tree."""
    target = os.path.join(path, SEED_PATH)
    if os.path.exists(target):
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
    tree = worktrees.by_station(ctx.bus.con, station)
    if tree is None:
        raise BusError("station_not_found", f"there is no managed station {station[:64]!r}", "see `tt stations`")
    if not force:
        _refuse_loss(ctx, tree)
    if os.path.exists(os.path.join(tree.path, SEED_PATH)):
        _unseed(os.path.join(tree.path, SEED_PATH))
    _git_or_refuse(ctx, ["worktree", "remove", "--force", tree.path], missing_is_fine=not os.path.isdir(tree.path))
    _git_or_refuse(ctx, ["branch", "-D", tree.branch or ""], missing_is_fine=True)
    with db.Write(ctx.bus.con) as con:
        worktrees.remove(con, station)
    return Outcome({"status": "station_removed", "station": station, "path": tree.path, "branch": tree.branch})


def _unseed(path: str) -> None:
    """Take our own file away, if nobody changed it."""
    with open(path, encoding="utf-8") as file:
        if file.read() == SEED:
            os.unlink(path)


def _git_or_refuse(ctx: Context, words: list[str], *, missing_is_fine: bool) -> None:
    """Run git; what it refuses is refused."""
    main = ctx.place.repo if os.path.isdir(ctx.place.repo) else ctx.place.root
    done = gitdir.git(["-C", main, *words], ctx.env, seconds=GIT_SECONDS)
    if (done is None or done.code != 0) and not missing_is_fine:
        said = done.err.strip() if done is not None else "git did not answer"
        raise BusError("invalid_input", f"git refused: {said[:300]}")


def _refuse_loss(ctx: Context, tree: Worktree) -> None:
    """Uncommitted changes, or commits that are nowhere else."""
    found = gitdir.status(tree.path, ctx.env) if os.path.isdir(tree.path) else None
    dirt = [path for path in found.changed if path != SEED_PATH] if found is not None else []
    if dirt:
        raise BusError(
            "station_dirty",
            f"{tree.station} has uncommitted changes: {', '.join(dirt[:5])}",
            "commit them there, or --force",
            changed=dirt[:50],
        )
    main = ctx.place.repo if os.path.isdir(ctx.place.repo) else ctx.place.root
    words = ["-C", main, "log", "--format=%h %s", "-n", "20", f"refs/heads/{tree.branch}", "--not", "HEAD"]
    done = gitdir.git(words, ctx.env)
    left = done.out.decode("utf-8", "replace").splitlines() if done is not None and done.code == 0 else []
    if left:
        raise BusError(
            "station_unmerged",
            f"{tree.station} has {len(left)} commits that are not merged: {left[0][:80]}",
            f"merge {tree.branch} first, or --force",
            commits=left,
        )


def attach(ctx: Context, station: str) -> Outcome:
    """How to start a session at a station."""
    tree = worktrees.by_station(ctx.bus.con, station)
    if tree is None:
        raise BusError("station_not_found", f"there is no managed station {station[:64]!r}", "see `tt stations`")
    command = f"cd {_quoted(tree.path)} && claude"
    return Outcome({"status": "attach", "station": station, "path": tree.path, "command": command}, Wakes())


def _quoted(path: str) -> str:
    """A path as a shell takes it."""
    import shlex

    return shlex.quote(path)
