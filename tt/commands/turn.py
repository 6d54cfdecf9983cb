"""`release`, `pass`, `assign`, `take`. The handoff is checked before the bus is opened."""

from __future__ import annotations

import os

from bus.errors import BusError
from tt import body, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Refusals that mean: this word is nobody here. Only then may it be a directory.
_NOBODY = ("unknown_recipient", "unknown_target", "unknown_member", "not_joined", "room_not_found")


def release(args: dict[str, Any]) -> int:
    """Hand the turn over to whoever is next."""
    from bus.operations import turns

    handoff = body.handoff(args)
    return run.write(args, lambda ctx: turns.release(ctx, handoff, turn=args["turn"]))


def pass_on(args: dict[str, Any]) -> int:
    """Release, or assign when a target is named; a lone word that names a member is the target."""
    handoff = body.handoff(args)
    word = args["path"]
    if args["to"] is not None or word is None or not _may_be_name(word):
        return _pass(args, handoff, args["to"])
    try:
        return _pass({**args, "path": None}, handoff, word)
    except BusError as error:
        if error.code not in _NOBODY or not os.path.exists(word):
            raise
    return _pass(args, handoff, None)


def _pass(args: dict[str, Any], handoff: dict[str, Any], to: str | None) -> int:
    """Pass the turn of the room at the path."""
    from bus.operations import turns

    return run.write(args, lambda ctx: turns.pass_on(ctx, handoff, to=to, turn=args["turn"]))


def _may_be_name(word: str) -> bool:
    """Names and ids are text, have no slash and don't start with a dot; paths to elsewhere may."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return "/" not in word and os.sep not in word and not word.startswith((".", "~"))


def assign(args: dict[str, Any]) -> int:
    """Hand the turn to one member, or to the next one."""
    from bus.operations import turns

    handoff = body.handoff(args)
    asked = args["operator_requested"]
    return run.write(
        args,
        lambda ctx: turns.assign(ctx, args["target"], handoff, turn=args["turn"], operator_requested=asked),
    )


def take(args: dict[str, Any]) -> int:
    """Take over a turn whose owner is gone, timed out or idle."""
    from monitor import granting

    reason = body.line(args["reason"], "reason")
    asked, force = args["operator_requested"], args["force"]
    return run.write(args, lambda ctx: granting.take(ctx, reason=reason, operator_requested=asked, force=force))
