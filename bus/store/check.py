"""The self-check: every invariant of the store as one named query that finds its violations.

Tests end with it, a campaign of kills ends with it, and `tt doctor` shows it. Each query
returns rows that must not exist.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

INVARIANTS: tuple[tuple[str, str], ...] = (
    (
        "an owner has a lease, a guardian and a claim",
        """SELECT id, owner FROM rooms WHERE (owner IS NULL) <> (lease_id IS NULL)
               OR (lease_id IS NULL) <> (guardian_pid IS NULL) OR (owner IS NULL) <> (claim_seq IS NULL)""",
    ),
    (
        "a lease belongs to one room",
        "SELECT lease_id FROM rooms WHERE lease_id IS NOT NULL GROUP BY 1 HAVING COUNT(*) > 1",
    ),
    (
        "the state of a room says what its columns say",
        """SELECT id, state FROM rooms WHERE state <> CASE WHEN owner IS NOT NULL THEN 'owned'
               WHEN reserved_for IS NOT NULL THEN 'reserved' ELSE 'idle' END""",
    ),
    (
        "an owner is a member of its room",
        """SELECT r.id, r.owner FROM rooms r LEFT JOIN members m ON m.room = r.id AND m.agent = r.owner
            WHERE r.owner IS NOT NULL AND (m.agent IS NULL OR m.left_at IS NOT NULL)""",
    ),
    (
        "a turn is reserved for a member",
        """SELECT r.id, r.reserved_for FROM rooms r LEFT JOIN members m ON m.room = r.id AND m.agent = r.reserved_for
            WHERE r.reserved_for IS NOT NULL AND (m.agent IS NULL OR m.left_at IS NOT NULL)""",
    ),
    (
        "an owner's claim is an event addressed to it",
        """SELECT r.id, r.claim_seq FROM rooms r LEFT JOIN mail m ON m.box = r.owner AND m.seq = r.claim_seq
            WHERE r.owner IS NOT NULL AND m.seq IS NULL""",
    ),
    (
        "the bus itself has no stick",
        "SELECT id FROM rooms WHERE id = 0 AND (owner IS NOT NULL OR reserved_for IS NOT NULL)",
    ),
    ("the bus is room 0", "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM rooms WHERE id = 0)"),
    (
        "no turn was held that was never given",
        """SELECT m.agent, m.room, m.last_turn FROM members m JOIN rooms r ON r.id = m.room
            WHERE m.last_turn > r.turn_id""",
    ),
    (
        "each turn was claimed once",
        """SELECT room, turn FROM events WHERE type IN ('claim', 'takeover') GROUP BY room, turn HAVING COUNT(*) > 1""",
    ),
    (
        "each turn that was given has its claim",
        """SELECT r.id, r.turn_id FROM rooms r WHERE r.turn_id > 0 AND NOT EXISTS
               (SELECT 1 FROM events e WHERE e.room = r.id AND e.type IN ('claim', 'takeover')
                AND e.turn = r.turn_id)""",
    ),
    (
        "a claim that nobody received is the present one",
        """SELECT m.box, m.seq FROM mail m JOIN events e USING (seq) JOIN rooms r ON r.id = e.room
            WHERE e.type IN ('claim', 'takeover') AND m.box = e.sender AND m.received_at IS NULL
              AND (r.claim_seq IS NULL OR r.claim_seq <> m.seq)""",
    ),
    (
        "mail belongs to an event",
        "SELECT box, seq FROM mail m WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.seq = m.seq)",
    ),
    (
        "unread mail is covered by a wake that exists and is not closed",
        """SELECT m.box, m.seq FROM mail m LEFT JOIN wakes w ON w.id = m.wake_id
            WHERE m.received_at IS NULL AND m.wake_id IS NOT NULL
              AND (w.id IS NULL OR w.closed_at IS NOT NULL OR w.state = 'failed')""",
    ),
    (
        "what was received says by whom",
        "SELECT box, seq FROM mail WHERE (received_at IS NULL) <> (received_by IS NULL)",
    ),
    (
        "no cursor is ahead of the log",
        """SELECT agent, room, cursor FROM members
            WHERE cursor > COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)""",
    ),
    (
        "a member who is there is known",
        """SELECT m.agent FROM members m LEFT JOIN agents a ON a.id = m.agent WHERE a.id IS NULL""",
    ),
    (
        "only a directed event is addressed to somebody's turn",
        "SELECT box FROM mail WHERE box GLOB 'turn:*' AND wake > 0",
    ),
)


def check(con: sqlite3.Connection) -> list[tuple[str, str]]:
    """(invariant, what breaks it) for every violation; empty when the store is sound."""
    problems = []
    for name, query in INVARIANTS:
        problems += [(name, repr(tuple(row))) for row in con.execute(query).fetchall()]
    for table, row, parent, _ in con.execute("PRAGMA foreign_key_check").fetchall():
        problems.append(("every reference leads somewhere", f"{table} row {row} to {parent}"))
    problems += [("the file is intact", row[0]) for row in con.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    return problems
