"""A command that outlives its client."""

from __future__ import annotations

from tests.processes.stories import HANDOFF, blocked, holder, joined, room


def test_it_does_not_hide_the_death_of_its_client(world):
    """It finds no client in its ancestry; noting that made a dead holder one that nobody could prove gone."""
    ann, bob = joined(world, "ann", "bob", GONE_GRACE=500, FAIRNESS_GRACE=100)
    holder(ann)
    wait = blocked(world, bob.start("wait"))
    ann.die()
    ann.tt("msg", "send", "bus", "written while its client died")
    (row,) = world.rows("SELECT anchor, verified FROM agents WHERE id = ?", ann.id)
    assert row["verified"] == 1
    result = wait.wait(30).ok().json
    while result["status"] != "your_turn":
        result = bob.start("wait").wait(30).ok().json
    assert result["reason"] == "sequence"
    assert room(world)["owner"] == bob.id
    bob.tt("release", *HANDOFF).ok()
