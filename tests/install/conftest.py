"""`box`: a scratch home with chosen harnesses, and the installer run in it. Nothing of the developer's is near."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from tests.kit.world import ROOT
from tt.install import engine
from tt.install.work import Options

HARNESSES = ("codex", "grok", "opencode", "agy", "gemini")

# Stands for `claude`: keeps its records where the real one does, and rewrites settings in its own style.
FAKE_CLAUDE = r"""#!PYTHON
import json, os, sys
root = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ["HOME"], ".claude")
words = sys.argv[1:]
with open(os.path.join(os.path.dirname(os.environ["HOME"]), "calls"), "a") as log: log.write(" ".join(words) + "\n")
if words == ["--version"]: print("VERSION (Claude Code)"); sys.exit(0)
if "BROKEN": print("error: unknown command 'plugin'", file=sys.stderr); sys.exit(1)
def change(name, step):
    path = os.path.join(root, name)
    try: value = json.load(open(path))
    except FileNotFoundError: value = {}
    except ValueError: print("Invalid JSON syntax", file=sys.stderr); sys.exit(1)
    step(value); os.makedirs(os.path.dirname(path), exist_ok=True)
    json.dump(value, open(path, "w"), indent=2, sort_keys=True)
N, P = "talking-stick", "talking-stick@talking-stick"
known, plugins = "plugins/known_marketplaces.json", "plugins/installed_plugins.json"
if words[:3] == ["plugin", "marketplace", "add"]:
    source = {"source": {"source": "directory", "path": words[3]}}
    change("settings.json", lambda v: v.setdefault("extraKnownMarketplaces", {}).update({N: source}))
    change(known, lambda v: v.update({N: source}))
elif words[:2] in (["plugin", "install"], ["plugin", "update"]):
    where = json.load(open(os.path.join(root, known)))[N]["source"]["path"]
    version = json.load(open(os.path.join(where, N, ".claude-plugin/plugin.json")))["version"]
    change(plugins, lambda v: v.setdefault("plugins", {}).update({P: [{"scope": "user", "version": version}]}))
    change("settings.json", lambda v: v.setdefault("enabledPlugins", {}).update({P: True}))
elif words[:2] == ["plugin", "uninstall"]:
    change(plugins, lambda v: v["plugins"].pop(P))
    change("settings.json", lambda v: v.setdefault("enabledPlugins", {}).pop(P, None))
elif words[:3] == ["plugin", "marketplace", "remove"]:
    change(known, lambda v: v.pop(N))
    change("settings.json", lambda v: v.setdefault("extraKnownMarketplaces", {}).pop(N, None))
"""


class Box:
    """A home, a data directory and a PATH."""

    def __init__(self, top) -> None:
        self.top = os.path.realpath(top)
        self.home, self.data, self.bin = (os.path.join(self.top, name) for name in ("home", "data", "bin"))
        for folder in (self.home, self.bin):
            os.makedirs(folder)
        self.env = {"PATH": self.bin, "HOME": self.home, "TALKING_STICK_DATA_DIR": self.data}

    def path(self, *parts: str) -> str:
        return os.path.join(self.home, *parts)

    def write(self, name: str, text: str | bytes, mode: int = 0o644) -> str:
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        os.chmod(path, mode)
        return path

    def read(self, name: str) -> str:
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def json(self, name: str):
        return json.loads(self.read(name))

    def program(self, name: str, text: str = "#!/bin/sh\nexit 0\n") -> None:
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def claude(self, version: str = "2.1.332", *, broken: bool = False) -> None:
        text = FAKE_CLAUDE.replace("PYTHON", sys.executable).replace("VERSION", version)
        self.program("claude", text.replace("BROKEN", "yes" if broken else ""))

    def calls(self) -> list[str]:
        """What the fake client was told to do so far, and forget it."""
        try:
            found = self.read("../calls").splitlines()
        except FileNotFoundError:
            return []
        os.unlink(self.path("../calls"))
        return [line for line in found if line != "--version"]

    def everything(self) -> None:
        """All harnesses but Claude are there."""
        for name in HARNESSES:
            self.program(name)

    def install(self, *names: str, dry: bool = False, **options):
        return engine.install(self.env, list(names), Options(**options), dry=dry)

    def uninstall(self, *names: str, shared: bool = False, dry: bool = False):
        return engine.uninstall(self.env, list(names), shared=shared, dry=dry)

    def tt(self, *words: str, **env: str):
        """The real command, in a process of its own."""
        clean = {**self.env, "PYTHONPATH": ROOT, "PATH": f"{self.bin}:{os.defpath}", **env}
        command = [sys.executable, "-m", "tt", *words]
        return subprocess.run(command, env=clean, cwd=self.top, capture_output=True, text=True, timeout=60)

    def tree(self) -> dict[str, tuple[int, str | bytes]]:
        """Every file, link and directory of the home: mode and content."""
        found: dict[str, tuple[int, str | bytes]] = {}
        for place, folders, names in os.walk(self.home):
            for name in folders + names:
                path = os.path.join(place, name)
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                if os.path.islink(path):
                    found[path] = (0, "-> " + os.readlink(path))
                elif os.path.isdir(path):
                    found[path] = (mode, "directory")
                else:
                    with open(path, "rb") as file:
                        found[path] = (mode, file.read())
        return found


def states(result, what: str | None = None) -> list[str]:
    return [line["state"] for line in result["results"] if what in (None, line["what"])]


@pytest.fixture
def box(tmp_path) -> Box:
    return Box(tmp_path)
