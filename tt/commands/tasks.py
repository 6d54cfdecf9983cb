"""`delegate`, `tickets …`, `ask`, `answer`, `asks …`. Texts are checked before the bus is opened."""

from __future__ import annotations

from bus import limits
from bus.errors import BusError
from tt import body, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.enter import Context
    from bus.operations.outcome import Outcome


def _title(words: tuple[str, ...], what: str) -> str:
    """The words of a title or question."""
    return body.checked(" ".join(words), limits.MESSAGE_BYTES, what)


def _text(args: dict[str, Any], name: str, what: str) -> str | None:
    """A text by an option or from stdin; None where neither is given."""
    given: str | None = args[name]
    if given is None and not args.get("stdin"):
        return None
    words = () if given is None else (given,)
    return body.message({"body": words, "stdin": args.get("stdin", False)}, what=what)


def delegate(args: dict[str, Any]) -> int:
    """Compose or assign."""
    from bus.operations import tasks

    title, text = _title(args["title"], "title"), _text(args, "body", "body") or ""
    new = tasks.New(title, text, args["to"], args["priority"], args["thread"])
    return run.write(args, lambda ctx: tasks.delegate(ctx, new), need_room=False)


def list_tickets(args: dict[str, Any]) -> int:
    """Active tickets, or all."""
    from bus.operations import tasks

    filters = {name: args[name] for name in ("mine", "state", "assignee")}
    return run.read(args, lambda ctx: tasks.listing(ctx, **filters, every=args["all"]), need_room=False)


def show(args: dict[str, Any]) -> int:
    """One ticket."""
    from bus.operations import tasks

    return run.read(args, lambda ctx: tasks.show(ctx, args["ticket_id"]), need_room=False)


def _step(args: dict[str, Any], verb: str, text: str | None = None) -> int:
    """One transition."""
    from bus.operations import tasks

    def change(ctx: Context) -> Outcome:
        return tasks.step(ctx, verb, args["ticket_id"], to=args.get("to"), text=text)

    return run.write(args, change, need_room=False)


def assign(args: dict[str, Any]) -> int:
    """To somebody, or again to the same one."""
    return _step(args, "assign")


def start(args: dict[str, Any]) -> int:
    """Begin."""
    return _step(args, "start")


def give_back(args: dict[str, Any]) -> int:
    """Return with a result."""
    text = _text(args, "result", "result")
    if text is None:
        raise BusError("invalid_body", "return needs a result", "--result TEXT, or --stdin")
    return _step(args, "return", text)


def done(args: dict[str, Any]) -> int:
    """Accept."""
    return _step(args, "done")


def cancel(args: dict[str, Any]) -> int:
    """Call off."""
    text = _text(args, "reason", "reason")
    if text is None:
        raise BusError("invalid_body", "cancel needs a reason", "--reason TEXT")
    return _step(args, "cancel", text)


def ask(args: dict[str, Any]) -> int:
    """Put a question."""
    from bus.operations import tasks

    question, context = _title(args["question"], "question"), _text(args, "context", "context")
    return run.write(
        args,
        lambda ctx: tasks.ask(ctx, question, options=args["option"], context=context, to=args["to"]),
        need_room=False,
    )


def answer(args: dict[str, Any]) -> int:
    """Answer one."""
    from bus.operations import tasks

    given = {"body": args["words"], "stdin": args["stdin"]}
    text = body.message(given, what="answer") if args["words"] or args["stdin"] else None
    return run.write(args, lambda ctx: tasks.answer(ctx, args["ask_id"], text, args["choose"]), need_room=False)


def list_asks(args: dict[str, Any]) -> int:
    """Open questions, or all."""
    from bus.operations import tasks

    return run.read(args, lambda ctx: tasks.asks(ctx, human=args["human"], every=args["all"]), need_room=False)


def escalate(args: dict[str, Any]) -> int:
    """Hand it to people."""
    from bus.operations import tasks

    return run.write(args, lambda ctx: tasks.escalate(ctx, args["ask_id"]), need_room=False)
