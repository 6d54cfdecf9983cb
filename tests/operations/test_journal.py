"""What publish announces: this author's commits on this branch, memory files, each once."""

from __future__ import annotations

import json
import os

import pytest

from bus.operations import journal
from hooks.wire import Event
from tests.kit.desk import ANN
from tests.operations.test_stations import Yard

ME = ("t@example.org", "T")
OTHER = ("o@example.org", "O")


@pytest.fixture
def yard(tmp_path, monkeypatch):
    made = Yard(tmp_path, monkeypatch)
    made.git(made.main, "config", "user.email", ME[0])
    return made


def commit(yard, folder, message, by=ME):
    yard.write(folder, f"{message}.txt", message)
    yard.git(folder, "add", "-A")
    yard.git(folder, "-c", f"user.email={by[0]}", "-c", f"user.name={by[1]}", "commit", "-q", "-m", message)
    return head(yard, folder)


def head(yard, folder):
    return yard.git(folder, "rev-parse", "HEAD")


def told(yard, before, after):
    return [one.subject for one in journal.new_commits(yard.main, before, after, yard.env)]


class TestCommits:
    def test_mine_oldest_first(self, yard):
        before = head(yard, yard.main)
        commit(yard, yard.main, "one")
        assert told(yard, before, commit(yard, yard.main, "two")) == ["one", "two"]
        assert told(yard, before, before) == []

    def test_not_those_of_others(self, yard):
        before = head(yard, yard.main)
        commit(yard, yard.main, "theirs", OTHER)
        commit(yard, yard.main, "mine")
        assert told(yard, before, commit(yard, yard.main, "theirs too", OTHER)) == ["mine"]

    def test_not_what_a_merge_brought(self, yard):
        before = head(yard, yard.main)
        yard.git(yard.main, "checkout", "-q", "-b", "side")
        commit(yard, yard.main, "beside")
        yard.git(yard.main, "checkout", "-q", "main")
        commit(yard, yard.main, "mine")
        yard.git(yard.main, "merge", "-q", "--no-edit", "side")
        assert told(yard, before, head(yard, yard.main)) == ["mine"]

    @pytest.mark.parametrize("how", ["rebase", "reset", "amend"])
    def test_rewritten_history_is_a_new_baseline(self, yard, how):
        commit(yard, yard.main, "one")
        before = commit(yard, yard.main, "two")
        if how == "rebase":
            yard.git(yard.main, "rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
        elif how == "reset":
            yard.git(yard.main, "reset", "-q", "--hard", "HEAD~1")
        else:
            yard.git(yard.main, "commit", "-q", "--amend", "-m", "two again")
        assert told(yard, before, head(yard, yard.main)) == []

    def test_subjects_are_one_line_and_bounded(self, yard):
        before = head(yard, yard.main)
        yard.git(yard.main, "commit", "-q", "--allow-empty", "-m", "tab\there " + "x" * 500 + "\n\nbody")
        (subject,) = told(yard, before, head(yard, yard.main))
        assert subject.startswith("tab here xxx")
        assert len(subject) == journal.SUBJECT_CHARS

    def test_heads_that_are_not_there(self, yard):
        assert told(yard, "0" * 40, head(yard, yard.main)) == []
        assert told(yard, "--all", head(yard, yard.main)) == []


@pytest.mark.parametrize(
    ("root", "folder"),
    [
        ("/home/ann/my_repo", "-home-ann-my-repo"),
        ("/home/ann/my repo", "-home-ann-my-repo"),
        ("/home/ann/v1.2", "-home-ann-v1-2"),
        ("/home/ann/.config/x", "-home-ann--config-x"),
        ("/srv/Größe", "-srv-Gr--e"),
    ],
)
def test_the_folder_of_a_project(root, folder):
    assert journal.project_folder(root) == folder


class TestMemory:
    def files(self, yard, root, *names):
        folder = os.path.join(yard.top, ".claude", "projects", journal.project_folder(root), "memory")
        for name in names:
            yard.write(folder, name, "x")
        return journal.memory_files(yard.env, yard.top, root)

    def test_names_with_times(self, yard):
        found = self.files(yard, "/x/my_repo v1.2", "a.md", "MEMORY.md", "b.txt", "c_d e.md")
        assert sorted(found) == ["a.md", "c_d e.md"]
        assert all(isinstance(at, int) and at > 1_000_000_000_000 for at in found.values())

    def test_none(self, yard):
        assert journal.memory_files(yard.env, yard.top, "/nowhere") == {}

    def test_another_configuration_folder(self, yard):
        other = os.path.join(yard.top, "other")
        yard.write(os.path.join(other, "projects", "-x", "memory"), "a.md", "x")
        assert list(journal.memory_files({"CLAUDE_CONFIG_DIR": other}, yard.top, "/x")) == ["a.md"]


class TestPublish:
    """The whole hook, in this process."""

    @pytest.fixture
    def sessions(self, yard, monkeypatch):
        from bus.operations import join, session
        from hooks import publish
        from hooks.entry import Call

        yard.do(ANN, join.join)
        monkeypatch.chdir(yard.main)

        def run(key, kind="stop"):
            event = Event(kind=kind, name=kind, session_id=key, cwd=yard.main)
            env = yard.env | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": key}
            publish.run(Call("claude", event, env))

        real = session.locate

        def locate(env, cwd, harness, session_id):
            seen = real(env, cwd, None, None)
            if seen is None:
                agent = f"claude:{session_id}"
                from bus import identity, places

                seen = session.Seen(env, places.find(cwd, env), identity.caller(env, 1, agent=agent))
                seen.caller = seen.caller.replace(session_key=f"harness:{session_id}", source="CLAUDECODE")
            return seen

        monkeypatch.setattr(session, "locate", locate)
        return run

    def entries(self, yard):
        found = yard.do(ANN, journal.view, 3_600_000)["entries"]
        return [(one["type"], one.get("subject") or one.get("file")) for one in found]

    def test_the_first_run_is_the_baseline(self, yard, sessions):
        commit(yard, yard.main, "before")
        sessions("s1", "session_start")
        assert self.entries(yard) == []
        commit(yard, yard.main, "after")
        sessions("s1")
        sessions("s1")
        assert self.entries(yard) == [("commit", "after")]

    def test_two_sessions_of_one_worktree_say_it_once(self, yard, sessions):
        memory = os.path.join(yard.top, ".claude", "projects", journal.project_folder(yard.main), "memory")
        for key in ("s1", "s2"):
            sessions(key, "session_start")
        commit(yard, yard.main, "once")
        yard.write(memory, "fact.md", "x")
        for key in ("s1", "s2", "s1"):
            sessions(key)
        assert sorted(self.entries(yard)) == [("commit", "once"), ("memory", "fact.md")]

    def test_another_branch_is_a_new_baseline(self, yard, sessions):
        sessions("s1", "session_start")
        yard.git(yard.main, "checkout", "-q", "-b", "side")
        commit(yard, yard.main, "there already")
        sessions("s1")
        assert self.entries(yard) == []
        commit(yard, yard.main, "new there")
        sessions("s1")
        assert self.entries(yard) == [("commit", "new there")]

    def test_what_a_death_left_unsaid_is_said_next_time(self, yard, sessions, monkeypatch):
        from bus.operations import session

        sessions("s1", "session_start")
        commit(yard, yard.main, "twice at most")
        real = session.publish

        def dies(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(session, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            sessions("s1")
        monkeypatch.setattr(session, "publish", real)
        sessions("s1")
        assert self.entries(yard) == [("commit", "twice at most")]


def test_lines_say_what_happened():
    said = {
        "commit": ({"sha": "a" * 40, "branch": "main", "subject": "fix"}, "committed aaaaaaaaaa on main: fix"),
        "memory": ({"file": "x.md"}, "changed the memory file x.md"),
        "ticket": ({"ticket_id": "t1", "state": "done", "title": "work"}, "ticket t1 done: work"),
        "answer": ({"ask_id": "q1", "state": "answered", "title": "may I?"}, "answer q1 answered: may I?"),
        "release": ({"turn_id": 3, "handoff": {"status": "half"}}, "handed over turn 3: half"),
    }
    for kind, (body, line) in said.items():
        assert journal.line({"type": kind} | json.loads(json.dumps(body))) == line
