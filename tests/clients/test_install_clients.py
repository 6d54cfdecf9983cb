"""`tt install` beside the real clients: what it leaves alone, that it undoes itself, that nothing breaks without us."""

from __future__ import annotations

import itertools
import json
import os
import stat

import pytest

from tests.clients import stories
from tests.clients.model import bash, say
from tests.kit.world import ROOT

# A person's own file: odd spacing, an order of keys, a foreign hook at an event of ours.
OWN = """{
    "theme" : "dark",
  "skipDangerousModePermissionPrompt":true,
  "hooks": { "UserPromptSubmit": [ {"hooks": [
      { "type":"command",   "command": "echo FOREIGN-CONTEXT" } ] } ],
    "PostToolUse": [] },
  "permissions": {"allow": ["Bash(ls:*)"]},   "env": {"A": "1"}
}
"""
CHURN = ("sessions", "projects", "shell-snapshots", "todos", "debug", "cache", "backups", "statsig", "file-history")
WAYS = pytest.mark.parametrize("way", [(), ("--settings",)], ids=["plugin", "settings"])


def files(client) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of every file that an installer may touch; what clients and buses keep is left out."""
    found = {}
    left_out = {os.path.join(client.config, name) for name in CHURN}
    left_out |= {os.path.join(client.world.data, name) for name in ("buses", "rooms")}
    walks = (os.walk(client.home), os.walk(client.world.data))
    for folder, folders, names in itertools.chain(*walks):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in left_out]
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith((".claude.json", "hooks.log")) or os.path.islink(path):
                continue
            with open(path, "rb") as file:
                found[path] = (stat.S_IMODE(os.stat(path).st_mode), file.read())
    return found


def owned(client) -> None:
    """Give the client's user the settings above, readable for the group."""
    client.world.write(client.config, "settings.json", OWN)
    os.chmod(client.settings_file, 0o640)


def ours(client) -> list[str]:
    """The files in this home that register hooks of ours."""
    return [path for path, (_, data) in files(client).items() if b"hooks/run.py" in data]


@WAYS
def test_installing_twice_changes_no_byte(claude, project, way):
    owned(claude)
    stories.installed(project, claude, *way)
    once = files(claude)
    assert ours(claude)
    again = stories.installed(project, claude, *way)
    assert files(claude) == once
    assert "added" not in again.out
    assert "updated" not in again.out


@WAYS
def test_foreign_hooks_order_and_mode_survive_and_uninstall_restores_the_file(claude, project, model, way):
    owned(claude)
    stories.installed(project, claude, *way)
    assert stat.S_IMODE(os.stat(claude.settings_file).st_mode) == 0o640
    now = json.loads(stories.read(claude.settings_file))
    assert [key for key in now if key in json.loads(OWN)] == list(json.loads(OWN))
    claude.headless("hello").ok()
    shown = model.mains()[0].new_text
    assert "FOREIGN-CONTEXT" in shown
    assert "talking-stick" in shown
    project.tt(claude, "uninstall", "claude-code").ok()
    assert stories.read(claude.settings_file) == OWN
    assert stat.S_IMODE(os.stat(claude.settings_file).st_mode) == 0o640
    # the client keeps its own copy of a removed plugin for a while, and runs nothing of it
    assert [path for path in ours(claude) if "/plugins/cache/" not in path] == []
    claude.headless("hello").ok()
    assert "talking-stick" not in model.mains()[-1].new_text


def test_print_shows_everything_and_changes_nothing(claude, project):
    before = files(claude)
    shown = stories.installed(project, claude, "--print")
    assert claude.config in shown.out
    assert files(claude) == before


def test_a_malformed_settings_file_is_refused_untouched(claude, project):
    broken = OWN.replace('"permissions"', "permissions")
    claude.world.write(claude.config, "settings.json", broken)
    run = project.tt(claude, "install", "claude-code", "--settings")
    assert "failed" in run.out + run.err
    assert "settings.json" in run.out + run.err
    assert stories.read(claude.settings_file) == broken


def test_a_symlinked_settings_file_stays_a_link(claude, project):
    target = claude.world.write(claude.home, "dotfiles/settings.json", OWN)
    os.unlink(claude.settings_file)
    os.symlink(target, claude.settings_file)
    stories.installed(project, claude, "--settings")
    assert os.path.islink(claude.settings_file)
    assert "hooks/run.py" in stories.read(target)


def test_hooks_in_user_and_project_settings_run_once(claude, world, project, model):
    stories.installed(project, claude, "--settings")
    hooks = json.loads(stories.read(claude.settings_file))["hooks"]
    world.write(project.path, ".claude/settings.json", json.dumps({"hooks": hooks}))
    claude.interactive(bypass=True)
    me = stories.agent_of(world, claude)
    assert claude.ask("hello").new_text.count(f"you are {me}") == 1
    stories.sends(project.bob, me, "once please", "--no-wake")
    assert claude.ask("next").new_text.count("once please") == 1
    assert stories.armed(claude, me)


def test_plugin_and_settings_are_never_registered_both(claude, project, model):
    stories.installed(project, claude)
    stories.installed(project, claude, "--settings")
    claude.headless("hello").ok()
    assert model.mains()[0].new_text.count("this repository has a bus") == 1
    stories.installed(project, claude)
    claude.headless("hello").ok()
    assert model.mains()[1].new_text.count("this repository has a bus") == 1


def replaced(client, old: str, new: str) -> None:
    """Change every registration of ours, as if the package had moved or aged under it."""
    changed = ours(client)
    assert changed
    for path in changed:
        text = stories.read(path)
        assert old in text
        client.world.write(*os.path.split(path), text.replace(old, new))


@WAYS
@pytest.mark.parametrize(
    ("old", "new"),
    [(ROOT, "/nowhere/at/all"), ("run.py", "missing.py"), ("run.py board", "run.py unheard-of --odd=1")],
    ids=["package gone", "half a package", "older package"],
)
def test_without_the_package_prompts_and_tools_work(claude, project, model, way, old, new):
    stories.installed(project, claude, *way)
    replaced(claude, old, new)
    prompt = model.script("work", bash("echo it works"), say("words at the end"))
    done = claude.headless(prompt).ok()
    assert done.out.strip() == "words at the end"
    assert model.count() == 2, model.told()
    assert "it works" in model.mains()[1].results[0]
    assert "blocked" not in model.mains()[1].new_text


def test_the_skill_is_listed(claude, project, model):
    stories.installed(project, claude)
    claude.headless("hello").ok()
    assert "talking-stick" in "\n".join(item.text for item in model.mains()[0].items if item.role == "system")
