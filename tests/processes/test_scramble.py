"""Eight agents join, leave, kick, take and pass at random while a third of their commands is killed.

Nobody obeys any order: commands that make no sense at the moment must be refused by name. Afterwards
the store is sound and the room works. `TESTS_SCRAMBLE_SECONDS` sets how long (8), `TESTS_SCRAMBLE_SEED`
repeats one order of choices.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

from bus import errors
from tests.kit.world import wait_for
from tests.processes.stories import HANDOFF, room, sound

SECONDS = float(os.environ.get("TESTS_SCRAMBLE_SECONDS", "8"))
SEED = int(os.environ.get("TESTS_SCRAMBLE_SEED") or time.time())
LIMITS = {"GONE_GRACE": 500, "FAIRNESS_GRACE": 300, "TAKE_BACK_COOLDOWN": 300, "GUARDIAN_ADOPT": 200, "SWEEP": 200}
LIMITS |= {"GUARDIAN_READY": 30_000, "ENDED_MEMBER": 2000, "RESERVATION": 1500}
HARNESSES = ("claude", "codex", "grok", "opencode", "claude", "codex", "grok")
NEVER = ("cli_error", "usage", "store_unusable", "store_busy")


def choice(dice: random.Random, other: str) -> list[str]:
    """One command, whether it makes sense or not."""
    words = (
        *(["join"], ["join"], ["join"], ["leave"], ["kick", other, "--force"], ["state"], ["inbox"], ["standby"]),
        *(["take", "--reason", "r", "--operator-requested", "--force"], ["try"], ["try"], ["try", "--park"]),
        *(["release", *HANDOFF], ["pass", *HANDOFF], ["pass", "--to", other, *HANDOFF], ["assign", "next", *HANDOFF]),
        *(["wait", "--timeout", "300ms"], ["wait", "--claim", "--timeout", "300ms"], ["board", "--delta"]),
        *(
            ["msg", "send", other, "hi"],
            ["msg", "send", "room", "hi"],
            ["notes", "add", "x"],
            ["notes", "resolve", "1"],
        ),
    )
    return dice.choice(words)


def act(agent, others: list[str], dice: random.Random, until: float, trouble: list[str]) -> None:
    """One agent, until the time is over."""
    try:
        while time.monotonic() < until:
            process = agent.start(*choice(dice, dice.choice(others)), "--json")
            killed = dice.random() < 0.35
            if killed:
                time.sleep(dice.random() * 0.25)
                process.signal(signal.SIGKILL)
            run = process.wait(40)
            if run.code == 0 or (killed and (run.code is None or run.code < 0 or run.code >= 128)):
                continue
            code = run.error["error"] if run.error else ""
            if code not in errors.CODES or code in NEVER or run.code != 1 or run.out:
                trouble.append(repr(run))
    except Exception as problem:  # noqa: BLE001  # a thread's mistake must fail the test
        trouble.append(repr(problem))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_scramble_ends_in_a_room_that_works(world):
    world.limit(**LIMITS)
    repo = world.repo()
    agents = [world.agent(f"a{i}", repo, harness) for i, harness in enumerate(HARNESSES)] + [world.person("ann", repo)]
    trouble: list[str] = []
    ids, until = [agent.id for agent in agents], time.monotonic() + SECONDS
    acting = [
        threading.Thread(target=act, args=(agent, ids, random.Random(SEED + i), until, trouble))
        for i, agent in enumerate(agents)
    ]
    for thread in acting:
        thread.start()
    for thread in acting:
        thread.join()
    assert trouble == [], f"seed {SEED}: {trouble[0]}"
    sound(world)
    usable(world, agents)


def usable(world, agents) -> None:
    """Everybody can join and read; whoever holds the turn, if anybody, can hand it on, and the next one gets it."""
    for agent in agents:
        agent.tt("join").ok()
        agent.tt("inbox").ok()
    for _ in range(2):
        holder = wait_for(lambda: next((a for a in agents if gets(a)), None), 30, "somebody who gets the turn")
        before = room(world)["turn_id"]
        holder.tt("release", *HANDOFF).ok()
        wait_for(lambda: any(gets(a) for a in agents), 30, "the next turn")
        assert room(world)["turn_id"] > before
    sound(world)


def gets(agent) -> bool:
    """Has it the turn now?"""
    return agent.tt("try", "--json").ok().json["status"] == "your_turn"
