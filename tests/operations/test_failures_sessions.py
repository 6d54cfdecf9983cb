"""Several sessions of one process, sessions that end beside a handoff, and terminals that changed hands."""

from __future__ import annotations

import contextlib

import pytest

from bus import clock, deliver
from bus.deliver import native
from bus.operations import join, messages, session, standby, turns
from monitor import granting
from tests.kit.desk import ANN, HANDOFF, A, B, C

PROCESS = "elsewhere/50/one"


def reported(desk, agent, key, operation, *args, anchor=PROCESS, shared=False):
    """What a hook of this session reports."""
    with contextlib.closing(desk.enter(agent, need_room=False)) as ctx:
        harness = agent.partition(":")[0]
        ctx.caller = ctx.caller.replace(
            source="--harness", session_key=key, anchor=anchor, harness=harness, shared_daemon=shared
        )
        outcome = operation(ctx, *args)
        deliver.send(ctx.bus, outcome.wakes)
    return outcome.result


def begins(desk, agent, key, source="startup", **more):
    return reported(desk, agent, key, session.begin, source, {"cwd": desk.path}, **more)["agent_id"]


@pytest.fixture
def threads(desk):
    """Two sessions in one process; the first one holds the turn."""
    desk.join(A, B, C)
    desk.own(C)
    desk.do(C, turns.release, HANDOFF)
    for agent, key in ((A, "harness:1"), (B, "harness:2")):
        assert begins(desk, agent, key) == agent
    desk.own(A)
    return desk


def test_a_second_session_of_a_process_takes_nothing_from_the_first(threads):
    threads.tick(1)
    begins(threads, B, "harness:2", "resume")
    begins(threads, "codex:new", "harness:3")
    assert threads.state()["owner"] == A
    assert {row[0] for row in threads.rows("SELECT agent FROM members WHERE room > 0 AND left_at IS NULL")} == {A, B, C}
    assert threads.do(A, turns.release, HANDOFF)["status"] == "released"


def test_clear_in_a_shared_daemon_takes_nothing_from_another_thread(threads):
    """There one process is many conversations: which of them was cleared, nobody knows."""
    new = begins(threads, "codex:new", "harness:3", "clear", shared=True)
    assert new == "codex:new"
    assert threads.state()["owner"] == A
    states = dict(map(tuple, threads.rows("SELECT key, state FROM sessions")))
    assert states == {"harness:1": "live", "harness:2": "live", "harness:3": "live"}


@pytest.mark.parametrize("who", ["bystander", "reservee"])
def test_the_end_of_a_session_leaves_a_pending_handoff_as_it_is(desk, who):
    desk.join(A, B, C)
    begins(desk, B, "harness:2")
    desk.own(A)
    if who == "reservee":
        desk.listen(B)
    assert desk.do(A, turns.release, HANDOFF)["reserved_for"] == (B if who == "reservee" else None)
    before = desk.pending()
    desk.deafen(B)
    assert reported(desk, B, "harness:2", session.end, "other")["status"] == "ended"
    assert (desk.state()["state"], desk.state()["reserved_for"], desk.pending()) == ("idle", None, before)
    desk.tick(60)
    assert desk.own(C)["handoff"]["next_action"] == HANDOFF["next_action"]


# --- a terminal that somebody else sits in by now ---------------------------------------------


@pytest.fixture
def typed(desk, monkeypatch):
    """B stands by in a terminal; what is typed there."""
    said: list[str] = []

    def cmux(surface, _line):
        said.append(surface)
        return "sent", None

    monkeypatch.setattr(native, "cmux", cmux)
    desk.join(A)
    desk.env["CMUX_SURFACE_ID"] = "surface:1"
    desk.join(B)
    desk.do(B, standby.standby)
    del desk.env["CMUX_SURFACE_ID"]
    desk.typed = said
    return desk


def test_a_parked_session_is_typed_to_in_its_terminal(typed):
    assert typed.do(A, messages.send, B, "hello")["delivery_transport"] == "cmux"
    assert typed.typed == ["surface:1"]


@pytest.mark.parametrize("named", [{}, {"interrupt": True}])
def test_nothing_is_typed_where_the_session_is_gone(typed, named):
    """What runs there now is a shell, or somebody else."""
    typed.dies(B)
    sent = typed.do(A, messages.send, B, "hello", **named)
    assert (sent["delivery_status"], sent["reason"]) == ("unreachable", "interrupt_session_changed")
    typed.do(A, messages.send, B, "again")
    assert typed.typed == []
    assert typed.texts(B) == ["hello", "again"]


def test_nothing_is_typed_where_another_session_sits_now(typed):
    typed.tick(1)
    typed.env["CMUX_SURFACE_ID"] = "surface:1"
    typed.join(C)
    del typed.env["CMUX_SURFACE_ID"]
    assert typed.do(A, messages.send, B, "hello")["reason"] == "interrupt_session_changed"
    assert typed.typed == []
    typed.dies(C)
    assert typed.do(ANN, messages.send, B, "hello", interrupt=True)["interrupt_status"] == "queued"
    assert typed.typed == ["surface:1"]


def test_a_kick_of_a_gone_session_leaves_its_handoff(desk):
    desk.join(A, B, C)
    desk.own(A)
    desk.do(A, turns.release, HANDOFF)
    before = desk.pending()
    desk.do(C, join.kick, B, force=True)
    assert desk.pending() == before
    desk.tick(60)
    assert desk.do(C, granting.try_once)["handoff"]["status"] == HANDOFF["status"]
    assert clock.now() == desk.now
