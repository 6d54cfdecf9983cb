"""`install` and `uninstall`: words into the arguments of `tt.install.engine`."""

from __future__ import annotations

import os

from bus.errors import BusError
from tt import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_WISHES = ("copy", "link", "overwrite", "no_guard", "settings", "accept_inbound", "allow_data_dir")


def install(args: dict[str, Any]) -> int:
    """Set up the named harnesses, or all."""
    from tt.install import engine, specs, work

    names = _names(args, specs.NAMES, "tt install --help")
    wishes = {name: bool(args["replace" if name == "overwrite" else name]) for name in _WISHES}
    options = work.Options(**wishes)
    output.result(args, engine.install(os.environ, names, options, dry=args["print"]))
    return 0


def uninstall(args: dict[str, Any]) -> int:
    """Take back what install wrote for the named harnesses, or all; the shared skill where it is named."""
    from tt.install import engine, specs

    shared = args["all"] or args["shared"] or specs.AGENTS in args["harness"]
    given = tuple(name for name in args["harness"] if name != specs.AGENTS)
    only_shared = shared and not given and not args["all"]
    names = [] if only_shared else _names({**args, "harness": given}, specs.NAMES, "tt uninstall --help")
    output.result(args, engine.uninstall(os.environ, names, shared=shared, dry=args["print"]))
    return 0


def _names(args: dict[str, Any], every: tuple[str, ...], help_: str) -> list[str]:
    """The harnesses meant, each once, in the order of the table."""
    if args["all"] and args["harness"]:
        raise BusError("usage", "name harnesses or give --all, not both", help_)
    if not args["all"] and not args["harness"]:
        raise BusError("usage", f"which harness? One of {', '.join(every)}, or --all", help_)
    from tt.install.specs import ALIASES

    meant = {ALIASES.get(name, name) for name in args["harness"]}
    return [name for name in every if args["all"] or name in meant]
