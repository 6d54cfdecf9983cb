"""Who is calling: tables of environments and ancestors, and a few real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import identity, ids, markers, process
from bus.errors import BusError
from bus.process import Proc

PID = 900
ANN = {"USER": "ann", "PATH": "/bin"}
CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "S", "CLAUDE_PID": "50"}
CODEX = {"CODEX_THREAD_ID": "T"}


def proc(pid, name, *argv, exe="", session=0):
    return Proc(pid, 0, name, argv[0] if argv else name, exe, str(pid * 10), session, argv or (name,))


def chain(*names):
    """Ancestors by name, nearest first; their pids begin at 100."""
    return [proc(100 - index, name) for index, name in enumerate(names)]


SHELL = [proc(30, "bash", session=30), proc(20, "tmux: server"), proc(1, "systemd")]
UNDER_CLAUDE = [proc(60, "bash", session=60), proc(50, "claude", session=30), *SHELL]
DAEMON = proc(70, "codex", "/home/u/.codex/packages/codex", "app-server", "--listen", "x")


def call(env, procs=SHELL, **options):
    return identity.caller({**ANN, **env}, PID, procs=list(procs), **options)


def step(caller, rule):
    return dict(caller.steps)[rule]


MARKERS = [
    ({"CLAUDECODE": "1"}, "claude", "CLAUDECODE"),
    ({"CODEX_THREAD_ID": "t"}, "codex", "CODEX_THREAD_ID"),
    ({"CODEX_MANAGED_BY_NPM": "1"}, "codex", "CODEX_MANAGED_BY_NPM"),
    ({"ANTIGRAVITY_AGENT": "1"}, "antigravity", "ANTIGRAVITY_AGENT"),
    ({"ANTIGRAVITY_CONVERSATION_ID": "c"}, "antigravity", "ANTIGRAVITY_CONVERSATION_ID"),
    ({"ANTIGRAVITY_TRAJECTORY_ID": "t"}, "antigravity", "ANTIGRAVITY_TRAJECTORY_ID"),
    ({"GEMINI_CLI": "1"}, "gemini", "GEMINI_CLI"),
    ({"GROK_AGENT": "1"}, "grok", "GROK_AGENT"),
    ({"OPENCODE": "1"}, "opencode", "OPENCODE"),
    ({"CMUX_AGENT_LAUNCH_KIND": "claude-code"}, "claude", "CMUX_AGENT_LAUNCH_KIND"),
    ({"CMUX_AGENT_LAUNCH_KIND": "Aider"}, "aider", "CMUX_AGENT_LAUNCH_KIND"),
]


@pytest.mark.parametrize(("env", "harness", "source"), MARKERS)
def test_every_marker(env, harness, source):
    found = call(env)
    assert (found.harness, found.name, found.kind, found.source) == (harness, harness, "harness", source)
    assert found.agent_id.startswith(harness + ":")
    assert len(found.agent_id) == len(harness) + 9
    assert ids.check_agent_id(found.agent_id)
    assert not found.person
    assert identity.json_wanted(env, found)


@pytest.mark.parametrize("first", range(len(MARKERS)))
def test_without_processes_the_first_marker_wins(first):
    env = {}
    for more, *_ in reversed(MARKERS[first:]):
        env.update(more)
    assert call(env).harness == MARKERS[first][1]


@pytest.mark.parametrize(
    "env",
    [
        {"GROK_SESSION_ID": "g"},
        {"CLAUDECODE": "0"},
        {"CLAUDECODE": ""},
        {"CODEX_THREAD_ID": ""},
        {"CODEX_MANAGED_BY_NPM": "0"},
        {"GROK_AGENT": "0"},
        {"CMUX_AGENT_LAUNCH_KIND": "human"},
        {"CMUX_AGENT_LAUNCH_KIND": "all"},
        {"CMUX_AGENT_LAUNCH_KIND": "../x"},
        {"CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/y", "OPENCODE_CONFIG_DIR": "/z"},
        {"TT_HARNESS_EXPORT": "0"},
    ],
)
def test_what_is_no_marker_leaves_a_person(env):
    found = call(env)
    assert (found.agent_id, found.kind, found.harness, found.name) == ("human:ann", "person", None, "ann")
    assert (found.source, found.person, found.verified) == ("human", True, False)
    assert not identity.json_wanted(env, found)


@pytest.mark.parametrize("name", sorted(set(markers._TRACES) - {"CMUX_CLAUDE_PID"}))
def test_a_dropped_marker_makes_no_person(name):
    found = call({name: "x"})
    assert found.agent_id == "human:ann"
    assert not found.person
    assert step(found, "traces") == name
    assert identity.json_wanted({}, found)


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "gemini"])
def test_dropped_variables_do_not_hide_the_process(name):
    found = call({}, [proc(60, "bash"), proc(50, name), *SHELL])
    assert (found.agent_id, found.person, found.harness) == ("human:ann", False, name)
    assert process.anchor_pid(found.anchor) == 50
    assert not found.verified


NESTED = [
    (("bash", "codex", "bash", "claude", "zsh"), "codex", "CODEX_THREAD_ID", "harness:T"),
    (("bash", "claude", "bash", "codex", "zsh"), "claude", "CLAUDECODE", "harness:S"),
    (("claude",), "claude", "CLAUDECODE", "harness:S"),
    (("zsh", "sshd"), "claude", "CLAUDECODE", "harness:S"),
    ((), "claude", "CLAUDECODE", "harness:S"),
    (("sh", "gemini", "codex"), "gemini", "ancestry", "pid:99@990"),
]


@pytest.mark.parametrize(("names", "harness", "source", "key"), NESTED)
def test_of_two_markers_the_nearest_process_wins(names, harness, source, key):
    found = call({**CLAUDE, **CODEX}, chain(*names))
    assert (found.harness, found.source, found.session_key) == (harness, source, key)


def test_codex_inside_claude_without_any_variable_of_its_own():
    found = call(CLAUDE, [proc(80, "bash"), proc(75, "codex"), *UNDER_CLAUDE])
    assert (found.harness, found.source) == ("codex", "ancestry")
    assert found.session_key == "pid:75@750"
    assert not found.verified


def test_claude_names_its_session_and_process():
    found = call(CLAUDE, UNDER_CLAUDE)
    assert found.anchor == f"{process.host()}/50/500"
    assert found.verified
    assert found.session_key == "harness:S"
    assert not found.shared_daemon
    assert "S" not in found.agent_id.split(":")[1]


def test_the_named_process_may_have_any_name():
    found = call(CLAUDE, [proc(60, "bash"), proc(50, "MainThread", "node", "/opt/cli.js"), *SHELL])
    assert (process.anchor_pid(found.anchor), found.verified) == (50, True)


def test_cmux_names_the_process_where_claude_does_not():
    env = {"CLAUDECODE": "1", "CMUX_CLAUDE_PID": "50"}
    found = call(env, UNDER_CLAUDE)
    assert (process.anchor_pid(found.anchor), found.verified) == (50, True)
    other = call({**CLAUDE, "CMUX_CLAUDE_PID": "60"}, UNDER_CLAUDE)
    assert process.anchor_pid(other.anchor) == 50


def test_a_pid_named_by_nobody_is_only_inferred():
    found = call({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "S"}, UNDER_CLAUDE)
    assert (process.anchor_pid(found.anchor), found.verified) == (50, False)
    assert found.session_key.startswith("harness:")


@pytest.mark.parametrize("pid", ["0", "1", "-5", "x", "²", "", "99999999999999999999"])
def test_a_senseless_pid_is_ignored(pid):
    found = call({**CLAUDE, "CLAUDE_PID": pid}, UNDER_CLAUDE)
    assert (process.anchor_pid(found.anchor), found.verified) == (50, False)


def test_ancestors_are_read_only_up_to_the_harness(monkeypatch):
    def above(_):
        yield from UNDER_CLAUDE[:2]
        pytest.fail("read further than needed")

    monkeypatch.setattr(process, "ancestors", above)
    assert identity.caller({**ANN, **CLAUDE}, PID).verified


def test_a_starter_and_what_it_started_have_one_root():
    starter = proc(40, "node", "node", "/usr/bin/codex")
    env = {"CODEX_MANAGED_BY_NPM": "1"}
    first = call(env, [proc(61, "sh"), proc(51, "codex"), starter, *SHELL])
    second = call(env, [proc(62, "sh"), proc(52, "codex"), starter, *SHELL])
    assert first.session_key == second.session_key == "pid:40@400"
    assert first.agent_id == second.agent_id
    assert process.anchor_pid(first.anchor) == 40
    nested = call(env, [proc(61, "sh"), proc(53, "codex"), proc(52, "bash"), starter, *SHELL])
    assert process.anchor_pid(nested.anchor) == 53


def test_a_restarted_process_with_the_same_number_is_another_session():
    old, new = proc(50, "grok"), proc(50, "grok").replace(start="777")
    assert call({"GROK_AGENT": "1"}, [old]).agent_id != call({"GROK_AGENT": "1"}, [new]).agent_id


@pytest.mark.parametrize(
    ("env", "key"),
    [
        (CLAUDE, "harness:S"),
        (CODEX, "harness:T"),
        ({"ANTIGRAVITY_TRAJECTORY_ID": "t", "ANTIGRAVITY_CONVERSATION_ID": "c"}, "harness:c"),
        ({"ANTIGRAVITY_TRAJECTORY_ID": "t"}, "harness:t"),
        ({"GROK_AGENT": "1", "GROK_SESSION_ID": "g"}, "harness:g"),
        ({"OPENCODE": "1", "OPENCODE_RUN_ID": "r"}, "harness:r"),
        ({"OPENCODE": "1", "OPENCODE_RUN_ID": "r", "TT_HARNESS_SESSION_ID": "o"}, "harness:o"),
        ({"CLAUDECODE": "1", "TT_HARNESS_SESSION_ID": "o", "OPENCODE_RUN_ID": "r"}, "userhost"),
        ({"CLAUDECODE": "1", "GROK_SESSION_ID": "g"}, "userhost"),
        ({"GEMINI_CLI": "1", "ITERM_SESSION_ID": "i", "STY": "s"}, "term:ITERM_SESSION_ID=i"),
        ({"GEMINI_CLI": "1", "CMUX_TAB_ID": "c", "KITTY_WINDOW_ID": "k"}, "term:CMUX_TAB_ID=c"),
        ({"GEMINI_CLI": "1", "KITTY_WINDOW_ID": "k", "WEZTERM_PANE": "w"}, "term:KITTY_WINDOW_ID=k"),
        ({"GEMINI_CLI": "1", "WEZTERM_PANE": "w", "TMUX_PANE": "%1"}, "term:WEZTERM_PANE=w"),
        ({"GEMINI_CLI": "1", "TMUX_PANE": "%1", "TMUX": "/s,5,0", "STY": "s"}, "term:TMUX_PANE=%1@/s,5,0"),
        ({"GEMINI_CLI": "1", "STY": "s"}, "term:STY=s"),
        ({"GEMINI_CLI": "1"}, "userhost"),
    ],
)
def test_session_keys(env, key):
    found = call(env)
    assert found.session_key == key


def test_process_comes_before_terminal():
    found = call({"GEMINI_CLI": "1", "STY": "s"}, [proc(50, "gemini"), *SHELL])
    assert found.session_key == "pid:50@500"


@given(st.text(min_size=1, max_size=400))
def test_any_session_id_gives_a_good_agent_id_and_a_short_key(session):
    found = call({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session})
    assert ids.check_agent_id(found.agent_id) == found.agent_id
    assert len(found.session_key) < 220
    assert found.session_key.isprintable()
    assert found == call({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session})


def test_two_verified_sessions_in_one_process_stay_apart():
    one, other = (call({**CLAUDE, "CLAUDE_CODE_SESSION_ID": key}, UNDER_CLAUDE) for key in "AB")
    assert one.anchor == other.anchor
    assert one.agent_id != other.agent_id
    assert one.session_key != other.session_key


def test_one_session_keeps_its_id(monkeypatch):
    before = call(CLAUDE, UNDER_CLAUDE)
    assert call({**CLAUDE, "USER": "somebody", "TMUX_PANE": "%4"}, UNDER_CLAUDE[1:]).agent_id == before.agent_id
    monkeypatch.setattr(process, "host", lambda: process.machine() + ".rebooted.1")
    assert call(CLAUDE, UNDER_CLAUDE).agent_id == before.agent_id
    assert call({"GEMINI_CLI": "1", "STY": "s"}).agent_id != before.agent_id


def test_the_same_session_id_of_two_harnesses_gives_two_agents():
    claude, codex = call({**CLAUDE, "CLAUDE_CODE_SESSION_ID": "X"}), call({"CODEX_THREAD_ID": "X"})
    assert claude.agent_id.split(":")[1] != codex.agent_id.split(":")[1]


# Chosen names


def test_flag_gives_a_name_and_keeps_a_persons_rights():
    found = call({}, agent="claude:bob")
    assert (found.agent_id, found.kind, found.name, found.source) == (
        "claude:bob",
        "harness",
        "claude",
        "flag",
    )
    assert found.person
    assert found.session_key == "name:claude:bob"
    assert process.anchor_pid(found.anchor) == 30


@pytest.mark.parametrize("env", [CLAUDE, {}, {"CLAUDE_PID": "50"}])
@pytest.mark.parametrize("name", ["human:ann", "human:root", "human:ann:chat:9f", "claude:x"])
def test_flag_never_makes_a_person(name, env):
    found = call(env, UNDER_CLAUDE, agent=name)
    assert found.agent_id == name
    assert not found.person
    assert found.harness == "claude"
    assert process.anchor_pid(found.anchor) == 50


def test_variable_gives_a_name_but_no_right():
    for name in ("human:ann", "claude:mine"):
        found = call({**CLAUDE, "TT_HARNESS_AGENT_ID": name}, UNDER_CLAUDE)
        assert (found.agent_id, found.source, found.person) == (name, "TT_HARNESS_AGENT_ID", False)
    assert call({**CLAUDE, "TT_HARNESS_AGENT_ID": "claude:mine"}, UNDER_CLAUDE).session_key == "harness:S"
    assert call({"TT_HARNESS_AGENT_ID": "x:y"}).person
    assert call({"TT_HARNESS_AGENT_ID": ""}).source == "human"


def test_flag_comes_before_the_variable():
    assert call({"TT_HARNESS_AGENT_ID": "x:y"}, agent="x:z").agent_id == "x:z"


def test_kinds_of_chosen_names():
    kinds = {name: call({}, agent=name) for name in ("human:ann", "human:ann:chat:9f", "human:ann:x", "grok:1")}
    assert [one.kind for one in kinds.values()] == ["person", "console", "person", "harness"]
    assert [one.name for one in kinds.values()] == ["ann", "ann", "ann", "grok"]


@pytest.mark.parametrize("name", ["", "ann", "human:", "../x:y", "human:a b", "human:" + "x" * 100])
def test_bad_names_are_refused(name):
    with pytest.raises(BusError) as caught:
        call({}, agent=name)
    assert caught.value.code == "invalid_input"
    if name:
        with pytest.raises(BusError, match="TT_HARNESS_AGENT_ID"):
            call({"TT_HARNESS_AGENT_ID": name})


# Ancestry alone


@pytest.mark.parametrize(("name", "harness"), [("grok", "grok"), ("agy", "antigravity")])
def test_ancestry_alone_shows_grok_and_antigravity(name, harness):
    found = call({}, [proc(60, "sh"), proc(50, name), *SHELL])
    assert (found.harness, found.source, found.session_key) == (harness, "ancestry", "pid:50@500")
    assert not found.person


def test_grok_session_counts_once_the_process_is_grok():
    assert call({"GROK_SESSION_ID": "g"}, [proc(50, "grok"), *SHELL]).session_key == "harness:g"


@pytest.mark.parametrize("value", ["1", "true", "TRUE"])
def test_generic_ancestry(value):
    aider = proc(45, "aider", "/opt/bin/aider")
    found = call({"TT_HARNESS_EXPORT": value}, [proc(60, "bash"), proc(55, "make"), aider, *SHELL])
    assert (found.harness, found.source, found.session_key) == ("aider", "TT_HARNESS_EXPORT", "pid:45@450")
    assert (process.anchor_pid(found.anchor), found.verified, found.person) == (45, False, False)
    assert call({"TT_HARNESS_EXPORT": value}, UNDER_CLAUDE).harness == "claude"
    script = proc(45, "node", "node", "--no-warnings", "/opt/My_Agent.mjs")
    assert call({"TT_HARNESS_EXPORT": value}, [proc(60, "bash"), script]).harness == "my-agent"


def test_generic_ancestry_needs_a_program_and_the_switch():
    quiet = [proc(60, "bash", "-bash"), proc(55, "sshd", "sshd: ann@pts/0"), proc(1, "systemd")]
    found = call({"TT_HARNESS_EXPORT": "1"}, quiet)
    assert (found.agent_id, found.person) == ("human:ann", True)
    assert identity.json_wanted({"TT_HARNESS_EXPORT": "1"}, found)
    assert call({}, [proc(60, "bash"), proc(45, "aider")]).person


@pytest.mark.parametrize(
    ("seen", "harness"),
    [
        (proc(2, "claude"), "claude"),
        (proc(2, "2.1.332", "/home/u/.local/share/claude/versions/2.1.332"), "claude"),
        (proc(2, "x", "x", exe="/opt/codex"), "codex"),
        (proc(2, "codex-x86_64-un", "/v/codex-x86_64-unknown-linux-musl"), "codex"),
        (proc(2, "x", "C:\\bin\\grok.exe"), "grok"),
        (proc(2, "node", "node", "/usr/bin/gemini", "-p", "x"), "gemini"),
        (proc(2, "node", "/usr/bin/node", "--max-old-space-size=8192", "/usr/bin/codex.js"), "codex"),
        (proc(2, "MainThread", "node", "/l/node_modules/@anthropic-ai/claude-code/cli.js"), "claude"),
        (proc(2, "bun", "bun", "run", "/x/opencode"), "opencode"),
        (proc(2, "agy"), "antigravity"),
        (proc(2, "antigravity"), "antigravity"),
        (proc(2, "vim", "vim", "claude"), None),
        (proc(2, "bash", "bash", "/x/codex"), None),
        (proc(2, "node", "node", "server.js", "claude"), None),
        (proc(2, "node", "node"), None),
        (proc(2, "claude-desktop"), None),
        (proc(2, "", ""), None),
    ],
)
def test_which_processes_are_harnesses(seen, harness):
    assert markers.harness_of(seen) == harness


# Codex's shared daemon


def test_shared_daemon_is_not_trusted():
    env = {
        **CLAUDE,
        **CODEX,
        "TT_HARNESS_AGENT_ID": "claude:first",
        "TT_STATION": "station-1",
        "TT_TEST_LEASE": "5",
        "TMUX_PANE": "%1",
        "CMUX_AGENT_LAUNCH_KIND": "grok",
    }
    found = call(env, [proc(80, "bash"), DAEMON, proc(1, "systemd")])
    assert (found.harness, found.source, found.session_key) == ("codex", "CODEX_THREAD_ID", "harness:T")
    assert (found.shared_daemon, found.verified, found.person) == (True, False, False)
    assert process.anchor_pid(found.anchor) == DAEMON.pid
    kept = identity.trusted(env, found)
    assert not {"TT_STATION", "TMUX_PANE", "TT_HARNESS_AGENT_ID", "CMUX_AGENT_LAUNCH_KIND"} & set(kept)
    assert kept["TT_TEST_LEASE"] == "5"
    assert "ignored" in step(found, "TT_HARNESS_AGENT_ID")


def test_threads_of_the_shared_daemon_stay_apart_and_a_name_may_be_given():
    one, other = (call({"CODEX_THREAD_ID": key}, [DAEMON]) for key in "AB")
    assert one.agent_id != other.agent_id
    assert call(CODEX, [DAEMON], agent="codex:x").agent_id == "codex:x"


def test_a_daemon_that_its_starter_still_holds_is_recognised():
    assert call(CODEX, [proc(80, "sh"), DAEMON, proc(50, "codex")]).shared_daemon


def test_an_embedded_codex_is_trusted():
    env = {**CODEX, "TT_STATION": "station-1"}
    found = call(env, [proc(80, "sh"), proc(70, "codex", "codex", "exec", "tell app-server")])
    assert not found.shared_daemon
    assert identity.trusted(env, found) is env


# Hooks


def test_hooks_say_harness_and_session():
    found = call({}, [proc(80, "sh"), proc(70, "codex"), *SHELL], harness="codex", session_id="T")
    shell = call(CODEX, [proc(90, "bash"), proc(70, "codex"), *SHELL])
    assert found.agent_id == shell.agent_id
    assert (found.source, found.verified, process.anchor_pid(found.anchor)) == ("--harness", True, 70)
    assert not found.person


def test_a_hook_of_the_shared_daemon_has_no_verified_anchor():
    found = call({}, [proc(80, "sh"), DAEMON], harness="codex", session_id="T")
    assert (found.shared_daemon, found.verified) == (True, False)


def test_a_hook_that_is_told_looks_past_other_harnesses():
    found = call(CLAUDE, [proc(80, "sh"), proc(75, "codex"), *UNDER_CLAUDE], harness="claude", session_id="S")
    assert (found.harness, process.anchor_pid(found.anchor)) == ("claude", 50)


def test_a_hook_of_an_unknown_program_is_anchored_past_its_shell():
    found = call({}, [proc(80, "sh"), proc(70, "mystery"), *SHELL], harness="codex", session_id="T")
    assert (process.anchor_pid(found.anchor), found.verified) == (70, False)


# People


@pytest.mark.parametrize(
    ("procs", "pid"),
    [
        ([proc(60, "make", session=30), *SHELL], 30),
        ([proc(60, "do.sh", session=30), proc(55, "python"), *SHELL], 30),
        ([proc(60, "make", session=7), proc(55, "-zsh"), proc(20, "login")], 55),
        ([proc(60, "cron"), proc(1, "init")], 60),
    ],
)
def test_a_person_is_anchored_on_the_shell_of_the_terminal(procs, pid):
    found = call({}, procs)
    assert (process.anchor_pid(found.anchor), found.verified, found.person) == (pid, False, True)


def test_a_person_without_any_ancestor_has_no_anchor():
    assert call({}, []).anchor is None


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"USER": "ann"}, "ann"),
        ({"LOGNAME": "bob"}, "bob"),
        ({"USERNAME": "eve"}, "eve"),
        ({"USER": "a.b-c@d+e"}, "a.b-c@d+e"),
    ],
)
def test_user_names(env, name):
    assert identity.user_name(env) == name


@pytest.mark.parametrize("name", ["jörg", "DOM\\ann", "a b", "x" * 100, "a:b", "\udcff"])
def test_odd_user_names_fit_the_grammar_and_stay_apart(name):
    made = identity.user_name({"USER": name})
    assert ids.check_agent_id("human:" + made)
    assert ":" not in made
    assert made != identity.user_name({"USER": name + "2"})


def test_an_environment_without_a_user_has_one_all_the_same():
    assert ids.check_agent_id("human:" + identity.user_name({}))


# Grok's session log


def test_grok_session_is_recorded_for_exactly_one_process(tmp_path):
    grok = [proc(60, "sh"), proc(50, "grok"), *SHELL]
    anchor = call({}, grok).anchor
    lines = [
        json.dumps({"anchor": anchor, "session_id": "old"}),
        json.dumps({"anchor": anchor, "session_id": "new"}),
        json.dumps({"anchor": anchor + "9", "session_id": "other", "workspace": "/w"}),
        '{"anchor": "' + anchor + '", torn',
        json.dumps({"anchor": anchor, "session_id": 7}),
        json.dumps([anchor]),
    ]
    assert call({}, grok, data=str(tmp_path)).session_key == "pid:50@500"
    (tmp_path / "grok-sessions.jsonl").write_text("\n".join(lines))
    assert call({}, grok, data=str(tmp_path)).session_key == "harness:new"
    restarted = [proc(50, "grok").replace(start="501")]
    assert call({}, restarted, data=str(tmp_path)).session_key == "pid:50@501"
    assert call({}, UNDER_CLAUDE, data=str(tmp_path)).session_key == "userhost"


# Explain


def test_steps_show_every_rule_and_no_raw_session():
    found = call({**CLAUDE, "CLAUDE_CODE_SESSION_ID": "raw-secret"}, UNDER_CLAUDE)
    rules = [rule for rule, _ in found.steps]
    assert rules[:4] == ["--agent", "TT_HARNESS_AGENT_ID", "--harness", "markers"]
    assert {"ancestry", "harness", "session", "anchor", "rights", "result"} <= set(rules)
    assert "raw-secret" not in repr(found.steps)


# Real processes


@pytest.fixture
def real(tmp_path):
    """Run the look-up below a real process of that name."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = (
        "import os, sys\nsys.path.insert(0, sys.argv[1])\nfrom bus import identity\n"
        "found = identity.caller(os.environ, os.getpid())\n"
        "print(found.agent_id, found.harness, found.anchor, found.verified, found.person, sep='|')"
    )
    middle = "import subprocess, sys; print(__import__('os').getpid(), flush=True); subprocess.run(sys.argv[1:])"

    def run(name, env):
        program = tmp_path / name
        program.symlink_to(sys.executable)
        inner = [sys.executable, "-S", "-c", code, root]
        command = [str(program), "-I", "-S", "-c", middle, *inner]
        done = subprocess.run(command, env={**ANN, **env}, capture_output=True, text=True, timeout=20, check=True)
        pid, answer = done.stdout.split()
        return int(pid), answer.split("|")

    return run


def test_real_grok_process(real):
    pid, (agent_id, harness, anchor, verified, person) = real("grok", {})
    assert agent_id.startswith("grok:")
    assert (harness, int(anchor.split("/")[1]), verified, person) == ("grok", pid, "False", "False")


def test_real_codex_in_inherited_claude(real):
    pid, (_, harness, anchor, _, person) = real("codex", {**CLAUDE, "CLAUDE_PID": str(os.getpid())})
    assert (harness, int(anchor.split("/")[1]), person) == ("codex", pid, "False")


def test_real_named_process_that_is_no_ancestor():
    with subprocess.Popen(["sleep", "100"]) as older:
        look = "identity.caller(os.environ, os.getpid())"
        code = f"from bus import identity; import os; f = {look}; print(f.anchor, f.verified)"
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        env = {**ANN, **CLAUDE, "CLAUDE_PID": str(older.pid), "PYTHONPATH": root}
        command = [sys.executable, "-S", "-c", code]
        anchor, verified = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20).stdout.split()
        assert (anchor, verified) == (process.anchor(older.pid), "True")
        older.kill()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20)
    assert done.stdout.split() == ["None", "False"]


def test_a_named_process_younger_than_we_are_is_a_stranger():
    with subprocess.Popen(["sleep", "100"]) as younger:
        env = {**ANN, **CLAUDE, "CLAUDE_PID": str(younger.pid)}
        found = identity.caller(env, os.getpid(), procs=[])
        younger.kill()
    assert (found.anchor, found.verified) == (None, False)
