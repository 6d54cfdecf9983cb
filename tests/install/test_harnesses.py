"""What is written for each harness, that every line of it is harmless without us, and that absent ones stay absent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from bus.errors import BusError
from tests.install.conftest import states
from tt import table_setup
from tt.install import claude_plugin, opencode, registrations, skill, specs
from tt.install.hooksfile import MARKER

ALL = specs.NAMES


def commands(value) -> list[str]:
    """Every command in a hooks file."""
    if isinstance(value, dict):
        own = [value["command"]] if isinstance(value.get("command"), str) else []
        return own + [one for inner in value.values() for one in commands(inner)]
    return [one for inner in value for one in commands(inner)] if isinstance(value, list) else []


def lines() -> list[str]:
    """Every shell line that we install anywhere."""
    found = []
    for guard in (True, False):
        for in_settings in (True, False):
            found += commands(registrations.as_file(registrations.claude(guard=guard, in_settings=in_settings)))
    found += commands(registrations.as_file(registrations.codex())) + commands(registrations.antigravity())
    for groups in registrations.grok().values():
        found += commands(registrations.as_file(groups))
    return sorted(set(found))


def hook(group) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """(name, harness, timeout, how) of the handlers of one group."""
    found = []
    for handler in group["hooks"]:
        words = handler["command"].removesuffix(MARKER).split(registrations.PROGRAM)[-1].split()
        harness = words[words.index("--harness") + 1] if "--harness" in words else ""
        how = tuple(sorted(key for key in handler if key not in ("type", "command", "timeout")))
        found.append((words[0], harness, handler["timeout"], how))
    return found


def test_the_table_of_commands_names_the_same_harnesses():
    assert table_setup._HARNESSES == ALL
    assert set(table_setup._ALIASES) == set(specs.ALIASES)


def test_claudes_hooks():
    events = registrations.as_file(registrations.claude(guard=True, in_settings=False))["hooks"]
    shown = {event: hook(group) for event, (group,) in events.items()}
    background, rewake = ("publish", "claude", 20, ("async",)), ("rewake", "claude", 86400, ("asyncRewake",))
    assert shown == {
        "SessionStart": [("session", "claude", 20, ()), background, rewake],
        "UserPromptSubmit": [("board", "claude", 20, ())],
        "Stop": [("stop-guard", "claude", 20, ()), background, rewake],
        "StopFailure": [background],
        "Notification": [background],
        "SubagentStop": [("subagent-stop", "claude", 20, ("async",))],
        "SessionEnd": [("session", "claude", 1, ()), ("publish", "claude", 1, ())],
    }
    assert events["Notification"][0]["matcher"] == "idle_prompt"


def test_codex_has_nothing_that_it_would_not_run():
    events = registrations.as_file(registrations.codex())["hooks"]
    shown = {event: hook(group) for event, (group,) in events.items()}
    assert shown == {
        "SessionStart": [("session", "codex", 20, ())],
        "UserPromptSubmit": [("board", "codex", 20, ())],
        "Stop": [("stop-guard", "codex", 20, ()), ("publish", "codex", 20, ())],
        "SessionEnd": [("session", "codex", 3, ())],
    }


def test_groks_files_and_the_line_that_it_shares_with_claudes_settings(box):
    box.program("grok")
    box.install("grok")
    assert sorted(os.listdir(box.path(".grok/hooks"))) == sorted(registrations.grok())
    session = box.json(".grok/hooks/talking-stick-session.json")["hooks"]
    assert set(session) == {"SessionStart", "UserPromptSubmit", "SessionEnd"}
    assert set(box.json(".grok/hooks/talking-stick-inbox.json")["hooks"]) == {
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
    }
    (stop,) = commands(box.json(".grok/hooks/talking-stick-stop.json"))
    assert "--harness" not in stop
    settings = registrations.as_file(registrations.claude(guard=True, in_settings=True))["hooks"]
    assert stop in commands(settings["Stop"])
    plugin = registrations.as_file(registrations.claude(guard=True, in_settings=False))["hooks"]
    assert stop not in commands(plugin)


def test_antigravity_tells_the_event_and_never_uses_the_one_that_fails_closed(box):
    box.program("agy")
    box.write(".gemini/config/hooks.json", '{\n  "mine": {}\n}\n')
    box.install("antigravity")
    found = box.json(".gemini/config/hooks.json")
    assert found["mine"] == {}
    assert set(found["talking-stick"]) == {"SessionStart", "Stop"}
    for event, handlers in found["talking-stick"].items():
        assert all(one["command"].removesuffix(MARKER).endswith(" " + event) for one in handlers)


# --- without us ---


def run(line: str, **env: str):
    return subprocess.run(
        ["/bin/sh", "-c", line],
        env={"PATH": os.defpath, "HOME": os.devnull, **env},
        input="{}",
        capture_output=True,
        text=True,
        timeout=20,
    )


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.split("run.py")[-1].strip())
def test_a_line_is_silent_when_the_package_is_gone(line):
    done = run(line.replace(registrations.PROGRAM, "/nowhere/hooks/run.py"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert line.endswith(MARKER)
    assert len(line) < 120 + len(sys.executable) + 2 * len(registrations.PROGRAM)


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.split("run.py")[-1].strip())
def test_a_line_is_silent_when_there_is_nothing_to_do(line, tmp_path):
    for more in ({}, {"GROK_HOOK_EVENT": "stop"}):
        done = run(line, TALKING_STICK_DATA_DIR=str(tmp_path / "none"), **more)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.listdir(tmp_path) == []


def test_paths_with_blanks_and_quotes_are_one_word(monkeypatch, tmp_path):
    program = tmp_path / "it's a $(place)" / "hooks" / "run.py"
    program.parent.mkdir(parents=True)
    program.write_text("import sys; print(sys.argv[1:])")
    monkeypatch.setattr(registrations, "PROGRAM", str(program))
    done = run(registrations.line("board", "claude"))
    assert (done.returncode, done.stdout.strip()) == (0, "['board', '--harness', 'claude']")


def test_the_monitor_blocks_when_the_package_is_gone():
    """One that ended would be told to the model at each start of a session."""
    line = registrations.monitor_line()
    gone = line.replace(os.path.join(registrations.PACKAGES, "tt", "__main__.py"), "/nowhere/__main__.py")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["/bin/sh", "-c", gone], env={"PATH": os.defpath}, timeout=1)


# --- installing ---


def test_absent_harnesses_are_skipped_and_nothing_is_made_for_them(box):
    result = box.install(*ALL)
    assert states(result) == ["skipped"] * len(ALL)
    assert box.tree() == {}
    assert box.uninstall(*ALL, shared=True)["failed"] == 0
    assert box.tree() == {}


def test_a_configuration_directory_alone_makes_a_harness_present(box):
    os.makedirs(box.path(".codex"))
    result = box.install(*ALL)
    assert {line["harness"] for line in result["results"] if line["state"] == "added"} == {"codex"}
    assert sorted(os.listdir(box.home)) == [".agents", ".codex"]


def test_roots_from_the_environment_are_respected(box):
    box.everything()
    box.env |= {"CODEX_HOME": box.path("c"), "GROK_HOME": box.path("g"), "XDG_CONFIG_HOME": box.path("x")}
    box.install("codex", "grok", "opencode")
    assert os.path.exists(box.path("c/hooks.json"))
    assert os.path.exists(box.path("g/hooks/talking-stick-stop.json"))
    assert os.path.exists(box.path("x/opencode/plugins/talking-stick.js"))
    assert sorted(os.listdir(box.home)) == [".agents", "c", "g", "x"]


def test_everything_twice_and_back(box):
    box.everything()
    box.claude()
    box.write(".claude/settings.json", '{\n   "model": "opus",\n   "env": {"A": "b"}\n}')
    before = box.tree()
    assert box.install(*ALL)["failed"] == 0
    box.calls()
    once = box.tree()
    again = box.install(*ALL)
    assert set(states(again)) == {"already_present", "skipped"}
    assert box.tree() == once
    assert box.calls() == []
    assert box.uninstall(*ALL, shared=True)["failed"] == 0
    box.calls()
    after = box.tree()
    mine = {path: what for path, what in after.items() if os.sep + "plugins" not in path}
    assert mine == before
    assert set(states(box.uninstall(*ALL, shared=True))) <= {"already_absent"}


def test_print_changes_nothing_and_shows_every_file_and_command(box):
    box.everything()
    box.claude()
    box.write(".claude/settings.json", '{"model": "opus"}')
    os.makedirs(box.path(".grok/skills"))
    os.symlink(skill.SOURCE, box.path(".grok/skills/talking-stick"))
    before = box.tree()
    planned = box.install(*ALL, dry=True)
    assert planned["status"] == "planned"
    assert box.tree() == before
    assert not os.path.exists(box.data)
    assert box.calls() == []
    shown = json.dumps(planned)
    assert "claude plugin install talking-stick@talking-stick" in shown
    done = box.install(*ALL)
    touched = {line["path"] for line in done["results"] if line["state"] in ("added", "removed")}
    told = {line["path"] for line in planned["results"] if line["state"] in ("added", "removed")}
    assert touched - {claude_plugin.folder(box.data)} <= told
    for line in planned["results"]:
        if line["state"] == "added" and line["what"] in ("hooks", "plugin", "plugin files") and "commands" not in line:
            assert line.get("text") or line.get("adds"), line
    full = box.tree()
    box.calls()
    for names, shared in ((ALL, True), (("codex",), False)):
        planned = box.uninstall(*names, shared=shared, dry=True)
        assert "removed" in states(planned)
        assert box.tree() == full
    assert box.calls() == []


def test_codex_names_the_sandbox_entry_and_writes_it_only_when_asked(box):
    box.program("codex")
    box.write(".codex/config.toml", "model = 'x'\n")
    (line,) = [line for line in box.install("codex")["results"] if line["what"] == "sandbox"]
    assert line["state"] == "skipped"
    assert box.data in line["detail"]
    assert "--allow-data-dir" in line["detail"]
    assert box.read(".codex/config.toml") == "model = 'x'\n"
    assert states(box.install("codex", allow_data_dir=True), "sandbox") == ["added"]
    assert box.data in box.read(".codex/config.toml")
    assert states(box.install("codex"), "sandbox") == ["already_present"]
    (line,) = [line for line in box.install("codex")["results"] if line["what"] == "hooks"]
    assert "/hooks" in line["detail"]
    assert "trust" not in box.read(".codex/hooks.json") + box.read(".codex/config.toml")
    box.uninstall("codex")
    assert box.read(".codex/config.toml") == "model = 'x'\n"


def test_gemini_gets_a_notice_and_is_cleaned_up(box):
    box.program("gemini")
    ours = {"hooks": {"BeforeAgent": [{"hooks": [{"type": "command", "command": "old" + MARKER}]}]}, "a": 1}
    box.write(".gemini/settings.json", json.dumps(ours, indent=2))
    os.makedirs(box.path(".gemini/skills"))
    os.symlink(skill.SOURCE, box.path(".gemini/skills/talking-stick"))
    result = box.install("gemini")
    assert states(result) == ["removed", "removed", "skipped"]
    assert "deprecated" in result["results"][-1]["detail"]
    assert box.json(".gemini/settings.json") == {"a": 1}
    assert os.listdir(box.path(".gemini/skills")) == []


def test_one_that_fails_does_not_stop_the_others(box):
    box.everything()
    box.write(".codex/hooks.json", "{")
    result = box.install("codex", "grok")
    assert result["failed"] == 1
    assert os.path.exists(box.path(".grok/hooks/talking-stick-stop.json"))


def test_a_read_only_place_is_a_line_and_no_traceback(box):
    box.program("grok")
    box.write(".grok/hooks", "a file where a folder should be")
    with pytest.raises(BusError, match="Not a directory"):
        box.install("grok")
    assert box.read(".grok/hooks") == "a file where a folder should be"


# --- Claude Code, with a client that keeps its records like the real one ---

ODD = '{\n   "model": "opus",\n   "env": {"A": "b"},\n "z": 1.50}'


def route(box) -> set[str]:
    """Where our hooks are registered."""
    try:
        settings = box.json(".claude/settings.json")
    except FileNotFoundError:
        settings = {}
    found = {"plugin"} if settings.get("enabledPlugins", {}).get(claude_plugin.ID) else set()
    return found | ({"settings"} if MARKER in json.dumps(settings) else set())


def test_the_plugin_is_installed_by_the_client_and_the_settings_keep_their_style(box):
    box.claude()
    box.write(".claude/settings.json", ODD, 0o600)
    box.install("claude")
    folder = claude_plugin.folder(box.data)
    assert box.calls() == [f"plugin marketplace add {folder}", f"plugin install {claude_plugin.ID}"]
    assert route(box) == {"plugin"}
    assert box.read(".claude/settings.json").startswith(ODD[:-1])
    assert not os.path.exists(box.path(".claude/skills"))
    box.uninstall("claude")
    assert box.calls() == [f"plugin uninstall {claude_plugin.ID}", "plugin marketplace remove talking-stick"]
    assert box.read(".claude/settings.json") == ODD
    assert not os.path.exists(folder)


def test_a_settings_file_that_only_we_needed_goes_again(box):
    box.claude()
    box.install("claude", accept_inbound=True)
    assert box.json(".claude/settings.json")["crossSessionInbound"] == "accept"
    box.uninstall("claude")
    assert not os.path.exists(box.path(".claude/settings.json"))


def test_what_the_user_changed_since_survives_the_plugins_removal(box):
    box.claude()
    box.write(".claude/settings.json", ODD)
    box.install("claude", accept_inbound=True)
    box.write(".claude/settings.json", box.read(".claude/settings.json").replace("opus", "haiku"))
    box.uninstall("claude")
    assert json.loads(ODD.replace("opus", "haiku")) == box.json(".claude/settings.json")


def test_never_both(box):
    box.claude()
    box.write(".claude/settings.json", ODD)
    for options in ({}, {"settings": True}, {}, {"settings": True}):
        assert box.install("claude", **options)["failed"] == 0
        assert route(box) == {"settings" if options else "plugin"}
        assert os.path.lexists(box.path(".claude/skills/talking-stick")) == bool(options)
    box.uninstall("claude")
    assert box.read(".claude/settings.json") == ODD
    assert route(box) == set()


@pytest.mark.parametrize("old", ["version", "commands", "absent"])
def test_older_clients_get_the_settings(box, old):
    os.makedirs(box.path(".claude"))
    if old != "absent":
        box.claude("2.1.223" if old == "version" else "2.1.300", broken=old == "commands")
    result = box.install("claude")
    assert result["failed"] == 0
    assert route(box) == {"settings"}
    assert os.path.exists(box.path(".claude/skills/talking-stick/SKILL.md"))
    once = box.tree()
    again = box.install("claude")
    assert not {"added", "updated", "removed"} & set(states(again))
    assert box.tree() == once


def test_a_plugin_that_cannot_be_removed_is_not_doubled(box):
    box.claude()
    box.install("claude")
    os.unlink(os.path.join(box.bin, "claude"))
    before = box.tree()
    with pytest.raises(BusError, match="not on PATH"):
        box.install("claude", settings=True)
    assert box.tree() == before
    assert set(states(box.install("claude"))) == {"already_present"}
    assert box.tree() == before


def test_no_guard_is_kept_over_upgrades_and_forgotten_by_uninstall(box):
    box.claude()

    def guarded() -> bool:
        with open(
            os.path.join(claude_plugin.folder(box.data), "talking-stick/hooks/hooks.json"), encoding="utf-8"
        ) as file:
            text = file.read()
        assert ("publish --harness claude --no-guard" in text) == ("stop-guard" not in text)
        return "stop-guard" in text

    box.install("claude")
    assert guarded()
    box.install("claude", no_guard=True)
    assert not guarded()
    assert box.calls()[-1] == f"plugin update {claude_plugin.ID}"
    box.install("claude")
    assert not guarded()
    box.install("claude", settings=True)
    assert "stop-guard" not in box.read(".claude/settings.json")
    box.uninstall("claude")
    box.install("claude")
    assert guarded()


def test_accept_inbound_only_when_asked_and_the_former_word_comes_back(box):
    box.claude()
    before = '{\n  "crossSessionInbound": "hold",\n  "a": 1\n}\n'
    box.write(".claude/settings.json", before)
    box.install("claude")
    assert box.json(".claude/settings.json")["crossSessionInbound"] == "hold"
    box.install("claude", accept_inbound=True)
    assert box.json(".claude/settings.json")["crossSessionInbound"] == "accept"
    box.install("claude", settings=True)
    assert box.json(".claude/settings.json")["crossSessionInbound"] == "accept"
    box.uninstall("claude")
    assert box.read(".claude/settings.json") == before


def test_malformed_settings_are_refused_by_either_way(box):
    box.claude()
    for options in ({}, {"settings": True}):
        box.write(".claude/settings.json", '{"a": 1')
        result = box.tt("install", "claude", *(["--settings"] if options else []), "--json")
        assert "left as it is" in result.stdout + result.stderr
        assert box.read(".claude/settings.json") == '{"a": 1'


def test_claudes_configuration_directory_is_respected(box):
    box.claude()
    box.env["CLAUDE_CONFIG_DIR"] = box.path("elsewhere")
    box.install("claude", settings=True)
    assert MARKER in box.read("elsewhere/settings.json")
    assert not os.path.exists(box.path(".claude"))


# --- OpenCode's plugin ---

DRIVER = """
import * as all from "./plugin.mjs"
const sent = []
const client = { session: {
  promptAsync: async (call) => { sent.push(call) },
  get: async ({ path }) => ({ data: { parentID: path.id === "child" ? "main" : undefined } }),
} }
const hooks = await all.TalkingStick({ client, directory: process.argv[2] })
const output = { env: { KEPT: "1" } }
await hooks["shell.env"]({ cwd: "/", sessionID: "s1" }, output)
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "child", parentID: "s1" } } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "child" } } })
await hooks.event({ event: { type: "message.updated", properties: {} } })
for (let i = 0; i < 100 && !sent.length; i++) await new Promise((done) => setTimeout(done, 50))
console.log(JSON.stringify({ sent, env: output.env, pid: process.pid }))
"""
PROGRAM = """
import json, os, sys
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "log"), "a") as log:
    told = json.load(sys.stdin)
    log.write(json.dumps([sys.argv[1:], told, os.environ["TT_HARNESS_SESSION_ID"], os.environ["OPENCODE_PID"]]) + "\\n")
sys.stderr.write("[talking-stick] mail\\n"); sys.exit(2)
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_opencodes_plugin_names_the_session_and_hands_over_the_mail(tmp_path, monkeypatch):
    program = tmp_path / "run.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr(registrations, "PROGRAM", str(program))
    (tmp_path / "plugin.mjs").write_text(opencode.text())
    (tmp_path / "driver.mjs").write_text(DRIVER)
    words = ["node", str(tmp_path / "driver.mjs"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    text = [{"type": "text", "text": "[talking-stick] mail\n"}]
    assert shown["sent"] == [{"path": {"id": "s1"}, "body": {"parts": text}}]
    pid = str(shown["pid"])
    assert shown["env"] == {"KEPT": "1", "OPENCODE": "1", "OPENCODE_PID": pid, "TT_HARNESS_SESSION_ID": "s1"}
    (call,) = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    told = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": str(tmp_path)}
    assert call == [["rewake", "--harness", "opencode"], told, "s1", pid]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_opencodes_plugin_is_quiet_without_our_package(tmp_path, monkeypatch):
    monkeypatch.setattr(registrations, "PROGRAM", "/nowhere/run.py")
    (tmp_path / "plugin.mjs").write_text(opencode.text())
    (tmp_path / "driver.mjs").write_text(DRIVER.replace("i < 100", "i < 5"))
    words = ["node", str(tmp_path / "driver.mjs"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["sent"] == []


def test_groks_older_files_of_the_same_name_are_replaced(box):
    box.program("grok")
    box.write(
        ".grok/hooks/talking-stick-stop.json",
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "old"}]}]}}',
    )
    box.write(".grok/hooks/mine.json", "{}")
    assert states(box.install("grok"), "hooks") == ["added", "updated", "added"]
    assert "old" not in commands(box.json(".grok/hooks/talking-stick-stop.json"))
    box.uninstall("grok")
    assert os.listdir(box.path(".grok/hooks")) == ["mine.json"]
