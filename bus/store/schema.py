"""The whole schema, and the ordered steps that lead to it.

A new database runs every step too, in one transaction, so there is one way to get here;
SCHEMA is what a reader looks at, and a test proves that both give the same database.
"""

from __future__ import annotations

_FIRST = """
CREATE TABLE rooms (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    path           TEXT NOT NULL UNIQUE,
    created_at     INTEGER NOT NULL,
    active_at      INTEGER NOT NULL,
    state          TEXT NOT NULL DEFAULT 'idle' CHECK (state IN ('idle', 'owned', 'reserved')),
    owner          TEXT,
    turn_id        INTEGER NOT NULL DEFAULT 0,
    lease_id       TEXT,
    lease_until    INTEGER,
    guardian_pid   INTEGER,
    claim_seq      INTEGER,
    reserved_for   TEXT,
    reserved_until INTEGER,
    reserved_why   TEXT CHECK (reserved_why IN ('sequence', 'direct_pass')),
    reserved_seq   INTEGER,
    idle_since     INTEGER,
    prior_owner    TEXT,
    CHECK ((owner IS NULL) = (lease_id IS NULL)),
    CHECK ((lease_id IS NULL) = (guardian_pid IS NULL)),
    CHECK ((lease_id IS NULL) = (lease_until IS NULL)),
    CHECK ((owner IS NULL) = (claim_seq IS NULL)),
    CHECK ((state = 'owned') = (owner IS NOT NULL)),
    CHECK ((state = 'reserved') = (reserved_for IS NOT NULL)),
    CHECK ((reserved_for IS NULL) = (reserved_until IS NULL))
);
CREATE UNIQUE INDEX rooms_lease ON rooms (lease_id) WHERE lease_id IS NOT NULL;

CREATE TABLE agents (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('harness', 'person', 'console')),
    harness    TEXT,
    name       TEXT NOT NULL,
    station    TEXT,
    worktree   TEXT,
    anchor     TEXT,
    verified   INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 1,
    last_seen  INTEGER NOT NULL,
    ended_at   INTEGER,
    focus      TEXT,
    presence   TEXT,
    endpoints  TEXT,
    marks      TEXT
) WITHOUT ROWID;

CREATE TABLE sessions (
    key   TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('live', 'cleared', 'ended')),
    at    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE members (
    agent     TEXT NOT NULL REFERENCES agents (id),
    room      INTEGER NOT NULL REFERENCES rooms (id),
    cursor    INTEGER NOT NULL,
    rank      INTEGER NOT NULL,
    last_turn INTEGER NOT NULL DEFAULT 0,
    intent    TEXT NOT NULL DEFAULT 'active' CHECK (intent IN ('active', 'parked')),
    joined_at INTEGER NOT NULL,
    left_at   INTEGER,
    left_why  TEXT,
    PRIMARY KEY (agent, room)
) WITHOUT ROWID;
CREATE INDEX members_room ON members (room, agent);

CREATE TABLE events (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT NOT NULL UNIQUE,
    room           INTEGER NOT NULL REFERENCES rooms (id),
    type           TEXT NOT NULL,
    sender         TEXT NOT NULL,
    sender_station TEXT,
    public         INTEGER NOT NULL DEFAULT 0,
    turn           INTEGER,
    thread         TEXT,
    at             INTEGER NOT NULL,
    body           TEXT NOT NULL
);
CREATE INDEX events_room ON events (room, seq);
CREATE INDEX events_public ON events (room, seq) WHERE public = 1;
CREATE INDEX events_type ON events (type, at);

CREATE TABLE mail (
    box         TEXT NOT NULL,
    seq         INTEGER NOT NULL REFERENCES events (seq),
    wake        INTEGER NOT NULL DEFAULT 0 CHECK (wake BETWEEN 0 AND 3),
    wake_id     INTEGER,
    received_at INTEGER,
    received_by TEXT,
    PRIMARY KEY (box, seq)
) WITHOUT ROWID;
CREATE INDEX mail_seq ON mail (seq);
CREATE INDEX mail_unread ON mail (box, seq) WHERE received_at IS NULL;
CREATE INDEX mail_due ON mail (box) WHERE received_at IS NULL AND wake_id IS NULL AND wake > 0;
CREATE INDEX mail_wake ON mail (wake_id) WHERE received_at IS NULL AND wake_id IS NOT NULL;

CREATE TABLE wakes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL,
    generation INTEGER NOT NULL,
    route      TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('sending', 'sent', 'failed', 'ambiguous')),
    by         TEXT,
    upto       INTEGER NOT NULL,
    shown      TEXT NOT NULL DEFAULT '{}',
    token      TEXT NOT NULL UNIQUE,
    error      TEXT,
    at         INTEGER NOT NULL,
    seen_at    INTEGER,
    closed_at  INTEGER
);
CREATE INDEX wakes_open ON wakes (agent) WHERE seen_at IS NULL AND closed_at IS NULL;
CREATE INDEX wakes_at ON wakes (at);

CREATE TABLE listeners (
    agent  TEXT NOT NULL,
    kind   TEXT NOT NULL,
    id     TEXT NOT NULL,
    room   INTEGER NOT NULL,
    intent TEXT NOT NULL,
    pid    INTEGER NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (agent, kind)
) WITHOUT ROWID;

CREATE TABLE notes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    room        INTEGER NOT NULL REFERENCES rooms (id),
    turn        INTEGER,
    author      TEXT NOT NULL,
    body        TEXT NOT NULL,
    at          INTEGER NOT NULL,
    resolved_at INTEGER,
    resolved_by TEXT
);
CREATE INDEX notes_room ON notes (room, id);

CREATE TABLE config (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO rooms (id, path, created_at, active_at) VALUES (0, '', 0, 0);
"""

_USAGE = """
CREATE TABLE usage (
    agent  TEXT NOT NULL,
    type   TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    at     INTEGER NOT NULL
);
CREATE INDEX usage_at ON usage (at);
"""

_TASKS = """
CREATE TABLE tickets (
    id              TEXT PRIMARY KEY,
    kind            TEXT NOT NULL CHECK (kind IN ('ticket', 'ask')),
    title           TEXT NOT NULL,
    body            TEXT NOT NULL,
    state           TEXT NOT NULL,
    creator         TEXT NOT NULL,
    creator_station TEXT,
    assignee        TEXT,
    holder          TEXT,
    priority        TEXT NOT NULL,
    thread          TEXT,
    options         TEXT NOT NULL DEFAULT '[]',
    result          TEXT,
    result_by       TEXT,
    at              INTEGER NOT NULL,
    changed_at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tickets_state ON tickets (kind, state, at);
CREATE TABLE worktrees (
    path    TEXT PRIMARY KEY,
    station TEXT NOT NULL UNIQUE,
    branch  TEXT,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
"""

# (version, statements), in order. Never edit a step that was released: add the next one.
MIGRATIONS: tuple[tuple[int, str], ...] = ((1, _FIRST), (2, _USAGE), (3, _TASKS))

# The whole of it, as a new database has it.
SCHEMA = "".join(statements for _, statements in MIGRATIONS)

VERSION = MIGRATIONS[-1][0]
