"""What git says about directories, against real repositories."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bus import gitdir
from bus.errors import BusError


@pytest.fixture
def env(tmp_path):
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
        return done.stdout

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


def both(path, env):
    """Git and our own reading of its files must agree."""
    asked = gitdir.tree(path, env)
    assert gitdir.look(path) == asked
    return asked


def without_git(env, tmp_path):
    """The environment of a program that finds no git on its PATH."""
    (tmp_path / "empty").mkdir(exist_ok=True)
    return {**env, "PATH": str(tmp_path / "empty")}


def no_process(monkeypatch):
    def fail(*_arguments, **_options):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", fail)


class TestTree:
    def test_main_worktree_and_its_subdirectory(self, make, env):
        repo = make()
        os.makedirs(f"{repo}/a/b")
        expected = gitdir.Tree(repo, f"{repo}/.git", f"{repo}/.git", False, False, None)
        assert both(repo, env) == expected
        assert both(f"{repo}/a/b", env) == expected

    def test_linked_worktree_shares_the_common_dir(self, make, run, env, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        tree = both(str(tmp_path / "wt"), env)
        assert tree == gitdir.Tree(str(tmp_path / "wt"), f"{repo}/.git/worktrees/wt", f"{repo}/.git", False, True, "wt")

    def test_submodule_has_its_own_common_dir(self, make, run, env):
        repo, other = make(), make("other")
        run(repo, "submodule", "add", "-q", other, "sub")
        tree = both(f"{repo}/sub", env)
        assert (tree.top, tree.common_dir) == (f"{repo}/sub", f"{repo}/.git/modules/sub")
        assert not tree.linked

    def test_linked_worktree_of_a_submodule(self, make, run, env, tmp_path):
        repo, other = make(), make("other")
        run(repo, "submodule", "add", "-q", other, "sub")
        run(f"{repo}/sub", "worktree", "add", "-q", str(tmp_path / "subwt"))
        tree = both(str(tmp_path / "subwt"), env)
        assert (tree.top, tree.common_dir) == (str(tmp_path / "subwt"), f"{repo}/.git/modules/sub")
        assert tree.linked

    def test_bare_repository(self, env, run, tmp_path):
        bare = tmp_path / "x.git"
        run(tmp_path, "init", "-q", "--bare", str(bare))
        assert both(str(bare), env) == gitdir.Tree(None, str(bare), str(bare), True, False, None)
        assert both(str(bare / "refs"), env).bare

    def test_linked_worktree_of_a_bare_repository(self, make, env, run, tmp_path):
        run(tmp_path, "clone", "-q", "--bare", make(), str(tmp_path / "x.git"))
        run(tmp_path / "x.git", "worktree", "add", "-q", str(tmp_path / "wt"))
        tree = both(str(tmp_path / "wt"), env)
        assert (tree.top, tree.common_dir, tree.name) == (str(tmp_path / "wt"), str(tmp_path / "x.git"), "wt")
        assert not tree.bare

    def test_folder_with_a_git_file_pointing_to_a_bare_repository(self, make, env, run, tmp_path):
        (tmp_path / "proj").mkdir()
        run(tmp_path, "clone", "-q", "--bare", make(), str(tmp_path / "proj/.bare"))
        (tmp_path / "proj/.git").write_text("gitdir: ./.bare\n")
        tree = both(str(tmp_path / "proj"), env)
        assert tree.bare
        assert tree.top is None

    def test_separate_git_dir(self, make, env, tmp_path):
        repo = make("repo", "--separate-git-dir", str(tmp_path / "elsewhere"))
        tree = both(repo, env)
        assert (tree.top, tree.common_dir) == (repo, str(tmp_path / "elsewhere"))
        assert not tree.linked

    def test_inside_the_git_dir_means_its_working_tree(self, make, run, env, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        assert both(f"{repo}/.git/refs", env).top == repo
        assert both(f"{repo}/.git/worktrees/wt", env).top == str(tmp_path / "wt")

    def test_core_worktree_is_gits_to_know(self, make, run, env, tmp_path):
        repo = make()
        (tmp_path / "away").mkdir()
        run(repo, "config", "core.worktree", str(tmp_path / "away"))
        assert not gitdir.ordinary(gitdir.look(repo))
        assert gitdir.tree(repo, env).common_dir == f"{repo}/.git"

    def test_branch_called_worktree_is_still_ordinary(self, make, run):
        repo = make()
        run(repo, "config", "branch.worktree-a.remote", "origin")
        assert gitdir.ordinary(gitdir.look(repo))

    def test_symlink_gives_the_real_path(self, make, env, tmp_path):
        repo = make()
        (tmp_path / "link").symlink_to(repo)
        assert both(str(tmp_path / "link"), env).top == repo

    @pytest.mark.parametrize("name", ["with space", "ünïcödé-名", "new\nline", "true\ntrue", "-dash", "a'b\"c"])
    def test_odd_names(self, name, make, run, env, tmp_path):
        repo = make(name)
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        assert gitdir.tree(repo, env).top == repo
        # Git itself gets lost here: it reads only one line of its pointer files.
        if "\n" not in name:
            assert both(str(tmp_path / "wt"), env).common_dir == f"{repo}/.git"

    def test_bare_with_newline(self, run, env, tmp_path):
        run(tmp_path, "init", "-q", "--bare", "x\ny.git")
        assert both(str(tmp_path / "x\ny.git"), env).common_dir == str(tmp_path / "x\ny.git")

    def test_no_git_starts_no_process(self, env, tmp_path, monkeypatch):
        no_process(monkeypatch)
        assert gitdir.tree(str(tmp_path), env) is None

    def test_missing_git_gives_the_same_answer(self, make, run, env, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        for path in (repo, str(tmp_path / "wt")):
            assert gitdir.tree(path, without_git(env, tmp_path)) == gitdir.tree(path, env)

    def test_git_too_old_for_path_format(self, make, env, tmp_path):
        repo = make()
        (tmp_path / "old").mkdir()
        (tmp_path / "old/git").write_text("#!/bin/sh\necho --path-format=absolute\necho false\necho .git\necho .git\n")
        (tmp_path / "old/git").chmod(0o755)
        assert gitdir.tree(repo, {**env, "PATH": f"{tmp_path}/old:{env['PATH']}"}).common_dir == f"{repo}/.git"

    def test_unreadable_configuration_is_no_other_bus(self, make, env):
        repo = make()
        with open(f"{repo}/.git/config", "a") as file:
            file.write("[broken\n")
        assert gitdir.tree(repo, env).common_dir == f"{repo}/.git"

    def test_empty_git_directory_is_no_repository(self, make, env):
        repo = make()
        os.makedirs(f"{repo}/sub/.git")
        assert both(f"{repo}/sub", env).top == repo

    def test_worktree_whose_repository_is_gone(self, make, run, env):
        repo = make()
        run(repo, "worktree", "add", "-q", f"{repo}/wt")
        os.rename(f"{repo}/.git/worktrees", f"{repo}/.git/lost")
        assert both(f"{repo}/wt", env) is None
        assert gitdir.linked_top(f"{repo}/wt")

    def test_dubious_ownership(self, make, env):
        if os.name == "nt" or os.geteuid() != 0:
            pytest.skip("only root can give a repository to somebody else")
        repo = make()
        for path in (repo, f"{repo}/.git"):
            os.chown(path, 12345, 12345)
        with pytest.raises(BusError) as caught:
            gitdir.tree(repo, env)
        assert caught.value.code == "dubious_ownership"
        assert caught.value.details["path"] == repo
        assert "safe.directory" in caught.value.hint


class TestEnvironment:
    def test_every_name_that_git_lists_is_removed(self, run, tmp_path):
        listed = run(tmp_path, "rev-parse", "--local-env-vars").decode().split()
        assert set(listed) <= gitdir.LOCAL_VARIABLES

    def test_variables_of_another_repository_change_nothing(self, make, env):
        repo, other = make(), make("other")
        os.mkdir(f"{repo}/sub")
        misleading = {
            **dict.fromkeys(gitdir.LOCAL_VARIABLES, "1"),
            "GIT_DIR": f"{other}/.git",
            "GIT_WORK_TREE": other,
            "GIT_COMMON_DIR": f"{other}/.git",
            "GIT_INDEX_FILE": f"{other}/.git/index",
            "GIT_CEILING_DIRECTORIES": repo,
            "GIT_DISCOVERY_ACROSS_FILESYSTEM": "0",
            "LC_ALL": "de_DE.UTF-8",
            "LANGUAGE": "de",
        }
        assert gitdir.tree(f"{repo}/sub", {**env, **misleading}) == gitdir.tree(f"{repo}/sub", env)
        assert gitdir.status(repo, {**env, **misleading}) == gitdir.status(repo, env)

    def test_users_own_settings_are_kept(self):
        assert gitdir.clean_env({"GIT_CONFIG_GLOBAL": "x"})["GIT_CONFIG_GLOBAL"] == "x"

    def test_import_loads_no_subprocess(self):
        code = "import bus.gitdir, bus.places; print('subprocess' in sys.modules, 'typing' in sys.modules)"
        root = os.path.dirname(os.path.dirname(gitdir.__file__))
        out = subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"],
            capture_output=True,
            env={},
        )
        assert out.stdout.split() == [b"False", b"False"], out.stderr.decode()


class TestLinkedTop:
    def test_only_the_top_itself(self, make, run, tmp_path):
        repo = make()
        run(repo, "worktree", "add", "-q", f"{repo}/nested/wt")
        os.makedirs(f"{repo}/nested/wt/a")
        assert gitdir.linked_top(f"{repo}/nested/wt")
        assert not any(map(gitdir.linked_top, (f"{repo}/nested/wt/a", f"{repo}/nested", repo)))

    def test_submodules_are_none_even_inside_one_or_named_like_one(self, make, run, tmp_path):
        repo, other = make(), make("other")
        run(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
        run(tmp_path / "wt", "submodule", "add", "-q", other, "sub")
        assert not gitdir.linked_top(str(tmp_path / "wt/sub"))
        assert gitdir.linked_top(str(tmp_path / "wt"))
        run(repo, "submodule", "add", "-q", "--name", "worktrees/x", other, "sub")
        assert not gitdir.linked_top(f"{repo}/sub")


class TestStatus:
    def test_clean_and_dirty(self, make, run, env):
        repo = make()
        head = run(repo, "rev-parse", "HEAD").decode().strip()
        assert gitdir.status(repo, env) == gitdir.Status("main", [], False, head)
        os.mkdir(f"{repo}/d")
        for name in ("a b", "d/ü", "n\nl"):
            with open(f"{repo}/{name}", "w"):
                pass
        found = gitdir.status(repo, env)
        assert found.changed == ["a b", "d/ü", "n\nl"]
        assert found.dirty

    def test_a_rename_shows_both_names(self, make, run, env):
        repo = make()
        with open(f"{repo}/old name", "w") as file:
            file.write("content\n" * 50)
        run(repo, "add", ".")
        run(repo, "commit", "-q", "-m", "second")
        run(repo, "mv", "old name", "new name")
        assert gitdir.status(repo, env).changed == ["new name", "old name"]

    def test_conflict(self, make, run, env):
        repo = make()
        for branch, text in (("one", "1"), ("two", "2")):
            run(repo, "checkout", "-q", "-b", branch, "main")
            with open(f"{repo}/f g", "w") as file:
                file.write(text)
            run(repo, "add", ".")
            run(repo, "commit", "-q", "-m", branch)
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(["git", "-C", repo, *who, "merge", "-q", "one"], env=env, capture_output=True)
        assert done.returncode == 1
        assert gitdir.status(repo, env).changed == ["f g"]

    def test_limit_cuts_the_list_but_not_the_verdict(self, make, env):
        repo = make()
        for number in range(5):
            with open(f"{repo}/{number}", "w"):
                pass
        assert gitdir.status(repo, env, limit=0) == gitdir.status(repo, env).replace(changed=[])
        assert gitdir.status(repo, env, limit=2).changed == ["0", "1"]

    def test_detached_and_unborn(self, make, run, env, tmp_path):
        repo = make()
        run(repo, "checkout", "-q", "--detach")
        assert gitdir.status(repo, env).branch is None
        run(tmp_path, "init", "-q", "-b", "trunk", "new")
        assert gitdir.status(str(tmp_path / "new"), env) == gitdir.Status("trunk", [], False, None)

    def test_names_that_are_no_text(self):
        found = gitdir.parse_status(b"# branch.head m\xff\0? a\xff\0", 10)
        found.changed[0].encode()
        assert (found.branch, found.changed) == ("m\\xff", ["a\\xff"])

    def test_takes_no_lock(self, make, env):
        repo = make()
        with open(f"{repo}/.git/index.lock", "w"):
            pass
        assert gitdir.status(repo, env) is not None

    def test_failure_is_none(self, env, tmp_path, make):
        assert gitdir.status(str(tmp_path), env) is None
        assert gitdir.status(make(), without_git(env, tmp_path)) is None

    def test_slow_git_is_given_up(self, make, env, tmp_path, monkeypatch):
        (tmp_path / "slow").mkdir()
        (tmp_path / "slow/git").write_text("#!/bin/sh\nexec sleep 30\n")
        (tmp_path / "slow/git").chmod(0o755)
        monkeypatch.setattr(gitdir, "_STATUS_SECONDS", 0.1)
        assert gitdir.status(make(), {**env, "PATH": f"{tmp_path}/slow:{env['PATH']}"}) is None


def test_spelling_on_disk_where_the_system_tells_it(monkeypatch, tmp_path):
    import fcntl

    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _fd, command, _buffer: b"/Users/Ann\0\0" if command == 50 else 0)
    assert gitdir.spelled_on_disk(str(tmp_path)) == "/Users/Ann"
    assert gitdir.spelled_on_disk(str(tmp_path / "missing")) == str(tmp_path / "missing")


def test_spelling_on_disk_elsewhere(tmp_path):
    assert gitdir.spelled_on_disk("/X") == "/X"
