"""The one path that every command takes.

enter → operation → carry out its wakes → print and flush → mark received → sweep. What the
operation committed stays: after it nothing changes the exit code, and SIGTERM, SIGINT and
SIGHUP are held back until the end. Nothing is marked that was not flushed.
"""

from __future__ import annotations

import os
import sys

from bus import clock, crash
from bus.errors import BusError
from tt import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any, Self

    from bus.deliver.wake import Delivery
    from bus.operations.enter import Context
    from bus.operations.outcome import Outcome

    Args = dict[str, Any]
    Operation = Callable[[Context], Outcome]
else:
    import _signal as signal  # the C part: `signal` itself loads enum, 2 ms

HELD = ("SIGTERM", "SIGINT", "SIGHUP")


def context(args: Args, *, make: bool = False, need_room: bool = True, exact: bool = False) -> Context:
    """Find bus, room and caller of this call. BusError if there is none."""
    from bus.operations import enter

    return enter.enter(args["path"], agent=args["agent"], make=make, need_room=need_room, env=os.environ, exact=exact)


def write(args: Args, operation: Operation, *, make: bool = False, need_room: bool = True, exact: bool = False) -> int:
    """Run a command that changes something. Raises BusError while nothing is changed; else 0."""
    ctx = context(args, make=make, need_room=need_room, exact=exact)
    try:
        with Hold():
            return finish(args, ctx, operation(ctx))
    finally:
        ctx.close()


def read(args: Args, operation: Operation, *, need_room: bool = True) -> int:
    """Run a command that only looks: no wakes of its own, no receipt, no sweep."""
    ctx = context(args, need_room=need_room)
    try:
        return shown(args, ctx, operation(ctx))
    finally:
        ctx.close()


def shown(args: Args, ctx: Context, outcome: Outcome) -> int:
    """Print what was only looked at, and ring for others. Always 0."""
    output.result(args, outcome.result, ctx.caller)
    _try("look after others", lambda: _after_read(ctx))
    return 0


def show(args: Args, operation: Callable[[], Outcome]) -> int:
    """Run a command that needs no bus."""
    output.result(args, operation().result)
    return 0


def finish(args: Args, ctx: Context, outcome: Outcome, settle: Callable[[], None] | None = None) -> int:
    """Everything after the commit. Always 0: each step is tried, none can undo what is done.

    `settle` marks what was flushed, where that is more than the outcome's receipt.
    """
    served: list[Delivery] = []
    _try("wake others", lambda: served.extend(_wake(ctx, outcome)))
    crash.point("before_print")
    if _print(args, ctx, outcome):
        _try("mark as read", settle or (lambda: _mark(ctx, outcome)))
    else:
        output.note(args, {"warning": "not_printed"}, "done, but the result could not be printed")
        _try("give it back", lambda: _take_back(ctx, outcome))
    _try("sweep", lambda: _sweep(ctx, served))
    return 0


def _wake(ctx: Context, outcome: Outcome) -> list[Delivery]:
    """Ring, append, submit; adds what became of it to the result."""
    from bus.deliver import carry_out

    return carry_out(ctx.bus, outcome)


def _take_back(ctx: Context, outcome: Outcome) -> None:
    """Nobody read it: a turn that it gave, and shared mail that it took, go back."""
    if outcome.receipt is not None:
        from monitor import granting

        granting.take_back(ctx, outcome)


def _print(args: Args, ctx: Context, outcome: Outcome) -> bool:
    """Print the result; as JSON if its text can't be made, since what is done must be told."""
    try:
        return output.result(args, outcome.result, ctx.caller)
    except Exception as error:  # noqa: BLE001  # a mistake in a text must not look like a refusal
        _report("show it as text", error)
        return output.result({"json": True}, outcome.result, ctx.caller)


def _mark(ctx: Context, outcome: Outcome) -> None:
    """Mark what was flushed."""
    from bus.operations import receive

    receive.settle(ctx.bus, outcome.receipt, clock.now())


def _sweep(ctx: Context, served: list[Delivery]) -> None:
    """Repair what others left half done."""
    from bus import deliver, places

    deliver.after_write(ctx.bus, places.data_dir(ctx.env), served)


def _after_read(ctx: Context) -> None:
    """Ring for what is due, and note that the caller was seen."""
    from bus import deliver
    from bus.operations import present

    deliver.after_read(ctx.bus)
    present.refresh(ctx)


def emitter(args: Args, ctx: Context) -> Callable[[dict[str, Any]], bool]:
    """What a wait prints its one result with: True once it was flushed."""
    return lambda value: output.result(args, value, ctx.caller)


def item_emitter(args: Args, ctx: Context) -> Callable[[dict[str, Any]], bool]:
    """What a follower prints each event with: True once it was flushed."""
    return lambda value: output.item(args, value, ctx.caller)


def _try(what: str, step: Callable[[], object]) -> None:
    """Do one step after the commit; a failure is said on stderr and changes nothing."""
    try:
        step()
    except Exception as error:  # noqa: BLE001  # the commit stands, so the code must be 0
        try:
            _tell(what, error)
        except Exception:  # noqa: BLE001, S110  # too few descriptors to load what tells it: the commit still stands
            pass


def _tell(what: str, error: Exception) -> None:
    """What is expected in one line; only what is not gets a log."""
    from tt import main

    refused = error if isinstance(error, BusError) else main.expected(error)
    if refused is None:
        _report(what, error)
    else:
        _warn(what, refused.message)


def _report(what: str, error: Exception) -> None:
    """Write an unexpected failure down and say where."""
    from tt import crashlog

    _warn(what, f"{type(error).__name__}, details are in {crashlog.write(sys.argv[1:], error)}")


def _warn(what: str, why: str) -> None:
    """A warning that is no result and no error."""
    words = f"done, but could not {what}: {why}"
    output.note(output.flags(sys.argv[1:]), {"warning": what.replace(" ", "_"), "message": words}, words)


class Hold:
    """Hold signals back while it is open, so that a commit is always followed by its wakes.

    A handler, not a mask: children (guardians, native wakes) would inherit a mask over exec.
    A signal that is ignored already stays ignored.
    """

    def __init__(self) -> None:
        """Nothing is held yet."""
        self.before: dict[int, Any] = {}
        self.arrived: list[int] = []

    def __enter__(self) -> Self:
        """Note signals from now on instead of dying."""
        for name in HELD:
            number = getattr(signal, name, None)
            if number is None or signal.getsignal(number) is signal.SIG_IGN:
                continue
            try:
                self.before[number] = signal.signal(number, self._note)
            except ValueError:  # not the main thread: nobody can be interrupted there
                return self
        return self

    def __exit__(self, *_error: object) -> None:
        """As before. What arrived is over: the command is done, its code stays 0."""
        for number, handler in self.before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _note(self, number: int, _frame: object) -> None:
        """Remember that it came."""
        self.arrived.append(number)
