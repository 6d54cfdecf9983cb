"""Joining, leaving, kicking; what is left behind, and what an archive gives back."""

from __future__ import annotations

import json
import os

import pytest

from bus import limits, places
from bus.errors import BusError
from bus.operations import join, messages, notes, sweep, turns
from bus.store import db
from monitor import granting
from tests.kit.desk import ANN, CONSOLE, HANDOFF, A, B, C


def archives(desk):
    with desk.bus() as bus:
        directory = os.path.join(bus.dir, "archive")
        names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    found = []
    for name in names:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            found.append([json.loads(line) for line in file])
    return found


def leave(desk, *agents):
    return [desk.do(agent, join.leave) for agent in agents][-1]


def rooms(desk):
    return desk.rows("SELECT * FROM rooms WHERE id > 0")


def swept(desk):
    """A whole sweep by nobody in particular."""
    with desk.bus() as bus:
        sweep.sweep(bus, data=desk.data)


class TestJoin:
    def test_makes_the_room(self, desk):
        result = desk.do(A, join.join)
        assert (result["status"], result["joined_existing_room"]) == ("joined", False)
        assert result["path"] == desk.path
        assert [member["agent_id"] for member in result["members"]] == [A]
        assert places.index_read(desk.data, desk.path) is not None

    def test_again_changes_nothing_but_presence(self, desk):
        desk.join(A)
        before = desk.dump()
        assert desk.do(A, join.join)["joined_existing_room"] is True
        assert desk.dump() == before

    def test_others_are_told_of_a_new_member_once(self, desk):
        """"""
        desk.join(A, B, B)
        assert [event["from"] for event in desk.inbox(A)] == [B]
        assert desk.inbox(B) == []

    def test_alone_tells_nobody(self, desk):
        desk.join(A)
        assert desk.rows("SELECT * FROM events") == []

    def test_a_newcomer_starts_at_its_baseline(self, desk):
        """A first receiver replayed all history."""
        desk.join(A, B)
        desk.do(A, messages.send, "room", "old")
        result = desk.do(C, join.join)
        assert result["cursor_event_seq"] == desk.one("SELECT max(seq) FROM events")
        desk.do(A, messages.send, "room", "new")
        assert desk.texts(C) == ["new"]

    def test_a_console_arrives_silently(self, desk):
        desk.join(A)
        desk.join(CONSOLE)
        assert desk.inbox(A) == []

    def test_force_new_says_when_it_had_no_effect(self, desk):
        """"""
        desk.join(A)
        assert "no effect" in desk.do(A, join.join, force_new=True)["warning"]

    def test_an_existing_member_keeps_rank_and_last_turn(self, desk):
        desk.join(A, B)
        desk.own(A)
        before = tuple(desk.rows("SELECT rank, last_turn FROM members WHERE agent = ? AND room > 0", A)[0])
        leave(desk, A)
        desk.join(A)
        assert tuple(desk.rows("SELECT rank, last_turn FROM members WHERE agent = ? AND room > 0", A)[0]) == before

    def test_rejoining_does_not_replay(self, desk):
        desk.join(A, B)
        leave(desk, B)
        desk.do(A, messages.send, "room", "meanwhile")
        desk.join(B)
        assert desk.texts(B) == []

    def test_without_a_room_nothing_else_works(self, desk):
        for operation, arguments in ((join.leave, ()), (granting.try_once, ()), (notes.add, ("x",))):
            with pytest.raises(BusError) as refused:
                desk.do(A, operation, *arguments)
            assert refused.value.code == "room_not_found"
        assert not os.path.exists(desk.data), "a refusal makes no bus"

    def test_many_rooms_on_different_paths(self, desk):
        other = desk.folder("other")
        desk.join(A)
        assert desk.do(A, join.join, path=other)["path"] == other


class TestLeave:
    def test_the_others_are_told(self, desk):
        desk.join(A, B)
        result = leave(desk, B)
        assert (result["status"], result["remaining_members"]) == ("left", [A])
        assert [event["type"] for event in desk.inbox(A)] == ["join", "leave"]

    def test_twice(self, desk):
        desk.join(A, B)
        leave(desk, B)
        desk.refused(B, "not_joined", join.leave)

    def test_an_owner_without_anything_to_hand_over_leaves_a_recovery_handoff(self, desk):
        desk.join(A, B)
        desk.own(A)
        leave(desk, A)
        result = desk.own(B)
        assert result["handoff"]["recovery"] == {"agent_id": A, "turn_id": 1, "reason": "left"}

    @pytest.mark.parametrize("how", ["leave", "kick"])
    def test_a_pending_handoff_survives_its_owner(self, desk, how):
        """Leave or kick of the owner discarded the pending handoff."""
        desk.join(A, B, C)
        desk.own(A)
        desk.do(A, turns.release, HANDOFF)
        desk.tick(limits.FAIRNESS_GRACE / 1000)
        desk.do(B, granting.try_once, settled=False)
        desk.do(
            *((B, join.leave) if how == "leave" else (A, join.kick, B)), **({} if how == "leave" else {"force": True})
        )
        assert desk.own(C)["handoff"]["next_action"] == HANDOFF["next_action"]

    def test_what_an_owner_had_read_is_named_in_the_recovery(self, desk):
        desk.join(A, B, C)
        desk.own(A)
        desk.do(A, turns.release, HANDOFF)
        desk.own(B)
        leave(desk, B)
        desk.tick(limits.FAIRNESS_GRACE / 1000)
        found = desk.own(C)["handoff"]["recovery"]
        assert (found["agent_id"], found["last_handoff"]["status"]) == (B, HANDOFF["status"])

    def test_the_next_one_is_found_at_once(self, desk):
        desk.join(A, B)
        desk.own(A)
        desk.listen(B)
        leave(desk, A)
        assert desk.state()["reserved_for"] == B


class TestLastLeave:
    def test_archives_and_deletes(self, desk):
        desk.join(A, B)
        desk.do(A, messages.send, "room", "hello")
        result = leave(desk, A, B)
        assert (result["status"], rooms(desk)) == ("room_deleted", [])
        ((head, *history),) = archives(desk)
        assert (head["path"], head["pending_handoffs"]) == (desk.path, [])
        assert [line["type"] for line in history] == ["join", "message", "leave", "leave"]
        assert places.index_read(desk.data, desk.path) is None

    def test_numbers_go_on(self, desk):
        desk.join(A, B)
        leave(desk, A, B)
        before = desk.one("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
        desk.join(A, B)
        assert desk.one("SELECT min(seq) FROM events") > before

    def test_a_pending_handoff_keeps_the_room(self, desk):
        desk.join(A)
        desk.do(A, notes.add, "x")
        desk.do(A, notes.resolve, 1)
        assert desk.wait(A, claim=True)["status"] == "your_turn"
        desk.do(A, turns.release, HANDOFF)
        result = leave(desk, A)
        assert (result["status"], result["kept_for"]) == ("left", ["pending_handoff"])
        desk.join(B)
        assert desk.own(B)["handoff"]["next_action"] == HANDOFF["next_action"]

    def test_unread_mail_keeps_the_room(self, desk):
        desk.join(A, B)
        desk.do(A, messages.send, B, "hello")
        assert leave(desk, A, B)["kept_for"] == ["unread_mail"]

    def test_an_unresolved_note_keeps_the_room(self, desk):
        desk.join(A)
        desk.do(A, notes.add, "remember")
        assert leave(desk, A)["kept_for"] == ["unresolved_notes"]

    def test_a_live_console_keeps_the_room_and_a_crashed_one_does_not(self, desk):
        """"""
        desk.join(A, CONSOLE)
        desk.listen(CONSOLE, "console")
        result = leave(desk, A)
        assert (result["status"], result["remaining_members"]) == ("left", [CONSOLE])
        assert "standby" in result["hint"]

    def test_members_that_are_somewhere_else_stay_known(self, desk):
        desk.join(A)
        leave(desk, A)
        desk.join(A)
        assert desk.one("SELECT ended_at FROM agents WHERE id = ?", A) is None


class TestIdleRooms:
    def abandoned(self, desk):
        desk.join(A, B)
        desk.do(A, messages.send, B, "still there?")
        desk.do(A, notes.add, "remember")
        desk.own(A)
        desk.do(A, turns.release, HANDOFF)
        desk.tick(limits.IDLE_ROOM / 1000)

    def test_archived_with_what_was_pending_and_given_back_to_who_joins_later(self, desk):
        self.abandoned(desk)
        swept(desk)
        assert rooms(desk) == []
        ((head, *_),) = archives(desk)
        assert [one["handoff"]["next_action"] for one in head["pending_handoffs"]] == [HANDOFF["next_action"]]
        assert [note["body"] for note in head["open_notes"]] == ["remember"]
        assert [row["to"] for row in head["unread_mail"]] == [B, "turn:1"]
        result = desk.do(C, join.join)
        assert "1 pending handoff" in result["warning"]
        assert desk.own(C)["handoff"]["next_action"] == HANDOFF["next_action"]

    def test_given_back_once(self, desk):
        self.abandoned(desk)
        swept(desk)
        desk.join(C)
        desk.own(C)
        desk.do(C, turns.release, HANDOFF)
        desk.own(C)
        leave(desk, C)
        desk.tick(limits.IDLE_ROOM / 1000)
        swept(desk)
        desk.tick(1)
        assert "recovery" in desk.do(A, join.join) or desk.pending()
        assert desk.own(A)["handoff"].get("recovery", {}).get("agent_id") == C

    @pytest.mark.parametrize("life", ["alive", "unknown", "gone"])
    def test_a_provably_live_member_keeps_it(self, desk, life):
        """"""
        desk.join(A)
        desk.life[desk.anchor(A)] = life
        desk.tick(limits.IDLE_ROOM / 1000)
        swept(desk)
        assert bool(rooms(desk)) == (life == "alive")

    def test_zero_turns_it_off(self, desk):
        from bus.operations import settings

        desk.join(A, ANN)
        desk.do(ANN, settings.put, "retention", "0")
        desk.tick(10 * limits.IDLE_ROOM / 1000)
        swept(desk)
        assert rooms(desk)

    def test_an_ended_member_is_removed_after_an_hour(self, desk):
        desk.join(A, B)
        desk.dies(B)
        desk.tick(limits.ENDED_MEMBER / 1000 - 1)
        swept(desk)
        assert desk.one("SELECT left_why FROM members WHERE agent = ? AND room > 0", B) is None
        desk.tick(1)
        swept(desk)
        assert desk.one("SELECT left_why FROM members WHERE agent = ? AND room > 0", B) == "process_ended"

    def test_one_that_came_back_since_it_was_probed_stays(self, desk, monkeypatch):
        desk.join(A, B)
        desk.dies(B)
        desk.tick(limits.ENDED_MEMBER / 1000)
        real = db.Write.__enter__

        def resumed_first(write):
            con = real(write)
            con.execute("UPDATE agents SET last_seen = ? WHERE id = ?", (desk.now, B))
            return con

        with desk.bus() as bus, monkeypatch.context() as patch:
            patch.setattr(db.Write, "__enter__", resumed_first)
            sweep._remove_ended(bus, desk.now)
        assert desk.one("SELECT left_why FROM members WHERE agent = ? AND room > 0", B) is None

    def test_an_owner_is_not(self, desk):
        desk.join(A, B)
        desk.own(A)
        desk.no_guardian = True
        desk.kill_guardian()
        desk.dies(A)
        desk.tick(limits.ENDED_MEMBER / 1000)
        swept(desk)
        assert desk.state()["owner"] == A


class TestKick:
    def test_an_unknown_one_needs_force(self, desk):
        desk.join(A, B)
        desk.refused(A, "target_active", join.kick, B)
        assert desk.do(A, join.kick, B, force=True, reason="gone fishing")["status"] == "kicked"
        event = desk.inbox(B)[-1]
        assert (event["type"], event["by"], event["reason"], event["to"]) == ("kick", A, "gone fishing", "you")

    def test_a_dead_one_does_not(self, desk):
        desk.join(A, B)
        desk.dies(B)
        assert desk.do(A, join.kick, B)["remaining_members"] == [A]

    @pytest.mark.parametrize(
        ("agent", "target", "named", "code"),
        [
            (A, A, {"force": True}, "cannot_kick_self"),
            (A, CONSOLE, {"force": True}, "not_permitted"),
            (A, C, {"force": True}, "unknown_recipient"),
            (C, A, {"force": True}, "not_joined"),
            (A, B, {"force": True, "reason": "x" * (limits.REASON_BYTES + 1)}, "invalid_input"),
        ],
    )
    def test_refused(self, desk, agent, target, named, code):
        desk.join(A, B, CONSOLE)
        desk.refused(agent, code, join.kick, target, **named)

    def test_one_that_left(self, desk):
        desk.join(A, B)
        leave(desk, B)
        desk.refused(A, "unknown_member", join.kick, B)

    def test_a_person_needs_no_membership(self, desk):
        desk.join(A, B)
        assert desk.do(ANN, join.kick, B, force=True)["status"] == "kicked"

    def test_an_explicit_join_rejoins(self, desk):
        """"""
        desk.join(A, B)
        desk.do(A, join.kick, B, force=True)
        for operation, arguments in ((granting.try_once, ()), (notes.add, ("x",)), (messages.send, ("room", "x"))):
            desk.refused(B, "unknown_member", operation, *arguments)
        desk.join(B)
        assert desk.do(B, granting.try_once)["status"] == "your_turn"


class TestMailOfWhoIsGone:
    def test_the_sender_is_told_once_and_the_mail_stays(self, desk):
        desk.join(A, B, C)
        for text in ("one", "two"):
            desk.do(A, messages.send, B, text)
        desk.inbox(A)
        leave(desk, B)
        (told,) = [event for event in desk.inbox(A) if event["type"] == "undelivered"]
        assert (told["agent_id"], len(told["event_seqs"])) == (B, 2)
        assert desk.texts(B) == ["one", "two"]

    def test_nobody_can_write_to_it_and_the_hint_names_who_is_there(self, desk):
        desk.stations.update({B: "line-1", C: "line-1"})
        desk.join(A, B, C)
        leave(desk, B)
        error = desk.refused(A, "unknown_recipient", messages.send, B, "hello?")
        assert C in error.hint

    def test_it_may_come_back(self, desk):
        desk.join(A, B)
        leave(desk, B)
        desk.join(B)
        assert desk.do(A, messages.send, B, "welcome")["status"] == "sent"
