"""`ack`, `monitor`, `hook`: what harnesses and their models use."""

from __future__ import annotations

import os

from tt import output, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ack(args: dict[str, Any]) -> int:
    """What an envelope showed is received."""
    from bus.operations import offer

    return run.write(args, lambda ctx: offer.ack(ctx, args["token"]), need_room=False)


def monitor(args: dict[str, Any]) -> int:
    """Follow the caller's notify file, or show how to arm a monitor by hand."""
    from bus import identity
    from monitor import tail

    if args["print"]:
        caller = identity.caller(os.environ, os.getpid(), agent=args["agent"])
        output.result(args, tail.call_to_arm(os.environ, caller.harness), caller)
        return 0
    return tail.run(os.environ, path=args["path"], agent=args["agent"])


def hook(args: dict[str, Any]) -> int:
    """Run one hook by hand. `tt.main` calls it before anything is parsed: an unknown option must not exit 2."""
    from hooks import entry

    return entry.main(list(args["words"]))
