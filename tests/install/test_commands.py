"""The commands themselves: usage, text and JSON, shapes; and `self-update` without a network."""

from __future__ import annotations

import json
import os
import sys

import pytest

from bus.errors import BusError
from tt import schema, selfupdate

NOTHING = {"agent": None, "json": True, "text": False, "verbose": False, "path": None}


def result(done):
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ["install"],
        ["uninstall"],
        ["install", "--all", "codex"],
        ["install", "codex", "--copy", "--link"],
        ["instructions"],
        ["instructions", "reset"],
        ["instructions", "edit", "--user", "--project"],
    ],
    ids=" ".join,
)
def test_unclear_calls_are_usage_errors_and_change_nothing(box, words):
    done = box.tt(*words)
    assert done.returncode == 2
    assert not os.path.exists(box.data)


def test_an_unknown_harness_is_refused_by_name(box):
    done = box.tt("install", "emacs", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"] == "invalid_input"
    assert "codex" in json.loads(done.stderr)["message"]


def test_results_have_the_shapes_that_the_schema_says(box):
    box.everything()
    box.claude()
    for words in (
        ["install", "--all"],
        ["install", "--all", "--print"],
        ["uninstall", "--all", "--print"],
        ["uninstall", "--all"],
    ):
        shown = result(box.tt(*words, "--json"))
        assert schema.problems(words[0], shown) == []
        always, sometimes = (part.split() for part in schema.PARTS["installed"])
        for line in shown["results"]:
            assert set(always) <= set(line) <= {*always, *sometimes}
    for call in (["show"], ["edit"], ["update"], ["reset", "--user"]):
        shown = result(box.tt("instructions", *call, "--json"))
        assert schema.problems(f"instructions {call[0]}", shown) == []


def test_text_has_a_line_for_each_thing(box):
    box.program("codex")
    done = box.tt("install", "codex", "grok")
    assert done.returncode == 0
    assert "added           codex hooks  " + box.path(".codex/hooks.json") in done.stdout
    assert "    Grok Build is not on this machine" in done.stdout
    assert "open /hooks in Codex" in done.stdout
    planned = box.tt("uninstall", "codex", "--print").stdout
    assert planned.startswith("Nothing is changed")


def test_names_that_people_use_are_understood(box):
    box.claude()
    shown = result(box.tt("install", "claude-code", "--json"))
    assert {line["harness"] for line in shown["results"]} == {"claude"}


def test_two_installs_wait_for_each_other(box):
    from filelock import FileLock

    from tt.install import engine

    box.program("codex")
    os.makedirs(box.data, mode=0o700)
    with FileLock(os.path.join(box.data, "install.lock")), pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "LOCK_SECONDS", 0.1)
        with pytest.raises(BusError) as caught:
            box.install("codex")
    assert caught.value.code == "store_busy"
    assert box.tree() == {}


# --- self-update ---


def laid_out(tmp_path, *marks: str, origin=None):
    packages = tmp_path / "site"
    info = packages / "talking_stick-0.1.0.dist-info"
    info.mkdir(parents=True)
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    for mark in marks:
        (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mark).write_text("")
    return str(tmp_path / "prefix"), str(packages)


EDITABLE = {"url": "file:///x", "dir_info": {"editable": True}}


@pytest.mark.parametrize(
    ("marks", "origin", "manager"),
    [
        (["prefix/pipx_metadata.json"], None, "pipx"),
        (["prefix/uv-receipt.toml"], None, "uv"),
        ([], None, "pip"),
        ([], {"url": "https://example.org/x.whl", "archive_info": {}}, "pip"),
        (["site/pyproject.toml"], None, "checkout"),
        (["prefix/pipx_metadata.json"], EDITABLE, "checkout"),
        ([], EDITABLE, "checkout"),
    ],
)
def test_each_way_of_installing_is_recognised(tmp_path, marks, origin, manager):
    assert selfupdate.detect(*laid_out(tmp_path, *marks, origin=origin)) == manager


def test_commands_of_the_managers(tmp_path):
    assert selfupdate.command("pipx", "/py", "x") == ["pipx", "upgrade", "talking-stick"]
    assert selfupdate.command("uv", "/py", "x") == ["uv", "tool", "upgrade", "talking-stick"]
    assert selfupdate.command("pip", "/py", "x") == ["/py", "-m", "pip", "install", "--upgrade", "x"]
    _, packages = laid_out(tmp_path, origin={"url": "https://example.org/r", "vcs_info": {"vcs": "git"}})
    assert selfupdate.source(packages) == "git+https://example.org/r"
    assert selfupdate.source(str(tmp_path)) == "talking-stick"


def test_a_checkout_is_left_to_git(box):
    for words in (["self-update"], ["self-update", "--print"], ["self-update", "--manager", "pip"]):
        done = box.tt(*words, "--json")
        assert (done.returncode, done.stdout) == (1, "")
        assert json.loads(done.stderr)["hint"].endswith(" pull")


def test_print_runs_nothing_and_a_run_is_told(tmp_path, monkeypatch, capfd):
    prefix, packages = laid_out(tmp_path)
    ran: list[list[str]] = []
    monkeypatch.setattr(selfupdate, "PACKAGES", packages)
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(selfupdate, "_carry_out", ran.append)
    args = {**NOTHING, "command": "self-update", "manager": None}
    selfupdate.run({**args, "print": True})
    shown = json.loads(capfd.readouterr().out)
    assert (ran, shown["ran"]) == ([], False)
    assert schema.problems("self-update", shown) == []
    selfupdate.run({**args, "print": False})
    assert ran == [shown["command"]]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BusError, match="not on PATH"):
        selfupdate.run({**args, "print": False, "manager": "uv"})


def test_a_manager_that_fails_is_an_error():
    with pytest.raises(BusError, match="ended with code 3"):
        selfupdate._carry_out(["/bin/sh", "-c", "exit 3"])
