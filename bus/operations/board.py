"""The board of one session: what is new for it since its last prompt.

By ids and facts, never by time. Silent, and without a store write, when nothing is new; what
was shown is marked only after the flush.
"""

from __future__ import annotations

from bus import envelope, limits, marks, quickjson
from bus.operations import journal, offer, present, receive, session
from bus.records import Record
from bus.store import agents, db, events, mail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bus.operations.enter import Context
    from bus.operations.outcome import Receipt
    from bus.operations.receive import Batch
    from bus.store.agents import Agent
    from bus.store.events import Event

COLLISIONS_MOST = 10
PREVIEW_CHARS = 200
SUMMARY_LINES = 10
JOURNAL_MOST = 6
JOURNAL_CHARS = 200


class Delta(Record):
    """What to show, and what that counts as told: mail by `receipt`, facts by `marks` (JSON)."""

    text: str
    receipt: Receipt | None
    marks: str | None


def delta(ctx: Context, *, fresh_turn: bool = True, max_bytes: int = limits.HOOK_BYTES) -> Delta | None:
    """What is new, at most `max_bytes` of it; None when nothing is.

    Without text, at a session's first look, only the baseline is to be settled.
    `fresh_turn`: a person's prompt has just ended an idle time. Only then a missing rewake says
    anything: it ends with every wake, and the next one starts at Stop.
    """
    con = ctx.bus.con
    known = agents.get(con, ctx.me)
    told = _told(known)
    batch = receive.look(con, ctx.me)
    facts, seen = _facts(ctx, known, told)
    if fresh_turn:
        facts += _wake_state(ctx, known, told, seen)
    facts = _bounded(facts, max_bytes // 2)
    parts, receipt = _mail(ctx, batch, told, seen, max_bytes - sum(len(line.encode()) + 1 for line in facts))
    text = "\n".join(parts + facts)
    if not text and (known is None or "journal" in told):
        return None
    return Delta(text, receipt, quickjson.dumps(seen, sort_keys=True) if seen != told else None)


def settle(ctx: Context, shown: Delta) -> None:
    """After the flush: mail received, facts told."""
    receive.settle(ctx.bus, shown.receipt, ctx.now)
    if shown.marks is not None:
        with db.Write(ctx.bus.con) as con:
            agents.set_marks(con, ctx.me, shown.marks)


def _told(known: Agent | None) -> dict[str, Any]:
    """What the board has told this agent already."""
    found = quickjson.loads(known.marks) if known is not None and known.marks else {}
    return found if isinstance(found, dict) else {}


def _mail(
    ctx: Context, batch: Batch, told: dict[str, Any], seen: dict[str, Any], room: int
) -> tuple[list[str], Receipt | None]:
    """Unread mail: whole, as an envelope, if all of it fits; else a summary, once per state of the inbox."""
    if not batch.items:
        return [], None
    built = _envelope(ctx, batch, room)
    if built.seqs and not built.left and not batch.more:
        claimed = receive.claim(ctx.bus, ctx.me, batch, "board", ctx.now, own=True)
        if not claimed.items:
            return [], None
        if len(claimed.items) < len(batch.items):
            built = _envelope(ctx, claimed, room)
        return [built.text], receive.receipt(claimed, ctx.me, "board")
    newest = batch.items[-1].event.seq
    seen["summarised"] = newest
    if told.get("summarised") == newest:
        return [], None
    shown = receive.shown(ctx.bus.con, ctx.me, [item.event for item in batch.items[:SUMMARY_LINES]])
    return [_summary(ctx, shown, room)], None


def _envelope(ctx: Context, batch: Batch, room: int) -> envelope.Envelope:
    """A batch as text without a token: what is shown here counts as received after the flush."""
    shown = receive.shown(ctx.bus.con, ctx.me, [item.event for item in batch.items])
    repo = ctx.bus.repository()
    return envelope.build(shown, None, ack=False, max_bytes=room, max_events=limits.ENVELOPE_EVENTS, bus=repo)


def _bounded(lines: list[str], room: int) -> list[str]:
    """Whole lines as far as they fit; the rest is counted."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > room:
            return [*lines[:number], f"{len(lines) - number} more lines not shown: see `tt board`."]
    return lines


def _summary(ctx: Context, shown: list[dict[str, Any]], room: int) -> str:
    """What does not fit: how much, from whom, how each begins. It stays unread."""
    total = mail.unread_count(ctx.bus.con, ctx.me, receive.boxes(ctx.bus.con, ctx.me))
    found = [f"{total} unread events wait for you, more than fits here. Read them with `tt inbox`."]
    size = len(found[0].encode())
    for event in shown:
        first = next(iter(envelope.lines(event)), "")[:PREVIEW_CHARS]
        line = f"  #{event['event_seq']} {envelope.label(event['from'])}: {first}"
        size += len(line.encode()) + 1
        if size > room:
            break
        found.append(line)
    return "\n".join(found)


def _facts(ctx: Context, known: Agent | None, told: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """New collisions; and the marks as they will be once this was shown."""
    seen = dict(told)
    lines = _collisions(ctx, known, told, seen)
    if known is not None:
        lines += _journal(ctx, told, seen)
    return lines, seen


def _journal(ctx: Context, told: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """What others did since the last look, by number: the newest ones, the rest counted, none twice."""
    con = ctx.bus.con
    mark = told.get("journal")
    newest = events.newest(con)
    if not isinstance(mark, int):
        seen["journal"] = newest  # the first look is the baseline
        return []
    found = _others(ctx, events.newer(con, mark, journal.TYPES, ctx.me))
    if not found:
        return []
    seen["journal"] = newest
    shown = receive.shown(con, ctx.me, found[-JOURNAL_MOST:])
    lines = [f"  {envelope.label(event['from'])} {_one_line(journal.line(event))}" for event in shown]
    rest = len(found) - len(shown)
    head = f"Since your last prompt ({rest} older not shown):" if rest else "Since your last prompt:"
    return [head, *lines]


def _others(ctx: Context, found: list[Event]) -> list[Event]:
    """Without what is addressed to the reader: that comes as mail, not twice."""
    to = mail.boxes_of(ctx.bus.con, [event.seq for event in found])
    mine = {ctx.me, *receive.boxes(ctx.bus.con, ctx.me)}
    return [event for event in found if mine.isdisjoint(to.get(event.seq, []))]


def _one_line(text: str) -> str:
    """Foreign text inside one of our lines."""
    return " ".join(" ".join(envelope.clean(text)).split())[:JOURNAL_CHARS]


def _wake_state(ctx: Context, known: Agent | None, told: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """Whether anything would wake the session, where that changed."""
    lines: list[str] = []
    reach = present.reach(ctx.bus, ctx.me, known)
    deaf = known is not None and not reach.reachable()
    silenced = offer.silenced(ctx.bus, ctx.me)
    state = "deaf" if deaf else "silenced" if silenced else "reachable"
    if state != told.get("wake", "reachable"):
        lines += {
            "deaf": ["Nothing would wake this session: keep one background `tt wait` running."],
            "silenced": ["Wakes of this session are paused: three in a row were not received."],
            "reachable": [],
        }[state]
        seen["wake"] = state
    return lines


def _collisions(ctx: Context, known: Agent | None, told: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """Only new ones are told."""
    found = collisions_now(ctx, known)
    before = told.get("collisions", {})
    seen["collisions"] = found
    if not found:
        seen.pop("collisions")
    return [line for peer, files in found.items() if (line := _collision(ctx, peer, files, before.get(peer, [])))]


def collisions_now(ctx: Context, known: Agent | None = None) -> dict[str, list[str]]:
    """Files that this session and an online peer in another worktree both changed, by peer.

    Two sessions of one worktree see the same changes; there the stick keeps them apart.
    """
    known = known or agents.get(ctx.bus.con, ctx.me)
    mine = set(session.presence(known).get("changed", []))
    if known is None or not mine:
        return {}
    found: dict[str, list[str]] = {}
    for peer in agents.every(ctx.bus.con):
        both = mine & set(session.presence(peer).get("changed", []))
        if peer.id == ctx.me or peer.worktree == known.worktree or not both:
            continue
        if not present.Sign(ctx.bus, peer, ctx.now).gone:
            found[peer.id] = sorted(both)
    return found


def _collision(ctx: Context, peer: str, files: list[str], before: list[str]) -> str | None:
    """One line for what is new with one peer."""
    new = [path for path in files if path not in before]
    if not new:
        return None
    other = agents.get(ctx.bus.con, peer)
    branch = session.presence(other).get("branch")
    where = f" (station {envelope.label(other.station)})" if other is not None and other.station else ""
    on = f" on branch {envelope.label(str(branch))}" if branch else ""
    names = ", ".join(envelope.label(path, 120) for path in new[:COLLISIONS_MOST])
    more = f" and {len(new) - COLLISIONS_MOST} more" if len(new) > COLLISIONS_MOST else ""
    return f"Collision: {envelope.label(peer)}{where} has also changed{on}: {names}{more}."


def opened(ctx: Context, prompt_id: str, *, by_person: bool) -> bool:
    """A prompt opens the session's turn; a person's also lifts the silence of its rewakes.

    True when a person's prompt ended an idle time. Rings for nobody: a rewake that looked now
    would fire with the mail that this prompt is about to show. The caller serves what is left.
    """
    mark = marks.read(ctx.bus, ctx.me)
    fresh = by_person and not mark.is_open(ctx.now)
    person_at = ctx.now if by_person else mark.person_at
    marks.write(
        ctx.bus, ctx.me, mark.replace(opened=True, at=ctx.now, prompt=prompt_id, person_at=person_at), ring=False
    )
    return fresh
