"""The life of a wake: sending, then sent, failed or ambiguous, then seen or closed."""

from __future__ import annotations

import json

import pytest

from bus.store import db, mail, wakes

NOW = 1_790_000_000_000


def offer(fill, *seqs, box="bob", agent="bob", at=NOW, generation=1, state="sending"):
    attempt = wakes.Attempt(agent, generation, "line", "h/1/1", max(seqs, default=0), at, state=state)
    with db.Write(fill.con) as con:
        wake = wakes.begin(con, attempt)
        mail.cover(con, box, seqs, wake)
    return wake


def finish(fill, wake, state, error=None):
    with db.Write(fill.con) as con:
        wakes.finish(con, wake, state, error)


def receive(fill, seq, box="bob", at=NOW):
    with db.Write(fill.con) as con:
        wakes.seen(con, mail.receive(con, [(box, seq)], "bob", at), at)


def test_begin_and_get(fill):
    with db.Write(fill.con) as con:
        shown = {"mail": [["bob", 1]], "cursors": {"1": 2}}
        wake = wakes.begin(con, wakes.Attempt("bob", 3, "rewake", None, 7, NOW, shown=shown))
    found = wakes.get(fill.con, wake)
    assert (found.agent, found.generation, found.route, found.state, found.upto) == ("bob", 3, "rewake", "sending", 7)
    assert json.loads(found.shown) == shown
    assert wakes.get(fill.con, wake + 1) is None


def test_tokens_are_secrets_of_their_own(fill):
    seq = fill.event("bob")
    tokens = {wakes.get(fill.con, offer(fill, seq)).token for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 20


@pytest.mark.parametrize("state", ["sent", "failed", "ambiguous"])
def test_an_attempt_ends_once(fill, state):
    wake = offer(fill, fill.event("bob"))
    finish(fill, wake, state, "why")
    finish(fill, wake, "sent")
    found = wakes.get(fill.con, wake)
    assert (found.state, found.error) == (state, "why")


def test_open_while_it_covers_unread_mail(fill):
    seq = fill.event("bob")
    wake = offer(fill, seq)
    assert wakes.open_of(fill.con, "bob", 1).id == wake
    receive(fill, seq)
    assert wakes.open_of(fill.con, "bob", 1) is None
    assert wakes.get(fill.con, wake).seen_at == NOW


def test_seen_only_when_nothing_is_left(fill):
    first, second = fill.event("bob"), fill.event("bob")
    wake = offer(fill, first, second)
    receive(fill, first)
    assert wakes.get(fill.con, wake).seen_at is None
    receive(fill, second)
    assert wakes.get(fill.con, wake).seen_at == NOW


def test_a_wake_that_was_seen_was_sent(fill):
    """Its sender died between the act and the row."""
    seq = fill.event("bob")
    wake = offer(fill, seq)
    receive(fill, seq)
    assert wakes.get(fill.con, wake).state == "sent"


@pytest.mark.parametrize(("generation", "state"), [(2, "sent"), (1, "failed")])
def test_not_open(fill, generation, state):
    wake = offer(fill, fill.event("bob"))
    finish(fill, wake, state)
    assert wakes.open_of(fill.con, "bob", generation) is None


def test_closed_gives_its_mail_back(fill):
    read, unread = fill.event("bob"), fill.event("bob")
    wake = offer(fill, read, unread)
    receive(fill, read)
    with db.Write(fill.con) as con:
        wakes.close(con, wake, NOW)
    assert wakes.open_of(fill.con, "bob", 1) is None
    assert mail.due(fill.con, "bob") == [(unread, 1)]


def test_close_of_one_agent_leaves_the_others(fill):
    mine, other = offer(fill, fill.event("bob")), offer(fill, fill.event("cat"), box="cat", agent="cat")
    with db.Write(fill.con) as con:
        wakes.close_of(con, "bob", NOW)
    assert wakes.get(fill.con, mine).closed_at == NOW
    assert wakes.get(fill.con, other).closed_at is None


def test_unfinished(fill):
    sending = offer(fill, fill.event("bob"))
    finish(fill, offer(fill, fill.event("bob")), "sent")
    claim = offer(fill, fill.event("station:x"), box="station:x")
    finish(fill, claim, "sent")
    assert [wake.id for wake in wakes.unfinished(fill.con, 10)] == [sending, claim]


def test_pruned_are_old_ones_that_cover_nothing(fill):
    seq = fill.event("bob")
    old, covering = offer(fill, at=NOW - 10), offer(fill, seq, at=NOW - 10)
    young = offer(fill, at=NOW)
    assert wakes.oldest(fill.con) == NOW - 10
    with db.Write(fill.con) as con:
        wakes.prune(con, NOW)
    assert wakes.get(fill.con, old) is None
    assert wakes.get(fill.con, covering) is not None
    assert wakes.get(fill.con, young) is not None


def test_log(fill):
    first, second = offer(fill, at=NOW - 10), offer(fill, at=NOW)
    assert [wake.id for wake in wakes.log(fill.con, NOW - 10)] == [first, second]
    assert [wake.id for wake in wakes.log(fill.con, NOW)] == [second]
    assert wakes.newest_of(fill.con, "bob").id == second
    assert wakes.newest_of(fill.con, "cat") is None


def test_who_covers_what(fill):
    seq, free = fill.event("station:x"), fill.event("station:x")
    wake = offer(fill, seq, box="station:x")
    found = wakes.claimed_by(fill.con, [seq, free], "station:x")
    assert {number: one.id for number, one in found.items()} == {seq: wake}
