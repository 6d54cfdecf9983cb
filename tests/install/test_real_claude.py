"""The published Claude Code, offline, with a home of its own: its plugin commands take our plugin, and give it back."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.clients.where import find
from tests.install.conftest import states
from tt.install import claude_plugin

CLAUDE = find("claude")
pytestmark = [
    pytest.mark.skipif(
        CLAUDE is None, reason="Claude Code is not installed (TT_TEST_CLIENTS=…/node_modules names one)"
    ),
    pytest.mark.timeout(180),
]
# Whatever is not this machine is refused at once, so that nothing can depend on a network.
OFFLINE = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
ODD = '{\n   "model": "opus",\n   "env": {"A": "b"},\n "permissions": {"allow": ["Bash(ls:*)"]}}'


@pytest.fixture
def real(box):
    os.symlink(CLAUDE, os.path.join(box.bin, "claude"))
    box.env = {**box.env, **OFFLINE, "PATH": f"{box.bin}:{os.defpath}"}
    return box


def claude(box, *words: str):
    env = {**box.env, "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return subprocess.run(
        [os.path.join(box.bin, "claude"), *words],
        env=env,
        cwd=box.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def plugins(box) -> dict[str, dict]:
    listed = claude(box, "plugin", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    return {one["id"]: one for one in json.loads(listed.stdout)}


def test_the_client_takes_the_plugin_and_gives_it_back(real):
    real.write(".claude/settings.json", ODD, 0o600)
    assert real.install("claude")["failed"] == 0
    listed = plugins(real)[claude_plugin.ID]
    version, _ = claude_plugin.contents(guard=True)
    assert (listed["version"], listed["enabled"], listed["scope"]) == (version, True, "user")
    settings = real.read(".claude/settings.json")
    assert settings.startswith(ODD[:-1])
    assert json.loads(settings)["enabledPlugins"] == {claude_plugin.ID: True}
    before = real.read(".claude/settings.json")
    assert set(states(real.install("claude"))) == {"already_present"}
    assert real.read(".claude/settings.json") == before
    assert real.install("claude", no_guard=True)["failed"] == 0
    changed, _ = claude_plugin.contents(guard=False)
    assert changed != version
    assert plugins(real)[claude_plugin.ID]["version"] == changed
    assert real.uninstall("claude")["failed"] == 0
    assert claude_plugin.ID not in plugins(real)
    assert real.read(".claude/settings.json") == ODD
    marketplaces = claude(real, "plugin", "marketplace", "list", "--json")
    assert json.loads(marketplaces.stdout) == []


def test_the_client_finds_everything_in_the_plugin_and_nothing_wrong(real):
    real.install("claude")
    folder = claude_plugin.folder(real.data)
    report = {}
    for place in (folder, os.path.join(folder, claude_plugin.NAME)):
        checked = claude(real, "plugin", "validate", "--strict", "--json", place)
        report = json.loads(checked.stdout)
        assert report["success"], report
    provided = report["provides"]
    assert {one["event"] for one in provided["hooks"]} == {
        *("SessionStart", "UserPromptSubmit", "Stop", "StopFailure"),
        *("Notification", "SubagentStop", "SessionEnd"),
    }
    assert [one["name"] for one in provided["monitors"]] == ["mail"]
    assert provided["skills"] == ["talking-stick:talking-stick"]


def test_plugin_and_settings_change_places_and_are_never_both(real):
    real.write(".claude/settings.json", ODD)
    for options in ({}, {"settings": True}, {}):
        assert real.install("claude", **options)["failed"] == 0
        assert (claude_plugin.ID in plugins(real)) is not bool(options)
        assert ("# talking-stick" in real.read(".claude/settings.json")) is bool(options)
    real.uninstall("claude")
    assert real.read(".claude/settings.json") == ODD


def test_without_settings_before_there_are_none_afterwards(real):
    real.install("claude", accept_inbound=True)
    assert real.json(".claude/settings.json")["crossSessionInbound"] == "accept"
    real.uninstall("claude")
    assert not os.path.exists(real.path(".claude/settings.json"))
