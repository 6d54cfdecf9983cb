"""`tt monitor`: no line lost, a first line only for what is due, one per session, silent without a bus."""

from __future__ import annotations

import os
import re
import time

import psutil
import pytest

from tests.hooks.kit import Session
from tests.kit.procs import gone
from tests.kit.world import wait_for

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t([^\t\n]+)\t([^\t\n]*)")


def comm(proc) -> str:
    with open(f"/proc/{proc.pid}/comm", encoding="ascii") as file:
        return file.read().strip()


def monitor(session, *args: str, env=None):
    """A monitor that follows."""
    proc = session.agent.start("monitor", *args, env=env)
    wait_for(lambda: session.armed("monitor") and comm(proc) == "tail", what="a monitor")
    return proc


def subject(proc) -> str:
    return LINE.fullmatch(proc.line())[2]


def quiet(proc) -> None:
    time.sleep(0.4)
    assert proc.running, proc.err
    assert proc.lines.empty()


def test_each_wake_is_a_line(scene):
    bob = scene.session()
    proc = monitor(bob)
    sent = scene.says(bob, "hello\n\tthere\x1b[31m")
    assert (sent["delivery_status"], sent["delivery_transport"], sent["delivery_state"]) == (
        "monitor",
        "monitor",
        "woken",
    )
    found = LINE.fullmatch(proc.line())
    assert found.groups() == ("human:ann", "hello there [31m")
    assert scene.says(bob, "second")["delivery_status"] == "pending"
    quiet(proc)
    bob.submit()
    bob.stop()
    scene.says(bob, "third")
    assert subject(proc) == "third"
    assert bob.armed("monitor")


def test_nothing_due_says_nothing(scene):
    bob = scene.session()
    scene.says(bob, "by request", "--no-wake")
    quiet(monitor(bob))


def test_what_came_before_is_one_line_and_one_wake(scene):
    bob = scene.session()
    for text in ("first", "second"):
        scene.says(bob, text)
    proc = monitor(bob)
    assert subject(proc) == "second"
    scene.ann.tt("notes", "add", "anything that writes").ok()
    quiet(proc)
    rows = scene.world.rows("SELECT state FROM wakes WHERE route = 'monitor'")
    assert [row["state"] for row in rows] == ["sent"]


@pytest.mark.parametrize("why", ["an open wake", "a rewake", "an open turn"])
def test_no_first_line_where_another_way_sees_to_it(scene, why):
    bob, carl = scene.session(), scene.session("carl")
    if why == "an open turn":
        bob.submit()
    scene.says(bob, "hello", sender=carl.agent)
    if why == "an open wake":
        bob.rewake_now()
    elif why == "a rewake":
        bob.pretend()
    quiet(monitor(bob))


def test_no_line_is_lost_between_the_offset_and_the_look(scene):
    bob = scene.session()
    proc = bob.agent.start("monitor", env={"TT_TEST_CRASH": "before_commit!stop"})
    wait_for(lambda: bob.armed("monitor"))
    wait_for(lambda: psutil.Process(proc.pid).status() == psutil.STATUS_STOPPED)
    sender = scene.ann.start("msg", "send", bob.id, "hello")
    time.sleep(0.5)
    proc.cont()
    sender.wait().ok()
    assert subject(proc) == "hello"
    quiet(proc)


def test_a_second_one_is_refused(scene):
    bob = scene.session()
    monitor(bob)
    bob.agent.tt("monitor").failed("duplicate_listener", 1)


def test_its_lock_dies_with_it(scene):
    bob = scene.session()
    monitor(bob).kill()
    assert not bob.armed("monitor")
    monitor(bob)


def test_it_goes_on_across_clear(scene):
    bob = scene.session()
    proc = monitor(bob)
    bob.clear()
    scene.says(bob, "hello")
    assert subject(proc) == "hello"


def test_a_large_file_is_replaced_and_not_printed(scene):
    bob = scene.session()
    scene.says(bob, "old")
    name = next(name for name in os.listdir(scene.world.bus()) if name.endswith(".notify"))
    with open(os.path.join(scene.world.bus(), name), "ab") as file:
        file.write(b"x" * 300_000 + b"\n")
    bob.submit()
    bob.stop()
    proc = monitor(bob)
    quiet(proc)
    scene.says(bob, "new")
    assert subject(proc) == "new"


def test_without_a_bus_it_blocks_and_starts_when_there_is_one(world):
    repo = world.repo()
    bob = Session(world, "bob", repo)
    proc = bob.agent.start("monitor")
    wait_for(lambda: os.path.exists(os.path.join(world.data, "buses", "n")))
    time.sleep(0.5)
    assert proc.running
    assert world.bus_dirs() == []
    ann = world.person("ann", repo)
    ann.tt("join").ok()
    wait_for(lambda: world.bus_dirs() and bob.armed("monitor") and comm(proc) == "tail")
    ann.tt("msg", "send", bob.id, "hello").ok()
    assert subject(proc) == "hello"


def test_another_repositorys_bus_is_not_meant(world):
    bob = Session(world, "bob", world.repo())
    proc = bob.agent.start("monitor")
    wait_for(lambda: os.path.exists(os.path.join(world.data, "buses", "n")))
    world.person("ann", world.repo("other")).tt("join").ok()
    time.sleep(0.4)
    assert proc.running
    assert comm(proc) != "tail"


def test_while_it_waits_for_a_bus_it_ends_with_its_client(world):
    bob = Session(world, "bob", world.repo())
    proc = bob.agent.start("monitor")
    wait_for(lambda: os.path.exists(os.path.join(world.data, "buses", "n")))
    time.sleep(0.3)
    bob.agent.die()
    began = time.monotonic()
    wait_for(lambda: gone(proc.pid))
    assert time.monotonic() - began < 1


def test_a_resumed_sessions_monitor_may_start_before_its_hook(scene):
    """The client starts both side by side; one that ended would be a turn."""
    bob = scene.session()
    bob.end().ok()
    proc = bob.agent.start("monitor")
    time.sleep(0.6)
    assert proc.running, proc.err
    assert not bob.armed("monitor")
    bob.begin("resume").ok()
    wait_for(lambda: bob.armed("monitor"))


def test_it_takes_no_agent_from_its_process(scene):
    """What an old process was woken for is void once the session runs in a new one; the hook must see that."""
    bob = scene.session()
    bob.rewake().kill()
    scene.says(bob, "nobody saw this")
    bob.rewake_now()
    bob.agent.die()
    again = Session(scene.world, "bob again", scene.repo)
    again.take_over(bob)
    proc = monitor(again)
    again.begin("resume").ok()
    assert subject(proc) == "nobody saw this"
