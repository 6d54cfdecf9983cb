"""Which bus and which room a directory means, against real repositories."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import sys

import pytest

from bus import datadir, gitdir, places
from bus.errors import BusError


@pytest.fixture
def env(tmp_path):
    (tmp_path / "home").mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "TALKING_STICK_DATA_DIR": str(tmp_path / "data"),
    }


@pytest.fixture
def run(env):
    """Run git as a user would, in a directory."""

    def run(where, *arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        done = subprocess.run(["git", "-C", where, *who, *arguments], env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()

    return run


@pytest.fixture
def make(tmp_path, run):
    """Make a repository with one commit."""

    def make(name="repo", *options):
        path = tmp_path / name
        path.mkdir(parents=True)
        run(path, "init", "-q", "-b", "main", *options)
        run(path, "commit", "-q", "--allow-empty", "-m", "first")
        return str(path)

    return make


@pytest.fixture
def folder(tmp_path):
    """Make a plain directory, with or without files in it."""

    def folder(name, *files):
        path = tmp_path / name
        path.mkdir(parents=True, exist_ok=True)
        for file in files:
            (path / file).touch()
        return str(path)

    return folder


@pytest.fixture
def find(env):
    """`places.find` with the test's environment and some changes to it."""

    def find(path=None, *, exact=False, **changes):
        return places.find(path, {**env, **changes}, exact=exact)

    return find


@pytest.fixture
def join(find, env):
    """Make the room (and its bus) that a path leads to, as the first `tt join` does."""

    def join(path, *, exact=False):
        place = find(path, exact=exact)
        places.ensure_private(place.bus_dir)
        with open(f"{place.bus_dir}/bus.db", "w"):
            pass
        room_id = "room-" + hashlib.sha256(place.root.encode()).hexdigest()[:6]
        places.index_add(places.data_dir(env), place.root, place.bus_dir, room_id, place=place)
        return find(place.root)

    return join


@pytest.fixture
def bad_git(tmp_path):
    """A PATH on which git fails and leaves a trace."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/git").write_text(f"#!/bin/sh\necho called >> '{tmp_path}/called'\nexit 1\n")
    (tmp_path / "bad/git").chmod(0o755)
    return f"{tmp_path}/bad:{os.environ['PATH']}"


def refused(code, function, *arguments, **options):
    """The refusal must have this code."""
    with pytest.raises(BusError) as caught:
        function(*arguments, **options)
    assert caught.value.code == code
    return caught.value


class TestWhichBus:
    def test_name_is_the_repository_and_ten_hex_of_the_common_dir(self, make, find, env):
        repo = make("My Repo")
        place = find(repo)
        digest = hashlib.sha256(f"{repo}/.git".encode()).hexdigest()[:10]
        assert place.bus_dir == f"{env['TALKING_STICK_DATA_DIR']}/buses/My-Repo-{digest}"
        assert (place.key, place.repo, place.root, place.room) == (f"{repo}/.git", repo, repo, None)
        assert (place.linked, place.station_hint, place.warnings) == (False, "expo", [])

    def test_a_subfolder_is_the_same_place(self, make, find):
        repo = make()
        os.makedirs(f"{repo}/a/b")
        assert find(f"{repo}/a/b") == find(repo).replace(requested=f"{repo}/a/b")

    def test_looking_makes_nothing(self, make, find, tmp_path):
        find(make())
        assert not (tmp_path / "data").exists()

    def test_linked_worktrees_meet_on_one_bus(self, make, run, find, join, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        linked = find(str(tmp_path / "wt"))
        assert linked.bus_dir == find(repo).bus_dir
        assert (linked.root, linked.linked, linked.station_hint) == (str(tmp_path / "wt"), True, "wt")
        assert linked.repo == repo
        assert join(repo).bus_dir == join(str(tmp_path / "wt")).bus_dir
        after = find(str(tmp_path / "wt"))
        assert after == linked.replace(room=linked.root, room_id=after.room_id)

    def test_worktree_nested_below_the_main_one_is_its_own_root(self, make, run, find, join):
        repo = make()
        run(repo, "worktree", "add", "-q", f"{repo}/.trees/one")
        os.makedirs(f"{repo}/.trees/one/deep")
        main = join(repo)
        nested = find(f"{repo}/.trees/one/deep")
        assert (nested.bus_dir, nested.root, nested.room) == (main.bus_dir, f"{repo}/.trees/one", None)
        assert find(f"{repo}/.trees").room == repo
        assert join(f"{repo}/.trees/one/deep").room == f"{repo}/.trees/one"
        assert find(repo).room == repo

    def test_linked_worktree_below_a_room_of_another_bus_keeps_its_own(self, make, run, find, join, folder):
        umbrella = folder("umbrella", "AGENTS.md")
        repo = make("repo")
        run(repo, "worktree", "add", "-q", f"{umbrella}/wt")
        join(umbrella)
        assert find(f"{umbrella}/wt").bus_dir == find(repo).bus_dir

    def test_submodule_has_its_own_bus_unless_there_is_a_room_above(self, make, run, find, join):
        repo, other = make(), make("other")
        run(repo, "submodule", "add", "-q", other, "sub")
        alone = find(f"{repo}/sub")
        assert (alone.root, alone.key) == (f"{repo}/sub", f"{repo}/.git/modules/sub")
        assert alone.bus_dir != find(repo).bus_dir
        main = join(repo)
        below = find(f"{repo}/sub")
        assert (below.bus_dir, below.room, below.root) == (main.bus_dir, repo, f"{repo}/sub")
        assert "repository of its own" in below.warnings[0]

    def test_two_submodules_are_two_buses(self, make, run, find):
        repo, other = make(), make("other")
        run(repo, "submodule", "add", "-q", other, "one")
        run(repo, "submodule", "add", "-q", other, "two")
        assert len({find(f"{repo}/{name}").bus_dir for name in (".", "one", "two")}) == 3

    def test_nested_repository_uses_the_room_above_with_a_warning(self, make, find, join):
        repo, inner = make(), make("repo/inner")
        os.mkdir(f"{inner}/deep")
        assert find(inner).bus_dir != find(repo).bus_dir
        join(repo)
        place = find(f"{inner}/deep")
        assert (place.room, place.root) == (repo, inner)
        assert place.warnings[0].startswith(inner)
        assert find(f"{repo}").warnings == []

    def test_the_deepest_room_wins(self, make, find, join, folder):
        repo = make()
        folder("repo/part/deep")
        join(repo)
        part = join(f"{repo}/part", exact=True)
        assert (part.room, part.bus_dir) == (f"{repo}/part", find(repo).bus_dir)
        assert find(f"{repo}/part/deep").room == f"{repo}/part"
        assert find(repo).room == repo

    def test_room_made_in_a_nested_repository_stays_on_the_bus_above(self, make, find, join):
        repo, inner = make(), make("repo/inner")
        above = join(repo)
        made = join(inner, exact=True)
        assert (made.room, made.bus_dir, made.warnings) == (inner, above.bus_dir, [])

    def test_exact_root_and_room(self, make, find, join, folder):
        repo = make()
        sub = folder("repo/sub")
        first = find(sub, exact=True)
        assert (first.root, first.room, first.key) == (sub, None, f"{repo}/.git")
        join(repo)
        place = find(sub, exact=True)
        assert (place.root, place.room, place.room_id, place.warnings) == (sub, None, None, [])
        assert find(repo, exact=True).room == repo

    def test_bare_repository_has_no_room_but_its_worktrees_do(self, make, run, find, tmp_path):
        run(tmp_path, "clone", "-q", "--bare", make(), str(tmp_path / "x.git"))
        error = refused("bare_repository", find, str(tmp_path / "x.git"))
        assert "worktree" in error.hint
        for name in ("one", "two"):
            run(tmp_path / "x.git", "worktree", "add", "-q", str(tmp_path / name))
        one, two = find(str(tmp_path / "one")), find(str(tmp_path / "two"))
        assert one.bus_dir == two.bus_dir
        assert (one.repo, one.station_hint) == (str(tmp_path / "x.git"), "one")
        assert os.path.basename(one.bus_dir).startswith("x-")

    def test_two_bare_repositories_in_one_folder_are_two_buses(self, make, run, find, tmp_path):
        source = make()
        for name in ("a", "b"):
            run(tmp_path, "clone", "-q", "--bare", source, str(tmp_path / f"{name}.git"))
            run(tmp_path / f"{name}.git", "worktree", "add", "-q", str(tmp_path / f"tree-{name}"))
        assert find(str(tmp_path / "tree-a")).bus_dir != find(str(tmp_path / "tree-b")).bus_dir

    def test_a_room_above_a_bare_repository_decides(self, make, run, find, join, folder):
        umbrella = folder("umbrella", "AGENTS.md")
        run(umbrella, "clone", "-q", "--bare", make(), f"{umbrella}/x.git")
        join(umbrella)
        assert find(f"{umbrella}/x.git").room == umbrella

    def test_separate_git_dir(self, make, run, find, tmp_path):
        repo = make("repo", "--separate-git-dir", str(tmp_path / "thing.git"))
        place = find(repo)
        assert (place.root, place.key, place.repo) == (repo, str(tmp_path / "thing.git"), repo)
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        assert find(str(tmp_path / "wt")).bus_dir == place.bus_dir

    def test_dubious_ownership(self, make, find):
        if os.name == "nt" or os.geteuid() != 0:
            pytest.skip("only root can give a repository to somebody else")
        repo = make()
        for path in (repo, f"{repo}/.git"):
            os.chown(path, 12345, 12345)
        refused("dubious_ownership", find, repo)

    def test_git_variables_of_the_caller_change_nothing(self, make, find):
        repo, other = make(), make("other")
        os.mkdir(f"{repo}/sub")
        misleading = {
            "GIT_DIR": f"{other}/.git",
            "GIT_WORK_TREE": other,
            "GIT_COMMON_DIR": f"{other}/.git",
            "GIT_CEILING_DIRECTORIES": repo,
            "GIT_PREFIX": "x/",
        }
        assert find(f"{repo}/sub", **misleading) == find(f"{repo}/sub")

    def test_missing_git_finds_the_same_bus(self, make, run, find, folder, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        for path in (repo, str(tmp_path / "wt")):
            assert find(path, PATH=folder("nothing")) == find(path)

    @pytest.mark.parametrize("name", ["with space", "ünïcödé", "new\nline", "per%0Acent", "C:d*", "." * 3 + "x"])
    def test_odd_names_survive_the_index(self, name, make, find, join):
        repo = make(name)
        before = find(repo)
        joined = join(repo)
        assert joined == before.replace(room=repo, room_id=joined.room_id)
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*-[0-9a-f]{10}", os.path.basename(joined.bus_dir))

    def test_a_bus_whose_readable_name_differs_is_kept(self, make, find, env):
        repo = make()
        renamed = find(repo).bus_dir.replace("/repo-", "/older-")
        os.makedirs(renamed)
        with open(f"{renamed}/bus.db", "w"):
            pass
        assert find(repo).bus_dir == renamed


class TestLabels:
    @pytest.mark.parametrize(
        ("key", "label"),
        [
            ("/a/repo/.git", "repo"),
            ("/a/repo/.bare", "repo"),
            ("/a/x.git", "x"),
            ("/a/.git", "a"),
            ("/", "repo"),
            ("/.git", "repo"),
            ("/a/名前/.git", "repo"),
            ("/a/my repo!!x/.git", "my-repo-x"),
            ("/a/" + "x" * 300, "x" * 40),
        ],
    )
    def test_label(self, key, label):
        assert places.bus_label(key) == label


class TestNoProcess:
    def test_with_a_room_git_is_not_run(self, make, run, find, join, bad_git, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", f"{repo}/wt")
        run(repo, "submodule", "add", "-q", make("other"), "sub")
        os.makedirs(f"{repo}/wt/deep")
        join(repo)
        join(f"{repo}/wt")
        for path in (repo, f"{repo}/wt/deep", f"{repo}/sub"):
            assert find(path, PATH=bad_git).room in (repo, f"{repo}/wt")
        assert not (tmp_path / "called").exists()

    def test_with_a_bus_git_is_not_run_for_ordinary_worktrees(self, make, run, find, join, bad_git, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        join(repo)
        asked = gitdir.tree(str(tmp_path / "wt"), {"PATH": os.environ["PATH"]})
        place = find(str(tmp_path / "wt"), PATH=bad_git)
        assert (place.root, place.key) == (asked.top, asked.common_dir)
        assert not (tmp_path / "called").exists()

    def test_outside_git_it_is_not_run_either(self, find, folder, bad_git, tmp_path):
        find(folder("plain"), PATH=bad_git)
        assert not (tmp_path / "called").exists()

    def test_without_room_and_bus_git_is_asked(self, make, find, bad_git, tmp_path):
        find(make(), PATH=bad_git)
        assert (tmp_path / "called").exists()

    def test_the_fast_path_loads_no_subprocess_module(self, make, join, env):
        repo = make()
        join(repo)
        root = os.path.dirname(os.path.dirname(places.__file__))
        code = (
            f"import os, sys; sys.path.insert(0, {root!r}); from bus import places;"
            f"print(places.find({repo!r}, os.environ).room, 'subprocess' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True)
        assert done.stdout.split() == [repo, "False"], done.stderr


class TestOutsideGit:
    @pytest.mark.parametrize("marker", places.MARKERS)
    def test_nearest_marker(self, marker, find, folder):
        root = folder("work", marker)
        place = find(folder("work/a/b"))
        assert (place.root, place.key, place.repo) == (root, root, root)
        assert (place.linked, place.station_hint) == (False, None)

    def test_the_nearer_of_two(self, find, folder):
        folder("work", "go.mod")
        inner = folder("work/inner", "go.mod")
        assert find(folder("work/inner/x")).root == inner

    def test_no_marker_is_the_directory_itself(self, find, folder):
        assert find(folder("plain/sub")).root == folder("plain/sub")

    def test_a_directory_with_a_markers_name_is_none(self, find, folder):
        folder("work/CLAUDE.md")
        assert find(folder("work/x")).root == folder("work/x")

    def test_exact(self, find, folder):
        folder("work", "go.mod")
        sub = folder("work/sub")
        place = find(sub, exact=True)
        assert (place.root, place.key) == (sub, sub)

    def test_a_marker_in_a_shared_scratch_directory_does_not_count(self, find, folder):
        os.chmod(folder("tmp", "package.json"), 0o1777)
        assert find(folder("tmp/mine")).root == folder("tmp/mine")
        assert find(folder("tmp")).root == folder("tmp")

    def test_a_repository_made_later_stays_on_the_bus_of_its_room(self, find, folder, join, run):
        work = folder("work")
        before = join(work)
        run(work, "init", "-q")
        assert find(work).bus_dir == before.bus_dir

    def test_broken_git_is_the_plain_path_with_a_warning(self, find, folder):
        work = folder("work")
        with open(f"{work}/.git", "w") as file:
            file.write("gitdir: /nowhere/worktrees/x\n")
        place = find(folder("work/deep"))
        assert (place.root, place.key) == (work, work)
        assert "git cannot use" in place.warnings[0]


class TestHome:
    def test_markers_in_home_do_not_count_below_it(self, find, folder):
        folder("home", "package.json", "CLAUDE.md")
        assert find(folder("home/scratch")).root == folder("home/scratch")

    def test_markers_above_home_do_not_count_either(self, find, folder, tmp_path):
        folder(".", "package.json")
        assert find(folder("home/scratch")).root == folder("home/scratch")

    def test_home_itself_can_be_joined_but_swallows_nothing(self, find, folder, join):
        home = folder("home")
        assert join(home).room == home
        assert find(folder("home/scratch")).room is None

    def test_rooms_above_home_are_not_found_from_below(self, find, folder, join, tmp_path):
        join(str(tmp_path))
        assert find(folder("home/scratch")).room is None
        assert find(folder("elsewhere")).room == str(tmp_path)

    def test_a_room_below_home_is_found(self, find, folder, join):
        room = join(folder("home/project")).room
        assert find(folder("home/project/a/b")).room == room

    def test_home_behind_a_symlink(self, find, folder, tmp_path):
        home = folder("home", "package.json")
        (tmp_path / "alias").symlink_to(home)
        scratch = folder("home/scratch")
        assert find(scratch, HOME=str(tmp_path / "alias")).root == scratch

    def test_home_that_is_a_repository(self, find, folder, join, run):
        home = folder("home")
        run(home, "init", "-q")
        assert find(folder("home/sub")).root == home
        join(home)
        assert find(folder("home/sub")).room == home


class TestPaths:
    def test_file_means_its_directory(self, make, find):
        repo = make()
        with open(f"{repo}/file", "w"):
            pass
        assert find(f"{repo}/file") == find(repo)

    def test_symlink_means_what_it_points_to(self, make, find, join, tmp_path):
        repo = make()
        (tmp_path / "link").symlink_to(repo)
        assert find(str(tmp_path / "link")) == find(repo)
        join(str(tmp_path / "link"))
        assert find(repo).room == repo

    def test_working_directory_and_tt_room(self, make, find, folder, monkeypatch):
        repo, other = make(), make("other")
        monkeypatch.chdir(repo)
        assert find().root == repo
        assert find(TT_ROOM="").root == repo
        assert find(TT_ROOM=other).root == other
        assert find(repo, TT_ROOM=other).root == repo
        assert find(".", TT_ROOM=other).root == repo

    @pytest.mark.parametrize("path", [None, ".", "sub", ".."])
    def test_deleted_working_directory(self, path, find, folder, monkeypatch):
        gone = folder("gone")
        monkeypatch.chdir(gone)
        os.rmdir(gone)
        error = refused("room_not_found", find, path)
        assert error.hint

    def test_deleted_working_directory_does_not_matter_for_an_absolute_path(self, make, find, folder, monkeypatch):
        repo, gone = make(), folder("gone")
        monkeypatch.chdir(gone)
        os.rmdir(gone)
        assert find(repo).root == repo
        assert find(TT_ROOM=repo).root == repo

    def test_no_such_directory(self, find, tmp_path):
        assert refused("room_not_found", find, str(tmp_path / "no")).details["path"] == str(tmp_path / "no")
        (tmp_path / "dangling").symlink_to(tmp_path / "no")
        refused("room_not_found", find, str(tmp_path / "dangling"))
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        refused("room_not_found", find, str(tmp_path / "loop"))

    @pytest.mark.parametrize("path", ["", "a\0b"])
    def test_impossible_paths(self, path, find):
        refused("invalid_input", find, path)

    def test_a_path_that_is_no_text(self, find, tmp_path):
        path = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff")
        try:
            os.mkdir(path)
        except OSError:
            pytest.skip("this file system takes only text")
        refused("invalid_input", find, path)


class TestIndex:
    def test_file_name_mode_and_no_leftovers(self, make, join, env):
        repo = make()
        join(repo)
        join(repo)
        rooms = f"{env['TALKING_STICK_DATA_DIR']}/rooms"
        assert os.listdir(rooms) == [hashlib.sha256(repo.encode()).hexdigest()[:16]]
        assert stat.S_IMODE(os.stat(rooms).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(f"{rooms}/{os.listdir(rooms)[0]}").st_mode) == 0o600

    def test_remove(self, make, join, find, env):
        repo = make()
        room_id = join(repo).room_id
        data = places.data_dir(env)
        places.index_remove(data, repo, "another room")
        assert find(repo).room == repo
        places.index_remove(data, repo, room_id)
        assert find(repo).room is None
        places.index_remove(data, repo)

    def test_room_of_a_deleted_bus_is_none(self, make, join, find):
        repo = make()
        os.unlink(f"{join(repo).bus_dir}/bus.db")
        assert find(repo).room is None

    @pytest.mark.parametrize("damage", [b"", b"1\nx", b"9\n" * 20, b"1\n..\nr\nP\nmain\n\nk\nr\n", b"\xff" * 99])
    def test_damaged_entry_is_no_room(self, damage, make, join, find, env):
        repo = make()
        join(repo)
        rooms = f"{env['TALKING_STICK_DATA_DIR']}/rooms"
        with open(f"{rooms}/{os.listdir(rooms)[0]}", "wb") as file:
            file.write(damage.replace(b"P", repo.encode()))
        assert find(repo).room is None
        assert join(repo).room == repo

    def test_buses(self, make, join, env, folder):
        data = places.data_dir(env)
        assert places.buses(data) == []
        made = {join(make(name)).bus_dir for name in ("a", "b")}
        folder("data/buses/half-made")
        assert places.buses(data) == sorted(made)

    def test_failed_write_is_a_refusal_and_leaves_the_old_entry(self, make, join, find, env, monkeypatch):
        repo = make()
        place = join(repo)

        def full(_source, _target):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        refused("store_full", places.index_add, places.data_dir(env), repo, place.bus_dir, "r2", place=place)
        assert find(repo) == place
        assert len(os.listdir(f"{env['TALKING_STICK_DATA_DIR']}/rooms")) == 1


class TestDataDir:
    def test_first_match(self):
        home = {"HOME": "/h"}
        assert places.data_dir({**home, "TALKING_STICK_DATA_DIR": "/d", "XDG_DATA_HOME": "/x"}) == "/d"
        assert places.data_dir({**home, "XDG_DATA_HOME": "/x"}) == "/x/talking-stick"
        assert places.data_dir({**home, "XDG_DATA_HOME": "relative"}) == "/h/.local/share/talking-stick"
        assert places.data_dir({**home, "TALKING_STICK_DATA_DIR": ""}) == "/h/.local/share/talking-stick"
        assert places.data_dir({**home, "TALKING_STICK_DATA_DIR": "~/d"}) == "/h/d"

    def test_relative_is_refused(self):
        refused("invalid_input", places.data_dir, {"HOME": "/h", "TALKING_STICK_DATA_DIR": "d"})

    def test_without_home_the_user_database_tells_it(self):
        import pwd

        home = pwd.getpwuid(os.getuid()).pw_dir
        assert places.data_dir({}) == f"{home}/.local/share/talking-stick"

    def test_made_private_whatever_the_umask(self, tmp_path):
        old = os.umask(0o277)
        try:
            places.ensure_private(str(tmp_path / "new"))
        finally:
            os.umask(old)
        assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700

    def test_looser_modes_are_tightened(self, tmp_path):
        (tmp_path / "d").mkdir(mode=0o755)
        places.ensure_private(str(tmp_path / "d"))
        places.ensure_private(str(tmp_path / "d"))
        assert stat.S_IMODE(os.stat(tmp_path / "d").st_mode) == 0o700

    def test_not_a_directory(self, tmp_path):
        (tmp_path / "f").touch()
        refused("store_unusable", places.ensure_private, str(tmp_path / "f"))
        refused("store_unusable", places.ensure_private, str(tmp_path / "f/below"))

    def test_not_writable(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
        refused("store_unusable", places.ensure_private, str(tmp_path))
        monkeypatch.setattr(datadir, "_read_only", lambda _path: True)
        refused("store_read_only", places.ensure_private, str(tmp_path))

    def test_network_file_system_is_refused_before_anything_is_made(self, tmp_path, monkeypatch):
        line = f"36 35 0:50 / {tmp_path} rw - nfs4 server:/x rw\n".encode()
        monkeypatch.setattr(datadir, "mount_table", lambda: line)
        error = refused("network_file_system", places.ensure_private, str(tmp_path / "data"))
        assert error.details["type"] == "nfs4"
        assert not (tmp_path / "data").exists()


def mounts(*pairs):
    """The kernel's text for some mount points and types."""
    return b"".join(b"36 35 98:0 / %s rw,noatime shared:1 - %s /dev/x rw\n" % pair for pair in pairs)


class TestNetworkType:
    @pytest.mark.parametrize(
        "kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "fuse.sshfs", "fuse.rclone"]
    )
    def test_remote(self, kind):
        table = mounts((b"/", b"ext4"), (b"/mnt/x", kind.encode()))
        assert datadir.network_type("/mnt/x/data", table) == kind
        assert datadir.network_type("/mnt/x", table) == kind
        assert datadir.network_type("/mnt/xy", table) is None

    @pytest.mark.parametrize("kind", [b"ext4", b"btrfs", b"overlay", b"tmpfs", b"fuse", b"fuseblk", b"fuse.overlayfs"])
    def test_local(self, kind):
        assert datadir.network_type("/data", mounts((b"/", kind))) is None

    def test_longest_mount_point_decides(self):
        table = mounts((b"/home/ann/local", b"ext4"), (b"/", b"ext4"), (b"/home", b"nfs"))
        assert datadir.network_type("/home/ann", table) == "nfs"
        assert datadir.network_type("/home/ann/local/data", table) is None

    def test_the_last_of_two_on_one_point_decides(self):
        assert datadir.network_type("/m/x", mounts((b"/m", b"autofs"), (b"/m", b"nfs"))) == "nfs"
        assert datadir.network_type("/m/x", mounts((b"/m", b"nfs"), (b"/m", b"tmpfs"))) is None

    def test_root_on_the_network(self):
        assert datadir.network_type("/home", mounts((b"/", b"nfs"))) == "nfs"
        assert datadir.network_type("/", mounts((b"/", b"nfs"))) == "nfs"

    def test_escaped_mount_point(self):
        table = mounts((rb"/a\040b\011c\012d\134e", b"nfs"))
        assert datadir.network_type("/a b\tc\nd\\e/data", table) == "nfs"

    @pytest.mark.parametrize("table", [b"", b"garbage\n", b"1 2 3 4 /\n", b" - nfs\n"])
    def test_unknown_is_not_refused(self, table):
        assert datadir.network_type("/x", table) is None

    def test_this_machine(self, tmp_path):
        assert datadir.network_type(str(tmp_path), datadir.mount_table()) is None
