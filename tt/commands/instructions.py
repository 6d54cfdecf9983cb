"""`instructions show`, `edit`, `update`, `reset`: what agents are told, in layers."""

from __future__ import annotations

import os
import sys

from bus.errors import BusError
from tt import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tt.instructions import Layers


def show(args: dict[str, Any]) -> int:
    """The text for the caller's harness and role, or one layer of it."""
    from bus import identity

    caller = identity.caller(os.environ, os.getpid(), agent=args["agent"])
    layers = _layers(args)
    wanted = args["harness"] or caller.harness or "all"
    output.result(args, layers.show(wanted, args["scope"]), caller)
    return 0


def edit(args: dict[str, Any]) -> int:
    """Make the file of a layer if there is none, and open it for a person; an agent gets its path."""
    layers = _layers(args)
    result = layers.make(_scope(args), replace=args["replace"])
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor and sys.stdin.isatty() and sys.stdout.isatty():
        _open(editor, result["path"])
    else:
        result["hint"] = "edit this file: what it says is what agents are told from now on"
    output.result(args, result)
    return 0


def update(args: dict[str, Any]) -> int:
    """Bring an unedited layer up to date; an edited one only with --replace."""
    output.result(args, _layers(args).update(_scope(args), replace=args["replace"]))
    return 0


def reset(args: dict[str, Any]) -> int:
    """Remove the file of a layer, which must be named."""
    if not args["user"] and not args["project"]:
        raise BusError("usage", "which layer? --user or --project", "tt instructions reset --help")
    output.result(args, _layers(args).reset(_scope(args)))
    return 0


def _scope(args: dict[str, Any]) -> str:
    """The layer meant."""
    return "project" if args["project"] else "user"


def _layers(args: dict[str, Any]) -> Layers:
    """The layers of the caller's place."""
    from tt import instructions

    return instructions.Layers(os.environ, args["path"])


def _open(editor: str, path: str) -> None:
    """Let the person edit. Its exit code says nothing about the file."""
    import shlex
    import subprocess

    try:
        subprocess.run([*shlex.split(editor), path], check=False)
    except (OSError, ValueError) as error:
        raise BusError("cli_error", f"cannot start the editor {editor!r}: {error}", f"edit {path}") from error
