"""Many at once: blocked waits that sleep, a hundred of them, parallel senders, a fresh bus, a death."""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time

from bus import places
from tests.bench import kit
from tests.bench.kit import PROTOTYPE, TT, Row, Session, Started
from tests.bench.latency import Hcom, in_process, texts


def rows(place):
    """Every row of this file."""
    yield from asleep(place)
    yield from hundred(place)
    yield senders(place)
    yield wal(place)
    yield fresh(place)
    yield death(place)


def asleep(place):
    """A blocked wait while others talk: does it ever wake, and what does it weigh?"""
    repo = place.repo()
    ann, bob, cem = place.sessions(repo, 3)
    ann.result("try")
    send = in_process(ann)
    waiting = bob.wait()
    before, seconds = kit.switches(waiting.pid), place.times(60, 10)
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        send(cem.id)
        count += 1
        time.sleep(0.25)
    moved = kit.switches(waiting.pid) - before
    weight = kit.rss(waiting.pid)
    kit.finish(waiting)
    what = f"blocked wait: context switches in {seconds} s, {count} commits of others"
    yield Row(what, moved, "0", ok=moved == 0, unit="")
    yield Row("blocked wait: resident memory", weight, "≤ 24", ok=weight <= 24, unit="MB")


def hundred(place):
    """A hundred blocked waits: one directed message, then one from a person to all."""
    count = place.times(100, 30)
    repo = place.repo()
    person = place.world.person("pat", repo)
    person.tt("join").ok()
    ann, *crowd = place.sessions(repo, count + 1)
    ann.result("try")
    waits = [session.start("wait") for session in crowd]
    try:
        for waiting in waits:
            waiting.settle()
        yield directed(ann, crowd, waits)
        yield to_all(place, person, waits)
    finally:
        kit.finish(*waits)


def directed(ann: Session, crowd, waits) -> Row:
    """Who moves when one is meant?"""
    before = [kit.switches(waiting.pid) for waiting in waits]
    target = len(crowd) // 2
    ann.result("msg", "send", crowd[target].id, "only you")
    waits[target].line()
    waits[target].rest()
    waits[target].done()
    time.sleep(0.5)
    moved = [n for n, waiting in enumerate(waits) if n != target and kit.switches(waiting.pid) != before[n]]
    again = crowd[target].start("wait")
    again.settle()
    waits[target] = again
    what = f"{len(crowd)} blocked waits, a directed message: others that moved"
    return Row(what, len(moved), "0", ok=not moved, unit="")


def last_line(procs) -> float:
    """When the last of them has said its line (perf_counter)."""
    left = {proc.out: proc for proc in procs}
    until, at = time.perf_counter() + kit.LIMIT, 0.0
    while left:
        ready = select.select(list(left), [], [], max(0, until - time.perf_counter()))[0]
        if not ready:
            raise kit.HungError(f"{len(left)} of {len(procs)} said nothing")
        at = time.perf_counter()
        for fd in ready:
            piece = os.read(fd, 1 << 16)
            proc = left[fd]
            proc.text += piece
            if not piece or b"\n" in proc.text:
                del left[fd]
    return at


def to_all(place, person, waits) -> Row:
    """The last receiver's line, from the sender's start; the prototype with as many listeners."""
    began = time.perf_counter()
    sending = person.start("msg", "send", "room", "listen, everyone")
    ours = (last_line(waits) - began) * 1000
    sending.wait()
    kit.finish(*waits)
    folder, env = place.folder("proto"), place.world.env()
    kit.timed([*PROTOTYPE, "make", folder], env, folder)
    listening = [Started([*PROTOTYPE, "listen", folder, f"a{n}"], env, folder) for n in range(len(waits))]
    for one in listening:
        one.settle()
    sent = Started([*PROTOTYPE, "send", folder, "*", "listen"], env, folder)
    bare = (last_line(listening) - sent.began) * 1000
    sent.rest()
    sent.done()
    kit.finish(*listening)
    what = f"{len(waits)} blocked waits, a person's message to all: last line"
    return Row(what, ours, "≤ 2 ×", ok=ours <= 2 * bare, compared={"prototype": round(bare, 1)})


def senders(place) -> Row:
    """Twenty at once, ten messages each (a short run: three); none lost, none doubled."""
    repo = place.repo()
    target, *crowd = place.sessions(repo, 21)
    texts(target)
    each = place.times(10, 3)

    def ours(who: int, number: int):
        return [TT, "msg", "send", target.id, f"{who}/{number}"], crowd[who].env, repo

    took = parallel(ours, each)
    arrived = sorted(text for text in texts(target) if "/" in text)
    wanted = sorted(f"{who}/{number}" for who in range(20) for number in range(each))
    peer, compared = Hcom.make(place), {}
    if peer:
        compared["hcom"] = round(
            parallel(lambda who, number: (peer.send(f"{who}/{number}"), peer.env, peer.home), each)
        )
    what = f"20 parallel senders × {each}"
    lost = "none lost or doubled" if arrived == wanted else f"{len(arrived)} of {20 * each} arrived"
    return Row(
        what, round(took), f"≤ {150 * each}", ok=took <= 150 * each and arrived == wanted, compared=compared, note=lost
    )


def parallel(command, each: int) -> float:
    """Twenty threads that start so many processes each, one after the other; in ms."""
    refused = []

    def work(who: int) -> None:
        for number in range(each):
            argv, env, cwd = command(who, number)
            os.chdir(cwd)
            pid = os.posix_spawn(argv[0], argv, env, file_actions=QUIET)
            if os.waitpid(pid, 0)[1]:
                refused.append(argv)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(20)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(kit.LIMIT)
    took = (time.perf_counter() - began) * 1000
    if refused or any(thread.is_alive() for thread in threads):
        raise kit.HungError(f"{len(refused)} sends failed, such as {refused[:1]}")
    return took


QUIET = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]


def wal(place) -> Row:
    """Ten waits sleep, and now and then return, while thousands of messages flow past them."""
    repo = place.repo()
    ann, box, *crowd = place.sessions(repo, 12)
    ann.result("try")
    send = in_process(ann)
    waits = [session.wait() for session in crowd]
    bus_dir = next(path for path in place.world.bus_dirs() if os.path.basename(repo) + "-" in path)
    path, most, total = os.path.join(bus_dir, "bus.db-wal"), 0, place.times(20_000, 1_500)
    try:
        for number in range(total):
            send(box.id, "x" * 200)
            if number % 50 == 0:
                most = max(most, os.path.getsize(path))
            if number % 500 == 0:
                n = number // 500 % len(waits)
                send(crowd[n].id)
                waits[n].line()
                waits[n].rest()
                waits[n].done()
                waits[n] = crowd[n].start("wait")
    finally:
        kit.finish(*waits)
    size = most / 2**20
    return Row(f"ten blocked waits, {total} messages: WAL", size, "≤ 16", ok=size <= 16, unit="MB")


def fresh(place) -> Row:
    """Sixteen first commands at once on a data directory that is not there yet."""
    rounds, bad = place.times(100, 6), []
    base = place.world.env()
    repo = place.repo()
    for number in range(rounds):
        data = os.path.join(place.top, f"fresh{number}")
        variables = {"TALKING_STICK_DATA_DIR": data, "CLAUDECODE": "1", "CLAUDE_PID": str(os.getpid())}
        sessions = [base | variables | {"CLAUDE_CODE_SESSION_ID": f"{number}-{who}"} for who in range(16)]
        joining = [Started([TT, "join"], env, repo, errors=True) for env in sessions]
        said = [one.rest().decode() for one in joining]
        bad += [text for one, text in zip(joining, said, strict=True) if one.done()]
        buses = places.buses(data)
        bad += [f"{len(buses)} buses"] * (len(buses) != 1)
    what = f"fresh bus, 16 processes at once, {rounds} rounds: errors"
    return Row(what, len(bad), "0", ok=not bad, unit="", note=bad[0].strip()[:80] if bad else "")


def death(place) -> Row:
    """The holder's client and its guardian get kill -9; the other one's wait owns, nobody helps."""
    repo = place.repo()
    ann, bob = place.world.agent("ann", repo), place.world.agent("bob", repo)
    ann.tt("join").ok()
    bob.tt("join").ok()
    bob.tt("try").ok()
    ann.tt("inbox").ok()
    waiting = ann.start("wait")
    kit.settle(waiting.pid)
    guardian = bob.tt("try").ok().json["guardian_pid"]
    began = time.perf_counter()
    bob.die()
    os.kill(guardian, signal.SIGKILL)
    given = waiting.line(60)
    took = (time.perf_counter() - began) * 1000
    owns = bool(given) and given["status"] == "your_turn"
    waiting.wait()
    note = "owns the turn" if owns else f"got {json.dumps(given)[:80]}"
    what = "holder and guardian killed -9 → a blocked wait owns"
    return Row(what, round(took), "≤ 10 s + 1 s", ok=owns and took <= 11_000, note=note)
