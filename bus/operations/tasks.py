"""Tickets and asks: compose, assign, start, return, finish; ask, answer, escalate.

Kept true: every change is a compare-and-set on the state it expects, and the loser is told who
won; done and cancelled are final; a refused delegation writes nothing and wakes nobody.
"""

from __future__ import annotations

from bus import clock, ids, limits, quickjson
from bus.errors import BusError
from bus.operations import present, receive, recipients, where
from bus.operations.enter import room_or_bus
from bus.operations.outcome import Outcome, Wakes
from bus.records import Record
from bus.rules import roles, tasks
from bus.store import agents, db, events, mail, tickets, wakes
from bus.store.events import Draft
from bus.store.tickets import ASK, TICKET, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from bus.operations.enter import Context

TITLE_CHARS = 200
OPTIONS_MOST = 20
LISTED_MOST = 200


class New(Record):
    """What is delegated: title, text, to whom, how urgent."""

    title: str
    body: str = ""
    to: str | None = None
    priority: str = "normal"
    thread: str | None = None


def delegate(ctx: Context, new: New) -> Outcome:
    """Compose a ticket (queued for the expo) or assign one. Raises delegation_refused, unknown_recipient."""
    who = where.actor(ctx)
    refused = roles.delegation_refused(who.role, assigns=new.to is not None)
    if refused:
        raise BusError("delegation_refused", refused, "ask instead: `tt ask …`", role=who.role)
    title = _title(new.title)
    _sized(new.body)
    if new.priority not in tasks.PRIORITIES:
        raise BusError("invalid_input", f"there is no priority {new.priority[:40]!r}", ", ".join(tasks.PRIORITIES))
    box = recipients.resolve(ctx, new.to).box if new.to is not None else None
    task = _new(ctx, TICKET, title, new.body, tasks.ASSIGNED if box else tasks.QUEUED, box)
    task.priority, task.thread = new.priority, new.thread
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        tickets.add(con, task)
        told = _tell(con, ctx, task, box or mail.station_box(roles.EXPO))
    return Outcome(_result(ctx, task, "delegated"), told)


def _title(text: str) -> str:
    """One bounded line."""
    line = " ".join(text.split())
    if not line:
        raise BusError("invalid_body", "a title is needed", "say in a few words what is to be done")
    if len(line) > TITLE_CHARS:
        raise BusError("invalid_body", f"a title has at most {TITLE_CHARS} characters", "put the rest into --body")
    return line


def _sized(text: str) -> None:
    """Bodies and results are as long as messages."""
    if len(text.encode()) > limits.MESSAGE_BYTES:
        raise BusError("message_too_large", f"at most {limits.MESSAGE_BYTES} bytes", limit=limits.MESSAGE_BYTES)


def _new(ctx: Context, kind: str, title: str, body: str, state: str, assignee: str | None) -> Task:
    """A row that nobody has changed yet."""
    return Task(
        id=ids.new_id("t" if kind == TICKET else "q", 4),
        kind=kind,
        title=title,
        body=body,
        state=state,
        creator=ctx.me,
        creator_station=ctx.station(),
        assignee=assignee,
        holder=None,
        priority="normal",
        thread=None,
        options="[]",
        result=None,
        result_by=None,
        at=ctx.now,
        changed_at=ctx.now,
    )


def _tell(con: sqlite3.Connection, ctx: Context, task: Task, box: str | None, *, kind: str | None = None) -> Wakes:
    """The event of a change, addressed to whom it concerns; it may join an open turn."""
    body: dict[str, Any] = {
        "ticket_id" if task.kind == TICKET else "ask_id": task.id,
        "state": task.state,
        "title": task.title,
        "text": _words(task),
    }
    if task.result_by:
        body["result_by"] = task.result_by
    if task.options != "[]" and task.state == tasks.ASK_OPEN:
        body["options"] = quickjson.loads(task.options)
    room = room_or_bus(con, ctx)
    draft = Draft(room, kind or task.kind, ctx.me, ctx.now, body, sender_station=ctx.station(), thread=task.thread)
    seq, _ = events.append(con, draft)
    if box is None or box == ctx.me:
        return Wakes()
    mail.post(con, seq, [box], mail.MAY_JOIN)
    return Wakes(boxes=[box])


def _words(task: Task) -> str:
    """What the one it concerns is to read, whole."""
    head = f"{'ticket' if task.kind == TICKET else 'ask'} {task.id} {task.state}: {task.title}"
    parts = [head, task.body if task.state in (tasks.ASSIGNED, tasks.QUEUED, tasks.ASK_OPEN) else ""]
    options = quickjson.loads(task.options) if task.state == tasks.ASK_OPEN else []
    parts += [f"option {one['label']}" + (f": {one['text']}" if one.get("text") else "") for one in options]
    if task.result:
        parts.append(task.result)
    return "\n".join(part for part in parts if part)


def _result(ctx: Context, task: Task, status: str) -> dict[str, Any]:
    """A ticket or ask as a result."""
    return {"status": status} | shown(ctx, task)


def shown(ctx: Context, task: Task) -> dict[str, Any]:
    """One ticket or ask as JSON; `stalled` is derived when it is looked at."""
    found: dict[str, Any] = {
        "ticket_id" if task.kind == TICKET else "ask_id": task.id,
        "state": task.state,
        "title": task.title,
        "body": task.body,
        "creator": task.creator,
        "assignee": (task.assignee or "").removeprefix("station:") or None,
        "holder": task.holder,
        "created_at": clock.iso(task.at),
        "changed_at": clock.iso(task.changed_at),
    }
    if task.kind == TICKET:
        found |= {"priority": task.priority, "thread": task.thread, "stalled": stalled(ctx, task)}
    else:
        found["options"] = quickjson.loads(task.options)
    if task.result is not None:
        found |= {"result": task.result, "result_by": task.result_by}
    return found


def stalled(ctx: Context, task: Task) -> bool:
    """Is whoever should work on it proven gone? Never written down by a look."""
    if task.state not in (tasks.ASSIGNED, tasks.IN_PROGRESS):
        return False
    return _gone(ctx, task.holder or task.assignee)


def _gone(ctx: Context, who: str | None) -> bool:
    """Is this agent (no station, no person) proven gone? Probes a process: never inside a transaction."""
    known = agents.get(ctx.bus.con, who) if who and not who.startswith("station:") else None
    if known is None or known.kind != "harness":
        return False
    return known.ended_at is not None or present.Sign(ctx.bus, known, ctx.now).gone


def step(ctx: Context, verb: str, ticket: str, *, to: str | None = None, text: str | None = None) -> Outcome:
    """One transition of a ticket. Raises ticket_not_found, not_permitted, ticket_conflict."""
    seen = _find(ctx, TICKET, ticket)
    gone = [who for who in (seen.holder, seen.creator) if who and _gone(ctx, who)]
    _permit(ctx, verb, seen, gone)
    _sized(text or "")
    if verb in ("return", "cancel") and not (text or "").strip():
        raise BusError("invalid_body", f"{verb} needs a text", "say what came of it")
    named = recipients.resolve(ctx, to).box if to is not None else None
    with db.Write(ctx.bus.con) as con:
        task = tickets.get(con, TICKET, seen.id) or seen  # as it is now: it may have changed hands since the look
        _permit(ctx, verb, task, gone)
        box = named or task.assignee
        if verb == "assign" and box is None:
            raise BusError("unknown_recipient", "the ticket has no assignee yet", "name one: --to WHO")
        changed = _changed(ctx, verb, task, box, text)
        present.register(con, ctx)
        if not tickets.change(con, task.id, tasks.STEPS[verb].sources, changed):
            raise _conflict(con, task, verb)
        _known(con, ctx, task)
        told = _tell(con, ctx, changed, _concerned(verb, changed, gone))
    return Outcome(_result(ctx, changed, "ticket"), told)


def _known(con: sqlite3.Connection, ctx: Context, task: Task) -> None:
    """Whoever acts on it knows of it: its mail about it is read, and keeps no later wake back."""
    key = "ticket_id" if task.kind == TICKET else "ask_id"
    boxes = receive.boxes(con, ctx.me)
    rows = [(box, seq) for box in boxes for seq in mail.about(con, box, key, task.id)]
    wakes.seen(con, mail.receive(con, rows, ctx.me, ctx.now), ctx.now)


def _find(ctx: Context, kind: str, task: str) -> Task:
    """The ticket or ask, or a refusal."""
    found = tickets.get(ctx.bus.con, kind, task)
    if found is None:
        code = "ticket_not_found" if kind == TICKET else "ask_not_found"
        raise BusError(code, f"there is no {kind} {task[:60]!r}", f"see `tt {kind}s`")
    return found


def _permit(ctx: Context, verb: str, task: Task, gone: list[str]) -> None:
    """Who may not is told who may. A station's work goes on with whoever is there once its holder is `gone`."""
    who = where.actor(ctx)
    mine = [ctx.me, *([mail.station_box(who.station)] if who.station and who.role != roles.PERSON else [])]
    free = task.holder is None or task.holder in (ctx.me, *gone) or verb == "start"
    if not tasks.allowed(verb, who.role, creator=task.creator == ctx.me, assignee=task.assignee in mine and free):
        may = ", ".join(tasks.STEPS[verb].who)
        raise BusError("not_permitted", f"you may not {verb} {task.id}", f"who may: {may}", role=who.role)


def _changed(ctx: Context, verb: str, task: Task, box: str | None, text: str | None) -> Task:
    """The row after the step."""
    changed = task.replace(state=tasks.STEPS[verb].target, changed_at=ctx.now)
    if verb == "assign":
        changed.assignee, changed.holder = box, None
        changed.result = changed.result_by = None
    if verb == "start":
        changed.holder = ctx.me
    if verb in ("return", "cancel"):
        changed.result, changed.result_by = text, ctx.me
    return changed


def _conflict(con: sqlite3.Connection, task: Task, verb: str) -> BusError:
    """Somebody was faster, or the state does not allow it: who and what."""
    now = tickets.get(con, task.kind, task.id) or task
    by = now.result_by or now.holder
    return BusError(
        "ticket_conflict",
        f"{task.id} is {now.state}{f' by {by}' if by else ''}; {verb} needs {' or '.join(tasks.STEPS[verb].sources)}",
        f"look with `tt tickets show {task.id}`",
        state=now.state,
        assignee=(now.assignee or "").removeprefix("station:") or None,
        holder=now.holder,
        result_by=now.result_by,
    )


def _concerned(verb: str, task: Task, gone: list[str]) -> str | None:
    """Who is woken by a step: the assignee, or the creator of what was returned (if gone, its station)."""
    if verb == "assign":
        return task.assignee
    if verb == "cancel":
        return task.assignee if task.holder in gone else task.holder or task.assignee
    return _or_station(task, gone) if verb == "return" else None


def _or_station(task: Task, gone: list[str]) -> str:
    """Who made it; if that one is gone, whoever is at its station."""
    if task.creator in gone and task.creator_station:
        return mail.station_box(task.creator_station)
    return task.creator


def listing(  # a verb's options
    ctx: Context, *, mine: bool = False, state: str | None = None, assignee: str | None = None, every: bool = False
) -> Outcome:
    """Tickets: active ones, or all."""
    if state is not None and state not in tasks.STATES:
        raise BusError("invalid_input", f"there is no state {state[:40]!r}", ", ".join(tasks.STATES))
    states = (state,) if state else () if every else tasks.ACTIVE
    who: tuple[str, ...] = ()
    if mine:
        station = ctx.station()
        who = (ctx.me, *((mail.station_box(station),) if station else ()))
    elif assignee is not None:
        who = (recipients.resolve(ctx, assignee).box,)
    return _listed(ctx, "tickets", tickets.Filter(TICKET, states, who, limits.VIEW_MOST if every else LISTED_MOST))


def _listed(ctx: Context, name: str, wanted: tickets.Filter) -> Outcome:
    """The newest ones that fit; `more` says that there are older ones."""
    found = tickets.listing(ctx.bus.con, wanted.replace(limit=wanted.limit + 1))
    result: dict[str, Any] = {"status": name, name: [shown(ctx, task) for task in found[-wanted.limit :]]}
    if len(found) > wanted.limit:
        result["more"] = True
    return Outcome(result)


def show(ctx: Context, ticket: str) -> Outcome:
    """One ticket, whole."""
    return Outcome(_result(ctx, _find(ctx, TICKET, ticket), "ticket"))


def ask(
    ctx: Context, question: str, *, options: tuple[str, ...] = (), context: str | None = None, to: str | None = None
) -> Outcome:
    """Ask the expo or people; the addressee is woken."""
    title = _title(question)
    _sized(context or "")
    if len(options) > OPTIONS_MOST:
        raise BusError("invalid_input", f"at most {OPTIONS_MOST} options")
    given = [{"label": label.strip(), "text": text.strip()} for label, _, text in (o.partition(":") for o in options)]
    if any(not option["label"] for option in given) or len({o["label"] for o in given}) < len(given):
        raise BusError("invalid_input", "each option needs a label of its own", "--option yes:'do it'")
    box = _addressee(ctx, to)
    task = _new(ctx, ASK, title, context or "", tasks.ASK_OPEN, box)
    task.options = quickjson.dumps(given, ensure_ascii=False)
    with db.Write(ctx.bus.con) as con:
        present.register(con, ctx)
        tickets.add(con, task)
        told = _tell(con, ctx, task, box)
    return Outcome(_result(ctx, task, "asked"), told)


def _addressee(ctx: Context, to: str | None) -> str:
    """The expo, unless people are asked for, or the expo itself asks."""
    wanted = to or ("human" if where.actor(ctx).role == roles.EXPO else roles.EXPO)
    if wanted not in ("human", roles.EXPO):
        raise BusError(
            "unknown_recipient", f"a question goes to expo or human, not {wanted[:60]!r}", "or send a message"
        )
    box = mail.station_box(roles.EXPO) if wanted == roles.EXPO else recipients.resolve(ctx, "human").box
    if box == ctx.me:
        raise BusError("unknown_recipient", "that is you", "leave --to out to ask the expo")
    return box


def answer(ctx: Context, ask_id: str, text: str | None = None, choose: tuple[str, ...] = ()) -> Outcome:
    """Answer an ask. Raises ask_not_found, not_permitted, and ask_answered with the answer that won."""
    seen = _find(ctx, ASK, ask_id)
    gone = [seen.creator] if _gone(ctx, seen.creator) else []
    _permit(ctx, "answer", seen, gone)
    said = _said(seen, text, choose)
    with db.Write(ctx.bus.con) as con:
        task = tickets.get(con, ASK, seen.id) or seen  # it may have been escalated since the look
        _permit(ctx, "answer", task, gone)
        changed = task.replace(state=tasks.ASK_ANSWERED, result=said, result_by=ctx.me, changed_at=ctx.now)
        present.register(con, ctx)
        if not tickets.change(con, task.id, tasks.STEPS["answer"].sources, changed):
            raise _answered(task)
        _known(con, ctx, task)
        told = _tell(con, ctx, changed, _or_station(task, gone), kind="answer")
    return Outcome(_result(ctx, changed, "answered"), told)


def _said(task: Task, text: str | None, choose: tuple[str, ...]) -> str:
    """Free text, or labels that exist; always possible both ways."""
    labels = [option["label"] for option in quickjson.loads(task.options)]
    unknown = [label for label in choose if label not in labels]
    if unknown:
        raise BusError("invalid_input", f"there is no option {unknown[0][:60]!r}", ", ".join(labels) or "none given")
    if bool(text) == bool(choose):
        raise BusError("invalid_body", "answer with a text or with --choose", "one of them")
    _sized(text or "")
    return text or ", ".join(choose)


def _answered(task: Task) -> BusError:
    """The loser learns the winner."""
    message = f"{task.id} was answered by {task.result_by}: {(task.result or '')[:TITLE_CHARS]}"
    return BusError("ask_answered", message, None, answer=task.result, answered_by=task.result_by)


def escalate(ctx: Context, ask_id: str) -> Outcome:
    """Hand an open ask to people. Raises ask_not_found, not_permitted, ask_answered."""
    seen = _find(ctx, ASK, ask_id)
    _permit(ctx, "escalate", seen, [])
    box = recipients.resolve(ctx, "human").box
    with db.Write(ctx.bus.con) as con:
        task = tickets.get(con, ASK, seen.id) or seen
        present.register(con, ctx)
        if not tickets.redirect(con, task.id, box, ctx.now):
            raise _answered(task)
        _known(con, ctx, task)
        changed = task.replace(assignee=box, changed_at=ctx.now)
        told = _tell(con, ctx, changed, box)
    return Outcome(_result(ctx, changed, "escalated"), told)


def asks(ctx: Context, *, human: bool = False, every: bool = False) -> Outcome:
    """Open asks, or all; with `human` those that wait for people."""
    states = () if every else (tasks.ASK_OPEN,)
    most = limits.VIEW_MOST if every else LISTED_MOST
    return _listed(ctx, "asks", tickets.Filter(ASK, states, (), most, people=human))
