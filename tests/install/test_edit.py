"""Foreign files: golden before and after, twice is once, uninstall restores the bytes, the rest is refused."""

from __future__ import annotations

import glob
import json
import os
import signal
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import crash
from bus.errors import BusError
from tests.install.conftest import states
from tt.install import hooksfile, jsontext, spans, toml_list
from tt.install.hooksfile import Group, Wanted
from tt.install.jsontext import Malformed

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
HANDLER = {"type": "command", "command": "ours # talking-stick", "timeout": 20}
WANTED = Wanted(
    groups=[Group("Stop", [HANDLER]), Group("Notification", [HANDLER], "idle_prompt")],
    values={("crossSessionInbound",): "accept", ("enabledPlugins", "a@b"): True},
)
NAMES = sorted(os.path.basename(path).removesuffix(".before") for path in glob.glob(GOLDEN + "/*.before"))


def golden(name: str) -> str:
    with open(os.path.join(GOLDEN, name), encoding="utf-8", newline="") as file:
        return file.read()


@pytest.mark.parametrize("name", NAMES)
def test_an_edit_is_the_golden_one_and_comes_out_without_a_trace(name):
    before = golden(name + ".before")
    after, memory = hooksfile.add(before, WANTED)
    assert after == golden(name + ".after")
    assert hooksfile.holds(after, WANTED)
    assert spans.undo(after, spans.between(before, after)) == before
    assert hooksfile.strip(after, memory) == before
    assert jsontext.parse(
        hooksfile.strip(after, hooksfile.Memory.of(json.loads(json.dumps(memory.as_json()))))
    ).value == (jsontext.parse(before).value)


def test_what_somebody_adds_beside_ours_survives_and_only_ours_goes(box):
    box.program("codex")
    path = box.write(".codex/hooks.json", golden("comments.before"))
    box.install("codex")
    text = box.read(".codex/hooks.json")
    mine = '{"type": "command", "command": "mine"}'
    group = text.index('"hooks": [', text.index("UserPromptSubmit")) + len('"hooks": [')
    text = text[:group] + mine + "," + text[group:]
    box.write(".codex/hooks.json", text.replace('"theme": "dark"', '"theme": "light"'))
    assert states(box.install("codex"), "hooks") == ["already_present"]
    assert states(box.uninstall("codex"), "hooks") == ["removed"]
    left = box.read(".codex/hooks.json")
    assert "talking-stick" not in left
    assert jsontext.parse(left).value["hooks"]["UserPromptSubmit"] == [{"hooks": [json.loads(mine)]}]
    for foreign in ('"theme": "light"', "// what I like", "/* kept */", '"command": "foreign one"', "1.50"):
        assert foreign in left
    assert os.path.exists(path)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
@pytest.mark.parametrize("name", NAMES)
def test_mode_bytes_and_directories_are_as_before(box, name, mode):
    box.program("codex")
    box.write(".codex/hooks.json", golden(name + ".before"), mode)
    box.write(".codex/config.toml", "# mine\nmodel = 'x'\n")
    before = box.tree()
    assert set(states(box.install("codex", allow_data_dir=True))) == {"added"}
    once = box.tree()
    assert stat.S_IMODE(os.stat(box.path(".codex/hooks.json")).st_mode) == mode
    assert set(states(box.install("codex", allow_data_dir=True))) == {"already_present"}
    assert set(states(box.install("codex"))) == {"already_present"}
    assert box.tree() == once
    box.uninstall("codex", shared=True)
    assert box.tree() == before
    assert not os.path.exists(os.path.join(box.data, "managed.json"))


def test_an_upgrade_replaces_only_ours_and_uninstall_still_restores(box, monkeypatch):
    from tt.install import registrations

    box.program("codex")
    box.write(".codex/hooks.json", golden("four.before"))
    before = box.tree()
    box.install("codex")
    first = box.read(".codex/hooks.json")
    monkeypatch.setattr(registrations, "PROGRAM", "/elsewhere/hooks/run.py")
    assert states(box.install("codex"), "hooks") == ["updated"]
    assert box.read(".codex/hooks.json") == first.replace(
        os.path.join(registrations.PACKAGES, "hooks", "run.py"), "/elsewhere/hooks/run.py"
    )
    box.uninstall("codex", shared=True)
    assert box.tree() == before


def test_without_the_state_the_marker_is_enough(box):
    box.everything()
    for name in (".codex/hooks.json", ".gemini/config/hooks.json"):
        box.write(name, golden("four.before"))
    before = {name: box.read(name) for name in (".codex/hooks.json", ".gemini/config/hooks.json")}
    box.install("codex", "grok", "opencode", "antigravity")
    os.unlink(os.path.join(box.data, "managed.json"))
    assert set(states(box.install("codex", "antigravity"), "hooks")) == {"already_present"}
    box.uninstall("codex", "grok", "opencode", "antigravity")
    assert {name: box.read(name) for name in before} == before
    assert os.listdir(box.path(".grok/hooks")) == []
    assert os.listdir(box.path(".config/opencode/plugins")) == []


BROKEN = [
    '{"a": 1',
    "{a: 1}",
    "[]",
    "3",
    '{"a": 1} x',
    '{"hooks": []}',
    '{"hooks": {"Stop": {}}}',
    '{"a":NaN}',
    b"\xff\xfe{}",
]
BROKEN += ['{"hooks": {}, "hooks": {}}', "[" * 100_000]


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: str(text)[:24])
def test_what_is_not_understood_is_refused_untouched(box, text):
    box.program("codex")
    box.write(".codex/hooks.json", text)
    before = box.tree()
    result = box.install("codex")
    (line,) = [line for line in result["results"] if line["what"] == "hooks"]
    assert line["state"] == "failed"
    assert line["detail"].startswith("left as it is: ")
    after = box.tree()
    assert {path: after[path] for path in before} == before


def test_if_nothing_worked_it_is_an_error_and_nothing_has_changed(box):
    box.program("gemini")
    box.write(".gemini/settings.json", '{"hooks": [" # talking-stick"')
    before = box.tree()
    with pytest.raises(BusError) as caught:
        box.install("gemini")
    assert caught.value.code == "cli_error"
    assert "settings.json" in caught.value.message
    assert box.tree() == before


def test_a_symlink_stays_one_and_its_target_is_edited(box):
    box.program("codex")
    box.write("dotfiles/hooks.json", golden("four.before"), 0o640)
    os.makedirs(box.path(".codex"))
    os.symlink("../dotfiles/hooks.json", box.path(".codex/hooks.json"))
    before = box.tree()
    box.install("codex")
    assert os.readlink(box.path(".codex/hooks.json")) == "../dotfiles/hooks.json"
    assert "talking-stick" in box.read("dotfiles/hooks.json")
    assert os.listdir(box.path(".codex")) == ["hooks.json"]
    box.uninstall("codex", shared=True)
    assert box.tree() == before


def test_a_crash_before_the_rename_leaves_the_old_file_whole(box):
    box.program("codex")
    box.write(".codex/hooks.json", golden("four.before"))
    done = box.tt("install", "codex", TT_TEST_CRASH="before_replace")
    assert done.returncode == -signal.SIGKILL
    assert box.read(".codex/hooks.json") == golden("four.before")
    assert states(box.install("codex"), "hooks") == ["added"]
    assert os.listdir(box.path(".codex")) == ["hooks.json"]
    box.uninstall("codex")
    assert box.read(".codex/hooks.json") == golden("four.before")


def test_a_file_that_changes_meanwhile_is_read_again(box, monkeypatch):
    box.program("codex")
    path = box.write(".codex/hooks.json", "{}\n")
    real = crash.point
    seen: list[str] = []

    def meanwhile(name):
        if not seen:
            seen.append(name)
            box.write(".codex/hooks.json", '{\n  "new": 1\n}\n')
        real(name)

    monkeypatch.setattr(crash, "point", meanwhile)
    assert states(box.install("codex"), "hooks") == ["added"]
    assert seen
    assert box.json(".codex/hooks.json")["new"] == 1
    box.uninstall("codex")
    with open(path, encoding="utf-8") as file:
        assert file.read() == '{\n  "new": 1\n}\n'


def test_a_secret_beside_our_edit_is_not_kept_in_our_state(box):
    box.program("codex")
    box.write(".codex/hooks.json", '{\n  "env": {"KEY": "very-secret"}\n}\n')
    shown = json.dumps(box.install("codex", dry=True))
    box.install("codex")
    with open(os.path.join(box.data, "managed.json"), encoding="utf-8") as file:
        assert "very-secret" not in file.read() + shown


# --- any JSON at all ---

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
GROUPS = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.fixed_dictionaries({"command": WORDS}), max_size=2)}), max_size=2
)
FILES = st.dictionaries(WORDS.filter(lambda key: key not in ("hooks", "enabledPlugins")), VALUES, max_size=3).flatmap(
    lambda rest: st.fixed_dictionaries(
        {}, optional={"hooks": st.dictionaries(st.sampled_from(["Stop", "Other"]), GROUPS)}
    ).map(lambda hooks: {**rest, **hooks})
)


@given(FILES, st.sampled_from([None, 1, 2, 4, "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_file_gets_ours_keeps_its_own_and_gives_ours_back(value, indent, newline, tight):
    separators = (",", ":") if tight and indent is None else None
    text = json.dumps(value, indent=indent, separators=separators).replace("\n", newline)
    after, memory = hooksfile.add(text, WANTED)
    root = jsontext.parse(after).value
    assert {key: root[key] for key in value if key != "hooks"} == {
        key: kept for key, kept in value.items() if key not in ("hooks", "crossSessionInbound")
    } | ({"crossSessionInbound": "accept"} if "crossSessionInbound" in value else {})
    assert hooksfile.holds(after, WANTED)
    assert spans.undo(after, spans.between(text, after)) == text
    assert jsontext.parse(hooksfile.strip(after, memory)).value == value


@given(st.text(max_size=40))
def test_no_text_makes_the_reader_fail_otherwise(text):
    try:
        jsontext.parse(text)
    except Malformed:
        pass


@given(VALUES)
def test_the_reader_reads_what_json_reads(value):
    assert jsontext.parse(json.dumps(value, indent=2)).value == value


# --- Codex's list ---

ENTRY = toml_list.Entry("sandbox_workspace_write", "writable_roots", "/data dir")
TOML = [
    "",
    "# only a comment\n",
    "model = 'x'",
    "[sandbox_workspace_write]\nnetwork_access = true\n[other]\na = 1\n",
    "[sandbox_workspace_write]\nwritable_roots = []\n",
    "[sandbox_workspace_write] # mine\r\nwritable_roots = ['/a', \"/b\"] # two\r\n",
    "[sandbox_workspace_write]\nwritable_roots = [\n  '/a', # first\n  '/b',\n]\n[z]\n",
]


@pytest.mark.parametrize("text", TOML)
def test_the_list_gets_our_entry_and_gives_it_back(text):
    after, memory = toml_list.add(text, ENTRY)
    assert toml_list.holds(after, ENTRY)
    assert [line for line in text.splitlines() if "writable_roots" not in line and line not in after.splitlines()] == []
    assert toml_list._parse(toml_list.strip(after, memory)) == toml_list._parse(text)
    assert spans.undo(after, spans.between(text, after)) == text


@pytest.mark.parametrize(
    "text",
    [
        "sandbox_workspace_write = {writable_roots = ['/a']}\n",
        "sandbox_workspace_write.writable_roots = ['/a']\n",
        "[sandbox_workspace_write]\n'writable_roots' = ['/a']\n",
        "a = [\n",
    ],
)
def test_other_toml_is_refused(text):
    with pytest.raises(Malformed):
        toml_list.add(text, ENTRY)
