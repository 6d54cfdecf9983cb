"""What agents are told: three layers, each replacing sections of the one below.

bundled (part of the program) → user (`<data>/instructions.md`) → project
(`.talking-stick/instructions.md`). A section is `## <harness>` or `## role <role>`; everything
else is for all. Any other `##` heading ends the section before it, so that foreign headings
never end up in a harness's part.

Keeps true: no file is made before the first edit; a file that nobody edited follows the layer
below by itself; an edited one is overwritten only with `replace`.
"""

from __future__ import annotations

import os

from bus import datadir, places
from bus.errors import BusError
from bus.records import Record
from tt.install import managed, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Result = dict[str, Any]

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts", "instructions.md")
HARNESSES = ("claude", "codex", "grok", "opencode", "antigravity", "gemini")
ROLES = ("expo", "station", "sous")
SCOPES = ("bundled", "user", "project")
MOST_BYTES = 256 * 1024


class Section(Record):
    """`key`: "" for the beginning, a harness, `role <role>`, or another heading as it stands there."""

    key: str
    text: str

    @property
    def harness(self) -> str | None:
        """The harness that it is for."""
        return self.key if self.key in HARNESSES else None

    @property
    def role(self) -> str | None:
        """The role that it is for."""
        word, _, role = self.key.partition(" ")
        return role if word == "role" and role in ROLES else None


def sections(text: str) -> list[Section]:
    """The text in parts. Headings inside fenced code are none."""
    found = [Section("", "")]
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and (not fence or mark == fence):
            fence = "" if fence else mark
        if not fence and line.startswith("## "):
            found.append(Section(_key(line[3:]), ""))
        found[-1].text += line
    return [section for section in found if section.text.strip()]


def _key(heading: str) -> str:
    """A heading's name: harnesses and roles in lower case, others as written."""
    words = heading.strip().rstrip("#").strip()
    lower = " ".join(words.lower().split())
    known = lower in HARNESSES or Section(lower, "").role
    return lower if known else words


def merged(*texts: str) -> list[Section]:
    """The layers in one: a section of a later text replaces the one with its name."""
    parts: dict[str, Section] = {}
    for text in texts:
        parts.update({section.key: section for section in sections(text)})
    return list(parts.values())


def chosen(parts: list[Section], harness: str, role: str | None) -> str:
    """What one harness in one role is told; the role last. `all` is everything."""
    if harness == "all":
        wanted = parts
    else:
        common = [part for part in parts if not part.harness and not part.role]
        wanted = common + [part for part in parts if part.harness == harness]
        wanted += [part for part in parts if part.role and part.role == role]
    return "\n\n".join(part.text.strip() for part in wanted) + "\n"


class Layers:
    """The layers as seen from one place."""

    def __init__(self, env: Mapping[str, str], path: str | None) -> None:
        """Find the project; nothing is made or changed."""
        self.env = env
        self.data = datadir.data_dir(env)
        self.managed = managed.Managed(self.data)
        self.place = _place(env, path)
        root = self.place.root if self.place else places.absolute(path or os.curdir)
        self.paths = {
            "user": os.path.join(self.data, "instructions.md"),
            "project": os.path.join(root, ".talking-stick", "instructions.md"),
        }

    def role(self) -> str | None:
        """The role that the place gives: that of the main worktree, or of a station."""
        named = self.env.get("TT_STATION") or self.env.get("HANDS_ID") or ""
        hint = named or (self.place.station_hint if self.place else None)
        if not hint:
            return None
        return hint if hint in ("expo", "sous") else "station"

    def show(self, harness: str, scope: str) -> Result:
        """The text for a harness, of all layers or of one, and where the layers are."""
        role = self.role()
        texts = {name: self._text(name) for name in SCOPES}
        if scope == "effective":
            text = chosen(merged(*(texts[name] or "" for name in SCOPES)), harness, role)
        else:
            text = chosen(merged(texts[scope] or ""), harness, role) if texts[scope] else ""
        layers = [{"scope": name, "path": self.paths[name], "state": self.state(name)} for name in ("user", "project")]
        return {
            "status": "instructions",
            "harness": harness,
            "role": role,
            "scope": scope,
            "text": text,
            "layers": layers,
        }

    def state(self, scope: str) -> str:
        """`none`, `unedited`, `edited`, or `update_available`: edited, and the layer below has changed since."""
        text = _read(self.paths[scope])
        if text is None:
            return "none"
        record = self._record(scope)
        if record.get("written") == spans.digest(text):
            return "unedited"
        return "update_available" if record and record.get("below") != spans.digest(self._below(scope)) else "edited"

    def make(self, scope: str, *, replace: bool) -> Result:
        """The file of a layer, as a copy of the layer below if there is none or with `replace`."""
        state = self.state(scope)
        if state in ("none", "unedited") or replace:
            return self.update(scope, replace=True, make=True)
        return self._told(scope, "already_present")

    def update(self, scope: str, *, replace: bool, make: bool = False) -> Result:
        """Follow the layer below. An edited file needs `replace`; none is made unless `make`."""
        state = self.state(scope)
        if state == "none" and not make:
            return self._told(scope, "already_absent")
        if state in ("edited", "update_available") and not replace:
            return self._told(scope, "update_available" if state == "update_available" else "kept")
        below = self._below(scope)
        if _read(self.paths[scope]) == below:
            return self._told(scope, "already_present")
        self._write(scope, below)
        return self._told(scope, "added" if state == "none" else "updated")

    def reset(self, scope: str) -> Result:
        """Remove the file of a layer."""
        path = self.paths[scope]
        there = os.path.exists(path)
        if there:
            try:
                os.unlink(path)
            except OSError as error:
                raise datadir.store_error(error, path) from error
        self.managed.layers.pop(path, None)
        if there:
            self.managed.save()
            _rmdir(os.path.dirname(path) if scope == "project" else "")
        return self._told(scope, "removed" if there else "already_absent")

    def _text(self, scope: str) -> str | None:
        """What a layer says: an unedited file says what the layer below says now."""
        if scope == "bundled":
            return bundled()
        return self._below(scope) if self.state(scope) == "unedited" else _read(self.paths[scope])

    def _below(self, scope: str) -> str:
        """The text that a new file of this layer starts from."""
        if scope == "user":
            return bundled()
        return "".join(part.text for part in merged(bundled(), self._text("user") or ""))

    def _record(self, scope: str) -> dict[str, Any]:
        """What we remember of the file that we wrote."""
        record = self.managed.layers.get(self.paths[scope])
        return record if isinstance(record, dict) else {}

    def _write(self, scope: str, text: str) -> None:
        """Write the file of a layer, and remember that it is as we wrote it."""
        path = self.paths[scope]
        datadir.ensure_private(self.data)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            temp = path + ".tmp"
            with open(temp, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temp, path)
        except OSError as error:
            raise datadir.store_error(error, path) from error
        self.managed.layers[path] = {"written": spans.digest(text), "below": spans.digest(text)}
        self.managed.save()

    def _told(self, scope: str, state: str) -> Result:
        """The result of a change."""
        return {"status": "instructions", "scope": scope, "path": self.paths[scope], "state": state}


def bundled() -> str:
    """The text that comes with the program."""
    with open(BUNDLED, encoding="utf-8") as file:
        return file.read()


def _place(env: Mapping[str, str], path: str | None) -> places.Place | None:
    """The caller's place; None where there is none, which must not keep anybody from reading."""
    try:
        return places.find(path, env)
    except BusError:
        return None


def _read(path: str) -> str | None:
    """A layer's file, None if there is none; one that is no text or far too long is refused."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BusError("invalid_input", f"cannot read {path}: {error}") from error
    if len(data) > MOST_BYTES:
        raise BusError("invalid_input", f"{path} is longer than {MOST_BYTES} bytes")
    return text


def _rmdir(path: str) -> None:
    """Remove a directory if it is empty."""
    try:
        if path:
            os.rmdir(path)
    except OSError:
        pass
