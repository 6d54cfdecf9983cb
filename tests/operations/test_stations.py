"""Stations with real git: names by the recorded tree, worktrees made and removed without losing work."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest

from bus import identity, limits, process
from bus.errors import BusError
from bus.operations import enter, join, messages, settings, stations, where
from tests.kit.desk import ANN, A, B

WHO = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]


class Yard:
    """A repository with `main`, whose agents stand where `cwd` says."""

    def __init__(self, top, patch) -> None:
        self.top = os.path.realpath(top)
        self.main = os.path.join(self.top, "main")
        self.patch = patch
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": self.top,
            "USER": "tester",
            "TALKING_STICK_DATA_DIR": os.path.join(self.top, "data"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        os.makedirs(self.main)
        self.git(self.main, "init", "-q", "-b", "main")
        self.write(self.main, "a.txt", "a")
        self.commit(self.main, "first")
        real = identity.caller

        def caller(env, pid, *, agent=None, **_):
            found = real(env, pid, agent=agent, procs=[])
            anchor = self.anchors.get(agent, f"elsewhere/1/{agent}".replace("/human", "/h"))
            return found.replace(anchor=anchor, person=found.kind != "harness")

        self.anchors: dict[str, str] = {}
        patch.setattr(identity, "caller", caller)
        patch.setattr(process, "liveness", lambda _: "unknown")
        patch.setattr(limits, "SWEEP", 0)

    def git(self, cwd, *words):
        done = subprocess.run(
            ["git", *WHO, *words], cwd=cwd, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, folder, name, text):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def commit(self, folder, message):
        self.git(folder, "add", "-A")
        self.git(folder, "commit", "-q", "-m", message)

    def linked(self, name):
        path = os.path.join(self.top, "trees", name)
        self.git(self.main, "worktree", "add", "-q", "-b", "b-" + name.replace(" ", "-"), path)
        return path

    def do(self, agent, operation, *args, cwd=None, path=None, env=None, **named):
        self.patch.chdir(cwd or self.main)
        with contextlib.closing(
            enter.enter(path, agent=agent, make=True, need_room=False, env=self.env | (env or {}))
        ) as ctx:
            return operation(ctx, *args, **named).result

    def at(self, agent, cwd, **more):
        """The station of an agent's command there."""
        self.patch.chdir(cwd)
        with contextlib.closing(enter.enter(None, agent=agent, make=True, need_room=False, env=self.env | more)) as ctx:
            return ctx.station()

    def refused(self, agent, code, operation, *args, **named):
        with pytest.raises(BusError) as refused:
            self.do(agent, operation, *args, **named)
        assert refused.value.code == code, refused.value.message
        return refused.value


@pytest.fixture
def yard(tmp_path, monkeypatch):
    return Yard(tmp_path, monkeypatch)


def one_station(yard):
    return yard.do(ANN, stations.add)["stations"][0]["path"]


class TestNames:
    @pytest.mark.parametrize(
        ("entry", "station"),
        [
            ("feature", "feature"),
            ("expo", "wt-expo"),
            ("sous", "wt-sous"),
            ("human", "wt-human"),
            ("station-7", "wt-station-7"),
            ("Feature X", "feature-x"),
        ],
    )
    def test_of_other_linked_worktrees(self, yard, entry, station):
        assert yard.at(A, yard.linked(entry)) == station

    def test_of_main_and_managed(self, yard):
        path = one_station(yard)
        assert yard.at(A, yard.main) == "expo"
        assert yard.at(B, path) == "station-1"

    def test_of_a_subfolder_and_of_a_room_in_it(self, yard):
        deep = os.path.join(one_station(yard), "expo", "deep")
        os.makedirs(deep)
        assert yard.at(A, deep) == "station-1"
        yard.do(A, lambda ctx: join.join(ctx, force_new=True), cwd=deep)
        assert yard.at(B, deep) == "station-1"

    def test_the_first_place_is_kept(self, yard):
        path = one_station(yard)
        yard.do(A, join.join, cwd=path)
        assert yard.at(A, yard.main) == "station-1"
        yard.anchors |= {A: "elsewhere/9/9", "claude:new": "elsewhere/9/9"}

    def test_a_removed_station_makes_nobody_the_expo(self, yard):
        path = one_station(yard)
        yard.do(A, join.join, cwd=path)
        yard.do(ANN, stations.remove, "station-1", force=True)
        assert not os.path.exists(path)
        assert yard.at(A, yard.main) == "station-1"
        yard.refused(A, "not_permitted", stations.add)

    @pytest.mark.parametrize("name", ["TT_STATION", "HANDS_ID"])
    def test_variables_must_agree(self, yard, name):
        path = one_station(yard)
        assert yard.at(A, path, **{name: "station-1"}) == "station-1"
        with pytest.raises(BusError) as refused:
            yard.at(A, path, **{name: "expo"})
        assert "expo" in refused.value.message
        assert "station-1" in refused.value.message
        with pytest.raises(BusError):
            yard.at(A, path, TT_STATION="station-1", HANDS_ID="expo")


class TestAdd:
    def test_worktree_branch_seed_and_topology(self, yard):
        before = yard.do(ANN, stations.listing)
        assert (before["topology"], before["stations"]) == ("open", [])
        made = yard.do(ANN, stations.add, 2)
        assert made["topology"] == "strict-hub"
        for one in made["stations"]:
            assert yard.git(one["path"], "branch", "--show-current") == f"tt/{one['station']}"
            assert os.path.isfile(os.path.join(one["path"], stations.SEED_PATH))
            assert yard.git(one["path"], "status", "--porcelain") == ""
        assert yard.git(yard.main, "status", "--porcelain") == ""

    def test_a_topology_that_was_chosen_stays(self, yard):
        yard.do(ANN, settings.put, "topology", "open")
        assert yard.do(ANN, stations.add)["topology"] == "open"

    def test_numbers_that_are_taken_are_passed_over(self, yard):
        yard.git(yard.main, "branch", "tt/station-1")
        assert yard.do(ANN, stations.add)["stations"][0]["station"] == "station-2"

    def test_plan_changes_nothing(self, yard):
        planned = yard.do(ANN, stations.plan, 2)
        assert [one["station"] for one in planned["stations"]] == ["station-1", "station-2"]
        assert planned["seed"] == stations.SEED
        assert yard.do(ANN, stations.listing)["stations"] == []
        assert yard.do(ANN, stations.add, 2)["stations"] == planned["stations"]

    @pytest.mark.parametrize("count", [0, -1, 51])
    def test_counts(self, yard, count):
        yard.refused(ANN, "invalid_input", stations.add, count)

    def test_from_a_repository_without_commits(self, yard):
        empty = os.path.join(yard.top, "empty")
        os.makedirs(empty)
        yard.git(empty, "init", "-q")
        yard.refused(ANN, "invalid_input", stations.add, cwd=empty)
        listed = yard.do(ANN, stations.listing, cwd=empty)
        assert (listed["topology"], listed["stations"]) == ("open", [])

    def test_agents_of_stations_may_not(self, yard):
        path = one_station(yard)
        yard.refused(A, "not_permitted", stations.add, cwd=path)
        yard.refused(A, "not_permitted", stations.remove, "station-1", cwd=path)
        yard.do(B, stations.add)  # the expo


class TestRemove:
    def test_clean(self, yard):
        path = one_station(yard)
        yard.do(ANN, stations.remove, "station-1")
        assert not os.path.exists(path)
        assert yard.git(yard.main, "branch", "--list", "tt/*") == ""
        yard.refused(ANN, "station_not_found", stations.remove, "station-1")

    @pytest.mark.parametrize("name", ["a.txt", "new.txt", ".talking-stick/instructions.md"])
    def test_uncommitted(self, yard, name):
        path = one_station(yard)
        yard.write(path, name, "changed")
        error = yard.refused(ANN, "station_dirty", stations.remove, "station-1")
        assert error.details["changed"] == [name]
        assert os.path.isdir(path)
        yard.do(ANN, stations.remove, "station-1", force=True)
        assert not os.path.exists(path)

    def test_unmerged_and_merged(self, yard):
        path = one_station(yard)
        yard.write(path, "b.txt", "b")
        yard.commit(path, "work")
        error = yard.refused(ANN, "station_unmerged", stations.remove, "station-1")
        assert error.details["commits"][0].endswith(" work")
        yard.git(yard.main, "merge", "-q", "tt/station-1")
        yard.do(ANN, stations.remove, "station-1")

    def test_commits_on_a_detached_head(self, yard):
        path = one_station(yard)
        yard.git(path, "checkout", "-q", "--detach")
        yard.write(path, "b.txt", "b")
        yard.commit(path, "loose work")
        yard.refused(ANN, "station_unmerged", stations.remove, "station-1")

    def test_where_git_does_not_answer(self, yard):
        path = one_station(yard)
        os.rename(os.path.join(path, ".git"), os.path.join(path, "git"))
        yard.refused(ANN, "station_dirty", stations.remove, "station-1")

    def test_a_folder_that_is_gone(self, yard):
        path = one_station(yard)
        os.rename(path, path + ".moved")
        yard.do(ANN, stations.remove, "station-1")
        assert yard.do(ANN, stations.listing)["stations"] == []

    def test_a_seed_that_a_global_ignore_does_not_hide(self, yard):
        """The tool's own file is no dirt, also where nothing ignores it."""
        path = one_station(yard)
        with open(os.path.join(yard.main, ".git", "info", "exclude"), "w", encoding="utf-8"):
            pass
        assert yard.git(path, "status", "--porcelain") != ""
        yard.do(ANN, stations.remove, "station-1")


def test_attach(yard):
    path = one_station(yard)
    assert yard.do(ANN, stations.attach, "station-1")["command"] == f"cd {path} && claude"
    yard.refused(ANN, "station_not_found", stations.attach, "expo")


class TestSettings:
    def test_the_sous_is_an_agent_or_a_station(self, yard):
        path = one_station(yard)
        yard.do(A, join.join, cwd=path)
        yard.do(B, join.join)
        for value in ("nobody", "expo", "human:tester", "*"):
            yard.refused(ANN, "station_not_found", settings.put, "sous", value)
        yard.refused(A, "not_permitted", settings.put, "sous", A, cwd=path)
        yard.do(ANN, settings.put, "sous", B)
        assert yard.at(B, yard.main) == "sous"
        yard.do(ANN, settings.put, "sous", "station-1")
        assert yard.at(B, yard.main) == "expo"
        yard.do(ANN, settings.put, "sous", "")
        assert yard.do(ANN, settings.get, "sous")["default"] is True

    def test_a_main_worktree_is_the_expo_already(self, yard):
        yard.refused(ANN, "invalid_input", settings.put, "expo", yard.linked("x"))

    def test_the_expo_of_a_bare_repository(self, yard):
        bare = os.path.join(yard.top, "bare.git")
        yard.git(yard.top, "clone", "-q", "--bare", yard.main, bare)
        trees = [os.path.join(yard.top, name) for name in ("left", "right")]
        for number, tree in enumerate(trees):
            yard.git(bare, "worktree", "add", "-q", "-b", f"w{number}", tree)
        assert yard.at(A, trees[0]) == "left"
        yard.do(ANN, settings.put, "expo", trees[0], cwd=trees[0])
        assert yard.at(A, trees[0]) == "expo"
        assert yard.at(B, trees[1]) == "right"
        yard.do(A, stations.add, cwd=trees[0])
        yard.refused(A, "invalid_input", settings.put, "topology", "ring", cwd=trees[0])
        yard.refused(B, "not_permitted", settings.put, "expo", trees[1], cwd=trees[1])


def test_own_room_is_that_of_the_recorded_tree(yard):
    path = one_station(yard)
    yard.do(A, join.join, cwd=path)
    yard.do(B, join.join)
    yard.do(A, messages.send, "room", "mine", cwd=path)
    yard.do(A, join.join, cwd=path, path=yard.main)
    yard.refused(A, "topology_refused", messages.send, "room", "theirs", cwd=path, path=yard.main)


def test_unknown_stations_do_not_exist(yard):
    one_station(yard)
    yard.do(ANN, join.join)
    yard.patch.chdir(yard.main)
    with contextlib.closing(enter.enter(None, agent=ANN, env=yard.env)) as ctx:
        found = {name: where.exists(ctx.bus.con, name) for name in ("expo", "station-1", "station-2", "wt-x", "*", "")}
    assert [name for name, there in found.items() if there] == ["expo", "station-1"]
