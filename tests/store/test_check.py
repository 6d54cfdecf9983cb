"""Every invariant finds the row that breaks it."""

from __future__ import annotations

import pytest

from bus.store import check, db

OWNED = """UPDATE rooms SET state = 'owned', owner = 'ann', turn_id = 1, lease_id = 'l', lease_until = 1,
           guardian_pid = 1, claim_seq = :claim WHERE id = :room"""
CLAIM = """INSERT INTO events (seq, id, room, type, sender, turn, at, body)
           VALUES (:claim, 'c', :room, 'claim', 'ann', 1, 0, '{}')"""
TOLD = "INSERT INTO mail (box, seq, received_at, received_by) VALUES ('ann', :claim, 1, 'ann')"
HELD = (CLAIM, TOLD, OWNED)

# invariant → what breaks it; parameters :room, :claim (an unused number), :seq (a message to bob)
BROKEN: dict[str, tuple[str, ...]] = {
    "an owner has a lease, a guardian and a claim": (*HELD, "UPDATE rooms SET guardian_pid = NULL WHERE id = :room"),
    "a lease belongs to one room": (
        *HELD,
        "DROP INDEX rooms_lease",
        """INSERT INTO rooms (path, created_at, active_at, state, owner, lease_id, lease_until, guardian_pid, claim_seq)
           VALUES ('/b', 0, 0, 'owned', 'ann', 'l', 1, 1, :claim)""",
    ),
    "the state of a room says what its columns say": ("UPDATE rooms SET state = 'owned' WHERE id = :room",),
    "an owner is a member of its room": (*HELD, "UPDATE members SET left_at = 1 WHERE agent = 'ann'"),
    "a turn is reserved for a member": (
        "UPDATE rooms SET state = 'reserved', reserved_for = 'nobody', reserved_until = 1 WHERE id = :room",
    ),
    "an owner's claim is an event addressed to it": (CLAIM, OWNED),
    "the bus itself has no stick": ("UPDATE rooms SET reserved_for = 'ann', reserved_until = 1 WHERE id = 0",),
    "the bus is room 0": ("DELETE FROM rooms WHERE id = 0",),
    "no turn was held that was never given": ("UPDATE members SET last_turn = 1 WHERE agent = 'ann'",),
    "each turn was claimed once": (
        *HELD,
        """INSERT INTO events (id, room, type, sender, turn, at, body)
           VALUES ('again', :room, 'takeover', 'bob', 1, 0, '{}')""",
    ),
    "each turn that was given has its claim": ("UPDATE rooms SET turn_id = 1 WHERE id = :room",),
    "a claim that nobody received is the present one": (
        CLAIM,
        "INSERT INTO mail (box, seq) VALUES ('ann', :claim)",
        "UPDATE rooms SET turn_id = 1 WHERE id = :room",
    ),
    "mail belongs to an event": ("INSERT INTO mail (box, seq) VALUES ('bob', 999)",),
    "unread mail is covered by a wake that exists and is not closed": (
        "UPDATE mail SET wake_id = 999 WHERE seq = :seq",
    ),
    "what was received says by whom": ("UPDATE mail SET received_at = 1 WHERE seq = :seq",),
    "no cursor is ahead of the log": ("UPDATE members SET cursor = 999 WHERE agent = 'bob'",),
    "a member who is there is known": ("DELETE FROM agents WHERE id = 'bob'",),
    "only a directed event is addressed to somebody's turn": (
        "INSERT INTO mail (box, seq, wake) VALUES ('turn:1', :seq, 1)",
    ),
}


def names(fill):
    return {name for name, _ in check.check(fill.con)}


def broken(fill, statements):
    values = {"room": fill.room, "claim": 500, "seq": fill.event("bob")}
    fill.con.execute("PRAGMA foreign_keys = OFF")
    fill.con.execute("PRAGMA ignore_check_constraints = ON")
    for statement in statements:
        fill.con.execute(statement, {name: value for name, value in values.items() if f":{name}" in statement})
    fill.con.execute("PRAGMA ignore_check_constraints = OFF")


def test_every_invariant_has_its_case():
    assert set(BROKEN) == {name for name, _ in check.INVARIANTS}


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_found(fill, name):
    broken(fill, BROKEN[name])
    assert name in names(fill)


def test_a_held_turn_breaks_nothing(fill):
    broken(fill, HELD)
    assert names(fill) == set()


@pytest.mark.parametrize("state", ["failed", "closed"])
def test_mail_that_a_dead_wake_covers(fill, state):
    seq = fill.event("bob")
    with db.Write(fill.con) as con:
        con.execute(
            """INSERT INTO wakes (id, agent, generation, route, state, upto, token, at, closed_at)
               VALUES (7, 'bob', 1, 'line', ?, 1, 't', 0, ?)""",
            ("sent" if state == "closed" else state, 1 if state == "closed" else None),
        )
        con.execute("UPDATE mail SET wake_id = 7 WHERE seq = ?", (seq,))
    assert names(fill) == {"unread mail is covered by a wake that exists and is not closed"}


def test_a_reference_that_leads_nowhere(fill):
    broken(fill, ["INSERT INTO notes (room, author, body, at) VALUES (99, 'ann', '', 0)"])
    assert "every reference leads somewhere" in names(fill)


def test_what_breaks_it_is_named(fill):
    broken(fill, ["UPDATE members SET last_turn = 4 WHERE agent = 'cat'"])
    detail = dict(check.check(fill.con))["no turn was held that was never given"]
    assert "'cat'" in detail
    assert "4" in detail


def test_checking_writes_nothing(fill):
    before = list(fill.con.iterdump())
    check.check(fill.con)
    assert list(fill.con.iterdump()) == before
    assert not fill.con.in_transaction
