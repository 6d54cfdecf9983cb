"""What changes between two reads of one look."""

from __future__ import annotations

from bus.operations import views
from bus.store import agents
from tests.kit.desk import A, B, C


def test_a_member_who_joins_while_the_room_is_looked_at_breaks_no_look(desk, monkeypatch):
    """Sixteen joined at once, and one of them met a member whom it did not know yet."""
    desk.join(A, B)
    read = agents.of_room

    def then_somebody_joins(con, room):
        found = read(con, room)
        monkeypatch.setattr(agents, "of_room", read)
        desk.join(C)
        return found

    monkeypatch.setattr(agents, "of_room", then_somebody_joins)
    shown = [member["agent_id"] for member in desk.do(A, views.state)["members"]]
    assert shown[:2] == [A, B]
    assert agents.of_room is read, "nobody joined in between"
