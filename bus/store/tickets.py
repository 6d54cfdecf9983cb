"""Tickets and asks: units of delegated work, and questions. One table, changed by compare-and-set only."""

from __future__ import annotations

from bus import quickjson
from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

TICKET, ASK = "ticket", "ask"


class Task(Record):
    """One row. `assignee` and `creator` are agents, people or `station:<name>`; `holder` is who works on it.

    Of an ask: `assignee` is its addressee, `options` a JSON list of {label, text}, `result` the answer.
    """

    id: str
    kind: str
    title: str
    body: str
    state: str
    creator: str
    creator_station: str | None
    assignee: str | None
    holder: str | None
    priority: str
    thread: str | None
    options: str
    result: str | None
    result_by: str | None
    at: int
    changed_at: int


_SELECT = f"SELECT {columns(Task)} FROM tickets "


def add(con: sqlite3.Connection, task: Task) -> None:
    """Write a new one."""
    marks = ", ".join("?" * len(Task.__annotations__))
    values = [getattr(task, name) for name in Task.__annotations__]
    con.execute(f"INSERT INTO tickets ({columns(Task)}) VALUES ({marks})", values)


def get(con: sqlite3.Connection, kind: str, task: str) -> Task | None:
    """One of a kind by its id."""
    row = con.execute(_SELECT + "WHERE id = ? AND kind = ?", (task, kind)).fetchone()
    return Task(*row) if row else None


def change(con: sqlite3.Connection, task: str, expected: Iterable[str], changed: Task) -> bool:
    """Move on by compare-and-set: only from one of the expected states. Who wins is decided here."""
    query = """UPDATE tickets SET state = ?, assignee = ?, holder = ?, result = ?, result_by = ?, changed_at = ?
                WHERE id = ? AND state IN (SELECT value FROM json_each(?))"""
    values = (
        changed.state,
        changed.assignee,
        changed.holder,
        changed.result,
        changed.result_by,
        changed.changed_at,
        task,
        quickjson.dumps(list(expected)),
    )
    return con.execute(query, values).rowcount == 1


def redirect(con: sqlite3.Connection, task: str, assignee: str, now: int) -> bool:
    """Give an open ask to another addressee."""
    query = "UPDATE tickets SET assignee = ?, changed_at = ? WHERE id = ? AND kind = 'ask' AND state = 'open'"
    return con.execute(query, (assignee, now, task)).rowcount == 1


class Filter(Record):
    """Which ones: by kind, states, assignees; `people` takes those that wait for a person."""

    kind: str
    states: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    limit: int = 200
    people: bool = False


def listing(con: sqlite3.Connection, wanted: Filter) -> list[Task]:
    """Those that fit, newest last."""
    where, values = ["kind = ?"], [wanted.kind]
    if wanted.states:
        where.append("state IN (SELECT value FROM json_each(?))")
        values.append(quickjson.dumps(wanted.states))
    if wanted.assignees:
        where.append("(assignee IN (SELECT value FROM json_each(?)) OR holder IN (SELECT value FROM json_each(?)))")
        values += [quickjson.dumps(wanted.assignees)] * 2
    if wanted.people:
        where.append("assignee GLOB 'human:*'")
    query = f"{_SELECT}WHERE {' AND '.join(where)} ORDER BY at DESC, id DESC LIMIT ?"
    return [Task(*row) for row in con.execute(query, [*values, wanted.limit])][::-1]
