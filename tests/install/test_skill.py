"""The skill: valid, small, true to the table of commands; placed as a link or copy, edits of others kept."""

from __future__ import annotations

import os
import re
import shlex

import pytest

from tests.install.conftest import states
from tt import app, grammar, table
from tt.install import skill

SHARED = ".agents/skills/talking-stick"


def texts() -> dict[str, str]:
    return {name: data.decode() for name, data in skill.files(skill.SOURCE).items()}


def instructions() -> str:
    from tt import instructions as module

    return module.bundled()


# --- what it says ---


def test_the_front_matter_is_valid():
    lines = texts()["SKILL.md"].splitlines()
    assert lines[0] == "---"
    end = lines.index("---", 1)
    front = dict(line.split(": ", 1) for line in lines[1:end])
    assert set(front) == {"name", "description"}
    assert front["name"] == skill.NAME
    assert 20 < len(front["description"]) <= 1024
    assert not re.search(r": |^[\[{>|&*!%@`'\"#]| #", front["description"])


def test_it_is_short_and_its_references_are_there():
    found = texts()
    text = found["SKILL.md"]
    assert len(text.splitlines()) < 200
    assert len(text) / 4 < 5000
    linked = set(re.findall(r"\]\((references/[a-z]+\.md)\)", text))
    assert linked == {name for name in found if name.startswith("references/")}


def quoted(text: str) -> list[str]:
    """Every tt command in code, fenced or in back-ticks."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for block in re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL):
        spans += [line for line in block.splitlines() if line.startswith("tt ")]
    spans += re.findall(r"`(tt [^`]+)`", text)
    return sorted({" ".join(span.split()) for span in spans if span.startswith("tt ") or span == "tt"})


PLACES = {**texts(), "instructions.md": instructions()}


def checked(command, raw) -> int:
    """What `tt` would do first with a call: check and convert its values."""
    grammar.finish(command, raw)
    return 0


def can_be_read(command: grammar.Command, words: list[str]) -> bool:
    """Whether the call has all its words, and isn't only the name of a command in a sentence."""
    given = [word for word in words[len(command.words) :] if not word.startswith("--")]
    return len(given) >= sum(argument.required for argument in command.arguments)


@pytest.mark.parametrize("name", PLACES)
def test_every_command_in_it_exists_as_it_is_written(name):
    found = [span for span in quoted(PLACES[name]) if span not in ("tt", "tt COMMAND --help")]
    assert found
    for span in found:
        words = shlex.split(span.replace("…", "").replace("<<'END'", ""))[1:]
        words = ["1" if word in ("ID", "N") else word for word in words]
        command = table.find(tuple(words[:2])) or table.find(tuple(words[:1]))
        assert command is not None, span
        flags = {option.flag for option in grammar.options_of(command)} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= flags, span
        if can_be_read(command, words):
            assert app.run(words, checked) == 0, span


def test_it_says_what_it_must():
    whole = "\n".join(PLACES.values())
    for words in ("sub-agent", "poll", "127", "standby", "generated output", "tt ack", "authority", "second listener"):
        assert words in whole
    assert "shared mutations" in instructions() or "shared\n  mutations" in instructions()


# --- where it is put ---


@pytest.fixture
def home(box):
    box.program("codex")
    return box


def test_a_link_by_default_and_a_copy_on_request(home):
    home.install("codex")
    assert os.path.realpath(home.path(SHARED)) == os.path.realpath(skill.SOURCE)
    assert states(home.install("codex"), "skill") == ["already_present"]
    assert states(home.install("codex", copy=True), "skill") == ["updated"]
    assert not os.path.islink(home.path(SHARED))
    assert skill.digest(home.path(SHARED)) == skill.digest(skill.SOURCE)
    assert states(home.install("codex"), "skill") == ["already_present"]
    assert states(home.install("codex", link=True), "skill") == ["updated"]
    assert os.path.islink(home.path(SHARED))
    assert os.listdir(home.path(".agents/skills")) == ["talking-stick"]


def test_a_known_copy_is_updated_and_an_edited_one_kept(home, monkeypatch, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    (old / "SKILL.md").write_text("---\nname: talking-stick\n---\nold\n")
    with monkeypatch.context() as patch:
        patch.setattr(skill, "SOURCE", str(old))
        home.install("codex", copy=True)
    assert states(home.install("codex"), "skill") == ["updated"]
    assert skill.digest(home.path(SHARED)) == skill.digest(skill.SOURCE)
    home.write(SHARED + "/SKILL.md", "mine")
    (line,) = [line for line in home.install("codex")["results"] if line["what"] == "skill"]
    assert line["state"] == "skipped"
    assert "--replace" in line["detail"]
    assert states(home.uninstall("codex", shared=True), "skill") == ["skipped"]
    assert home.read(SHARED + "/SKILL.md") == "mine"
    assert states(home.install("codex", overwrite=True), "skill") == ["updated"]
    assert states(home.uninstall("codex", shared=True), "skill") == ["removed"]
    assert not os.path.exists(home.path(".agents"))


def test_a_foreign_link_is_kept(home):
    os.makedirs(home.path(".agents/skills"))
    os.makedirs(home.path("other"))
    os.symlink(home.path("other"), home.path(SHARED))
    assert states(home.install("codex"), "skill") == ["skipped"]
    assert states(home.uninstall("codex", shared=True), "skill") == ["skipped"]
    assert os.readlink(home.path(SHARED)) == home.path("other")


def test_a_link_to_an_older_place_of_ours_is_renewed(home, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(skill, "SOURCE", str(tmp_path / "gone"))
        os.makedirs(tmp_path / "gone")
        home.install("codex")
        os.rmdir(tmp_path / "gone")
    assert states(home.install("codex"), "skill") == ["updated"]
    assert os.path.realpath(home.path(SHARED)) == os.path.realpath(skill.SOURCE)


def test_only_duplicates_that_are_links_to_ours_are_pruned(box):
    box.everything()
    for folder in (".codex/skills", ".config/opencode/skills", ".grok/skills", ".opencode/skills"):
        os.makedirs(box.path(folder))
    os.symlink(skill.SOURCE, box.path(".codex/skills/talking-stick"))
    os.symlink(skill.SOURCE, box.path(".opencode/skills/talking-stick"))
    os.symlink(box.home, box.path(".grok/skills/talking-stick"))
    box.write(".config/opencode/skills/talking-stick/SKILL.md", "mine")
    result = box.install("codex", "opencode", "grok")
    pruned = {line["path"] for line in result["results"] if line["what"] == "duplicate skill"}
    assert pruned == {box.path(".codex/skills/talking-stick"), box.path(".opencode/skills/talking-stick")}
    assert os.path.lexists(box.path(".grok/skills/talking-stick"))
    assert box.read(".config/opencode/skills/talking-stick/SKILL.md") == "mine"


def test_a_single_harness_leaves_the_shared_skill(box):
    box.everything()
    box.install("codex", "grok")
    box.uninstall("codex")
    assert os.path.lexists(box.path(SHARED))
    done = box.tt("uninstall", "agents", "--json")
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(box.path(SHARED))
    assert os.path.exists(box.path(".grok/hooks/talking-stick-stop.json"))
