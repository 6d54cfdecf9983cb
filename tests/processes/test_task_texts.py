"""Stations, tickets, questions and board as people read them, and in the shapes that the schema names."""

from __future__ import annotations

import pytest

from tests.processes.crew import Crew
from tt import schema, table


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_texts_and_shapes(world):
    crew = Crew(world, 2)
    ann, expo, one = crew.ann, crew.expo, crew.stations[0]

    def shaped(agent, *words):
        result = agent.tt(*words, "--json").ok().json
        full = table.expand(list(words))
        title = " ".join(full[:2]) if table.find(tuple(full[:2])) else full[0]
        assert schema.problems(title, result) == [], words
        return result

    def said(*words):
        return ann.tt(*words).ok().out

    ticket = shaped(crew.sous, "delegate", "Accept tabs", "--body", "see #12\nand more", "--priority", "high")[
        "ticket_id"
    ]
    shaped(expo, "tickets", "assign", ticket, "--to", "station-1")
    shaped(one, "tickets", "start", ticket)
    ask = shaped(one, "ask", "Keep it?", "--option", "yes:one more", "--option", "no", "--context", "in use")["ask_id"]
    one.tt("focus", "the parser").ok()

    assert f"station-1  {one.id}" in said("stations")
    assert "Nothing is changed" in said("stations", "add", "--print")
    assert said("stations", "attach", "station-1") == f"cd {crew.paths[0]} && claude\n"
    assert f"{ticket}  in_progress high  → station-1 ({one.id})  Accept tabs" in said("tickets")
    assert "  body: see #12\n        and more\n" in said("tickets", "show", ticket)
    assert "    in use\n    yes: one more\n    no\n" in said("asks")
    board = said("board")
    assert "human:ann at expo, strict-hub" in board
    assert "the parser" in board
    assert ask in board
    known = shaped(ann, "board")["state_hash"]
    assert said("board", "--since-hash", known) == f"unchanged ({known})\n"
    shaped(ann, "board", "--since-hash", known)
    assert said("board", "--delta") == "Nothing new\n"
    shaped(ann, "board", "--delta")
    shaped(ann, "board", "--verbose")
    assert f"{one.id} ask {ask} open: Keep it?" in said("journal")
    shaped(ann, "journal")
    assert said("usage") == "No sub-agents ran\n"
    shaped(ann, "usage")
    shaped(expo, "asks", "escalate", ask)
    shaped(ann, "answer", ask, "--choose", "yes")
    late = expo.tt("answer", ask, "no", "--text")
    assert (late.code, late.err) == (1, f"tt: {ask} was answered by human:ann: yes\n")
    shaped(ann, "asks", "list", "--all")
    shaped(one, "tickets", "return", ticket, "--result", "done")
    assert "  result: done\n" in said("tickets", "show", ticket)
    shaped(ann, "tickets", "done", ticket)
    other = shaped(ann, "delegate", "more", "--to", "station-2")["ticket_id"]
    shaped(ann, "tickets", "cancel", other, "--reason", "no")
    shaped(ann, "tickets")
    shaped(ann, "stations", "add", "--print")
    shaped(ann, "stations", "add")
    shaped(ann, "stations")
    assert said("stations", "remove", "station-3").startswith("Removed station-3")
    shaped(ann, "stations", "attach", "station-1")
