"""The layers of instructions: what falls through, what is kept, what is never made."""

from __future__ import annotations

import json
import os

import pytest

from bus.errors import BusError
from tt import instructions
from tt.instructions import Layers, chosen, merged, sections


@pytest.fixture
def layers(box):
    project = os.path.join(box.top, "project")
    os.makedirs(project)
    with open(os.path.join(project, "pyproject.toml"), "w", encoding="utf-8"):
        pass

    def make(**env: str) -> Layers:
        return Layers({**box.env, **env}, project)

    return make


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


# --- sections ---

TEXT = """# Head

for all

## Claude

for claude

## Our own rules

for everybody

```
## codex
```

## codex ##

for codex

## role expo

for the expo
"""


def test_a_foreign_heading_ends_a_section_and_is_for_all():
    assert [part.key for part in sections(TEXT)] == ["", "claude", "Our own rules", "codex", "role expo"]
    shown = chosen(sections(TEXT), "claude", None)
    assert "for claude" in shown
    assert "for everybody" in shown
    assert "for codex" not in shown
    assert "for the expo" not in shown


def test_the_role_is_last_and_all_is_everything():
    shown = chosen(sections(TEXT), "codex", "expo")
    assert (
        shown.index("for all") < shown.index("for everybody") < shown.index("for codex") < shown.index("for the expo")
    )
    assert shown.endswith("for the expo\n")
    assert "for claude" not in shown
    assert all(f"for {word}" in chosen(sections(TEXT), "all", None) for word in ("all", "claude", "codex", "the expo"))


def test_a_later_layer_replaces_sections_by_name_and_others_fall_through():
    parts = merged(TEXT, "## claude\n\nmine\n", "## role expo\n\ntheirs\n\n## more\n\nnew\n")
    shown = chosen(parts, "claude", "expo")
    assert "mine" in shown
    assert "theirs" in shown
    assert "new" in shown
    assert "for all" in shown
    assert "for claude" not in shown
    assert "for the expo" not in shown


def test_the_bundled_text_has_a_section_for_each_harness_and_role():
    parts = sections(instructions.bundled())
    assert {part.harness for part in parts} == {None, *instructions.HARNESSES}
    assert {part.role for part in parts} == {None, *instructions.ROLES}
    assert not [part.key for part in parts if part.key and not part.harness and not part.role]


# --- layers ---


def test_looking_and_updating_make_nothing(box, layers):
    found = layers()
    shown = found.show("codex", "effective")
    assert "Codex" not in shown["text"] or shown["text"]
    assert found.update("user", replace=True)["state"] == "already_absent"
    assert found.update("project", replace=False)["state"] == "already_absent"
    assert found.reset("user")["state"] == "already_absent"
    assert [layer["state"] for layer in shown["layers"]] == ["none", "none"]
    assert not os.path.exists(box.data)
    assert not os.path.exists(os.path.dirname(found.paths["project"]))


def test_an_unedited_file_follows_and_an_edited_one_is_kept(layers, monkeypatch):
    found = layers()
    assert found.make("user", replace=False)["state"] == "added"
    assert found.make("user", replace=False)["state"] == "already_present"
    path = found.paths["user"]
    monkeypatch.setattr(instructions, "bundled", lambda: "# New\n\nnew words\n")
    assert layers().state("user") == "unedited"
    assert "new words" in layers().show("claude", "effective")["text"]
    assert "new words" not in read(path)  # looking changes nothing
    assert layers().update("user", replace=False)["state"] == "updated"
    assert read(path) == "# New\n\nnew words\n"
    write(path, "# Mine\n\nmy words\n")
    assert layers().state("user") == "edited"
    assert layers().update("user", replace=False)["state"] == "kept"
    monkeypatch.setattr(instructions, "bundled", lambda: "# Newer\n")
    assert layers().state("user") == "update_available"
    assert layers().update("user", replace=False)["state"] == "update_available"
    assert layers().make("user", replace=False)["state"] == "already_present"
    assert "my words" in layers().show("claude", "effective")["text"]
    assert layers().update("user", replace=True)["state"] == "updated"
    assert read(path) == "# Newer\n"
    assert layers().reset("user")["state"] == "removed"
    assert not os.path.exists(path)


def test_the_projects_layer_is_on_top_of_the_users(layers):
    found = layers()
    write(found.paths["user"], "## claude\n\nthe user's\n\n## grok\n\nthe user's for grok\n")
    write(found.paths["project"], "## claude\n\nthe project's\n")
    shown = layers().show("claude", "effective")["text"]
    assert "the project's" in shown
    assert "the user's" not in shown
    assert "the user's for grok" in layers().show("grok", "effective")["text"]
    assert layers().show("claude", "project")["text"] == "## claude\n\nthe project's\n"
    assert layers().show("claude", "user")["text"] == "## claude\n\nthe user's\n"
    assert layers().reset("project")["state"] == "removed"
    assert not os.path.exists(os.path.dirname(found.paths["project"]))


def test_a_projects_file_that_came_with_the_repository_counts_as_edited(layers):
    found = layers()
    write(found.paths["project"], "# Ours\n")
    assert layers().state("project") == "edited"
    assert layers().update("project", replace=False)["state"] == "kept"
    assert read(found.paths["project"]) == "# Ours\n"


def test_the_role_comes_from_the_place(layers):
    assert layers(TT_STATION="expo").role() == "expo"
    assert layers(TT_STATION="sous").role() == "sous"
    assert layers(HANDS_ID="station-2").role() == "station"
    assert layers().role() is None
    assert "main worktree" in layers(TT_STATION="expo").show("claude", "effective")["text"].split("## role expo")[-1]


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (instructions.MOST_BYTES + 1)])
def test_a_file_that_is_no_text_is_refused(layers, data):
    found = layers()
    os.makedirs(os.path.dirname(found.paths["project"]))
    with open(found.paths["project"], "wb") as file:
        file.write(data)
    with pytest.raises(BusError) as caught:
        layers().show("claude", "effective")
    assert caught.value.code == "invalid_input"


# --- the commands ---


def test_a_person_without_a_harness_sees_everything_and_an_agent_its_own(box):
    everything = box.tt("instructions", "show").stdout
    assert "## codex" in everything
    assert "## claude" in everything
    one = json.loads(
        box.tt("instructions", "show", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="s", CLAUDE_PID=str(os.getpid())).stdout
    )
    assert one["harness"] == "claude"
    assert "## claude" in one["text"]
    assert "## codex" not in one["text"]
    asked = box.tt("instructions", "show", "--harness", "codex", "--scope", "bundled").stdout
    assert "## codex" in asked
    assert "## claude" not in asked
    assert "no file" in box.tt("instructions", "show", "--scope", "user").stdout


def test_edit_without_a_terminal_names_the_file(box):
    shown = json.loads(box.tt("instructions", "edit", "--json", EDITOR="false").stdout)
    assert shown["state"] == "added"
    assert read(shown["path"]) == instructions.bundled()
    assert shown["path"] in shown["path"]
    assert "edit this file" in shown["hint"]
