"""What we installed, so that we can tell ours from theirs later: `<data>/managed.json`.

    files   real path → {after, absent, spans, memory}: how to undo the edit of a foreign file
    owned   path → digest of a whole file that is ours
    skills  path → digest of the copy we put there ("link" for a link)
    dirs    directories that we made, removed again once they are empty
    choices harness → what was asked for, kept over upgrades
    layers  path → digest of an instructions file as we last wrote it

A lost or broken file costs exactness (we fall back to the marker), never a foreign entry.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

NAME = "managed.json"
PARTS = ("files", "owned", "skills", "choices", "layers")


class Managed:
    """The state as loaded; `save` writes it if it changed."""

    def __init__(self, data: str) -> None:
        """Load it from the data directory; empty if there is none or it is unreadable."""
        self.path = os.path.join(data, NAME)
        stored = _load(self.path)
        self.files, self.owned, self.skills, self.choices, self.layers = (_object(stored.get(name)) for name in PARTS)
        dirs = stored.get("dirs")
        self.dirs: list[str] = [path for path in dirs if isinstance(path, str)] if isinstance(dirs, list) else []
        self._saved = self._text() if stored else _NOTHING

    def choice(self, harness: str) -> Json:
        """What was asked for one harness; may be changed in place."""
        chosen: Json = self.choices.setdefault(harness, {})
        return chosen

    def save(self) -> None:
        """Write it whole, by temp file and rename, for its owner only; no file where nothing is ours."""
        text = self._text()
        if text == self._saved:
            return
        if text == _NOTHING:
            os.unlink(self.path)
            self._saved = text
            return
        temp = self.path + ".tmp"
        with open(temp, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, self.path)
        self._saved = text

    def _text(self) -> str:
        """As it is stored; empty parts are left out."""
        parts = {name: getattr(self, name) for name in PARTS}
        parts["choices"] = {name: chosen for name, chosen in self.choices.items() if chosen}
        kept = {name: part for name, part in parts.items() if part}
        return json.dumps({"version": 1, **kept, **({"dirs": self.dirs} if self.dirs else {})}, indent=1) + "\n"


_NOTHING = '{\n "version": 1\n}\n'


def _private(path: str, flags: int) -> int:
    """Open for the owner only."""
    return os.open(path, flags, 0o600)


def _load(path: str) -> Json:
    """The stored object, or an empty one."""
    try:
        with open(path, encoding="utf-8") as file:
            return _object(json.load(file))
    except (OSError, ValueError):
        return {}


def _object(value: object) -> Json:
    """The value if it is an object."""
    return value if isinstance(value, dict) else {}
