"""`tt self-update`: finds out how tt was installed and runs, or prints, the command that updates it.

A checkout is the developer's: it is never changed, the answer is `git pull`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from bus.errors import BusError
from tt import __version__, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

PROJECT = "talking-stick"
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(args: dict[str, Any]) -> int:
    """Update, or show how."""
    found = detect(sys.prefix, PACKAGES)
    manager = args["manager"] or found
    if found == "checkout":
        raise BusError("cli_error", f"this tt runs from a checkout: {PACKAGES}", f"git -C {PACKAGES} pull")
    words = command(manager, sys.executable, source(PACKAGES))
    result: Json = {
        "status": "self_update",
        "manager": manager,
        "detected": found,
        "command": words,
        "version": __version__,
    }
    if args["print"]:
        output.result(args, {**result, "ran": False})
        return 0
    if shutil.which(words[0]) is None:
        raise BusError("cli_error", f"{words[0]} is not on PATH", "tt self-update --print", command=words)
    _carry_out(words)
    hint = "tt install --all brings hooks and skill up to date"
    output.result(args, {**result, "ran": True, "hint": hint})
    return 0


def _carry_out(words: list[str]) -> None:
    """Run the manager; what it says goes to stderr, since stdout is for the result."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    except OSError as error:
        raise BusError("cli_error", f"cannot run {words[0]}: {error.strerror}", command=words) from error
    if done.returncode:
        raise BusError(
            "cli_error", f"{words[0]} ended with code {done.returncode}", "see what it said above", command=words
        )


def detect(prefix: str, packages: str) -> str:
    """`checkout`, `pipx`, `uv` or `pip`, by what each leaves behind."""
    info = _info(packages)
    editable = _json(os.path.join(info, "direct_url.json")).get("dir_info", {}) if info else {}
    if os.path.exists(os.path.join(packages, "pyproject.toml")) or (
        isinstance(editable, dict) and editable.get("editable")
    ):
        return "checkout"
    if os.path.exists(os.path.join(prefix, "pipx_metadata.json")):
        return "pipx"
    if os.path.exists(os.path.join(prefix, "uv-receipt.toml")):
        return "uv"
    return "pip"


def source(packages: str) -> str:
    """What pip has to be told: the project's name, or where it came from if that was no index."""
    info = _info(packages)
    origin = _json(os.path.join(info, "direct_url.json")) if info else {}
    url = origin.get("url")
    if not isinstance(url, str):
        return PROJECT
    vcs = origin.get("vcs_info")
    return f"{vcs['vcs']}+{url}" if isinstance(vcs, dict) and isinstance(vcs.get("vcs"), str) else url


def command(manager: str, python: str, wanted: str) -> list[str]:
    """The command of one manager. pipx and uv remember themselves where the program came from."""
    if manager == "pipx":
        return ["pipx", "upgrade", PROJECT]
    if manager == "uv":
        return ["uv", "tool", "upgrade", PROJECT]
    return [python, "-m", "pip", "install", "--upgrade", wanted]


def _info(packages: str) -> str | None:
    """The directory with what the installer wrote about us."""
    try:
        names = sorted(os.listdir(packages))
    except OSError:
        return None
    own = [name for name in names if name.startswith(PROJECT.replace("-", "_") + "-") and name.endswith(".dist-info")]
    return os.path.join(packages, own[-1]) if own else None


def _json(path: str) -> Json:
    """An object from a file; empty if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
