"""Agents, people and consoles as the bus knows them, and which session is which agent."""

from __future__ import annotations

from bus.records import Record, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


class Agent(Record):
    """One row. `anchor` is `host/pid/start` of the process whose death ends the agent."""

    id: str
    kind: str
    harness: str | None
    name: str
    station: str | None
    worktree: str | None
    anchor: str | None
    verified: int
    generation: int
    last_seen: int
    ended_at: int | None
    focus: str | None
    presence: str | None
    endpoints: str | None
    marks: str | None


_SELECT = f"SELECT {columns(Agent)} FROM agents "


def get(con: sqlite3.Connection, agent: str) -> Agent | None:
    """The agent with this id, or None."""
    row = con.execute(_SELECT + "WHERE id = ?", (agent,)).fetchone()
    return Agent(*row) if row else None


def every(con: sqlite3.Connection) -> list[Agent]:
    """All that did not end, by id."""
    return [Agent(*row) for row in con.execute(_SELECT + "WHERE ended_at IS NULL ORDER BY id")]


def of_room(con: sqlite3.Connection, room: int) -> list[Agent]:
    """The agents that are members of a room now."""
    query = _SELECT + "WHERE id IN (SELECT agent FROM members WHERE room = ? AND left_at IS NULL) ORDER BY id"
    return [Agent(*row) for row in con.execute(query, (room,))]


def at_station(con: sqlite3.Connection, station: str) -> list[Agent]:
    """The harness sessions at a station that did not end."""
    query = _SELECT + "WHERE station = ? AND kind = 'harness' AND ended_at IS NULL ORDER BY last_seen"
    return [Agent(*row) for row in con.execute(query, (station,))]


def station_seen(con: sqlite3.Connection, station: str) -> bool:
    """Was any session ever at this station?"""
    query = "SELECT 1 FROM agents WHERE station = ? AND kind = 'harness' LIMIT 1"
    return con.execute(query, (station,)).fetchone() is not None


def save(con: sqlite3.Connection, agent: Agent) -> None:
    """Write who an agent is now. Keeps generation, focus, presence, endpoints and marks."""
    con.execute(
        """INSERT INTO agents (id, kind, harness, name, station, worktree, anchor, verified, last_seen)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, harness = excluded.harness, name = excluded.name,
               station = excluded.station, worktree = excluded.worktree, anchor = excluded.anchor,
               verified = excluded.verified, last_seen = excluded.last_seen, ended_at = NULL""",
        (
            agent.id,
            agent.kind,
            agent.harness,
            agent.name,
            agent.station,
            agent.worktree,
            agent.anchor,
            agent.verified,
            agent.last_seen,
        ),
    )


def touch(con: sqlite3.Connection, agent: str, now: int) -> None:
    """The agent gave a command now."""
    con.execute("UPDATE agents SET last_seen = MAX(last_seen, ?) WHERE id = ?", (now, agent))


def end(con: sqlite3.Connection, agent: str, now: int) -> None:
    """The agent is gone from the bus; its mail stays its own."""
    con.execute("UPDATE agents SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (now, agent))


def set_station(con: sqlite3.Connection, agent: str, station: str) -> None:
    """Where mail for a station finds the agent from now on."""
    con.execute("UPDATE agents SET station = ? WHERE id = ?", (station, agent))


def set_focus(con: sqlite3.Connection, agent: str, focus: str | None) -> None:
    """What the agent says it is doing, or nothing."""
    con.execute("UPDATE agents SET focus = ? WHERE id = ?", (focus, agent))


def set_endpoints(con: sqlite3.Connection, agent: str, endpoints: str | None) -> None:
    """Where the session can be reached natively, as JSON; bound to it, gone with it."""
    con.execute("UPDATE agents SET endpoints = ? WHERE id = ?", (endpoints, agent))


def set_presence(con: sqlite3.Connection, agent: str, presence: str | None, now: int) -> None:
    """What its hooks report of a session, as JSON."""
    con.execute("UPDATE agents SET presence = ?, last_seen = MAX(last_seen, ?) WHERE id = ?", (presence, now, agent))


def set_marks(con: sqlite3.Connection, agent: str, marks: str) -> None:
    """What the board has told the agent already, as JSON."""
    con.execute("UPDATE agents SET marks = ? WHERE id = ?", (marks, agent))


def next_generation(con: sqlite3.Connection, agent: str) -> None:
    """The conversation changed: wakes of the old one are void."""
    con.execute("UPDATE agents SET generation = generation + 1 WHERE id = ?", (agent,))


def live_at(con: sqlite3.Connection, anchor: str, harness: str) -> int:
    """How many agents with a live session are in this very process."""
    query = """SELECT COUNT(*) FROM agents WHERE anchor = ? AND harness = ? AND ended_at IS NULL
                AND EXISTS (SELECT 1 FROM sessions WHERE agent = agents.id AND state = 'live')"""
    return int(con.execute(query, (anchor, harness)).fetchone()[0])


def by_anchor(con: sqlite3.Connection, anchor: str, harness: str) -> Agent | None:
    """The agent whose session lives in this very process; names given by an option have no session."""
    query = (
        _SELECT
        + """WHERE anchor = ? AND harness = ? AND ended_at IS NULL
              AND EXISTS (SELECT 1 FROM sessions WHERE agent = agents.id AND state = 'live')
            ORDER BY last_seen DESC LIMIT 1"""
    )
    row = con.execute(query, (anchor, harness)).fetchone()
    return Agent(*row) if row else None


def live_session_of(con: sqlite3.Connection, agent: str) -> str | None:
    """The session key that an agent is bound to now."""
    row = con.execute("SELECT key FROM sessions WHERE agent = ? AND state = 'live'", (agent,)).fetchone()
    return row[0] if row else None


def set_session(con: sqlite3.Connection, key: str, state: str, now: int) -> None:
    """A session was cleared or has ended."""
    con.execute("UPDATE sessions SET state = ?, at = ? WHERE key = ?", (state, now, key))


def session(con: sqlite3.Connection, key: str) -> tuple[str, str] | None:
    """(agent, state) of a session key, or None when no session was bound to it."""
    row = con.execute("SELECT agent, state FROM sessions WHERE key = ?", (key,)).fetchone()
    return (row[0], row[1]) if row else None


def bind_session(con: sqlite3.Connection, key: str, agent: str, now: int) -> None:
    """From now on the session is this agent."""
    con.execute(
        """INSERT INTO sessions (key, agent, state, at) VALUES (?, ?, 'live', ?)
           ON CONFLICT (key) DO UPDATE SET agent = excluded.agent, state = 'live', at = excluded.at
           WHERE state <> 'live' OR agent <> excluded.agent""",
        (key, agent, now),
    )
