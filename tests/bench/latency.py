"""From the commit, and from the sender's start, to the line on a blocked receiver's stdout."""

from __future__ import annotations

import os
import shutil
import sys
import time

from tests.bench import kit
from tests.bench.kit import PROTOTYPE, TT, Row, Session, Started, interleaved, median, p95


def rows(place):
    """Both rows."""
    yield commit_to_line(place)
    yield start_to_line(place)


def in_process(session: Session):
    """The operations as a client of ours calls them, without a process: commit, then wake."""
    from bus import deliver
    from bus.operations import enter, messages

    def send(to: str, text: str = "hello") -> float:
        """Send; when the commit was over (perf_counter)."""
        ctx = enter.enter(session.cwd, env=session.env)
        try:
            outcome = messages.send(ctx, to, text)
            at = time.perf_counter()
            deliver.carry_out(ctx.bus, outcome)
        finally:
            ctx.close()
        return at

    return send


def commit_to_line(place) -> Row:
    """The wake alone: bell, look, print."""
    repo = place.repo()
    ann, bob = place.sessions(repo, 2)
    ann.result("try")
    send = in_process(ann)
    folder = place.folder("bell")
    open(os.path.join(folder, "n"), "w").close()
    bells = {name: Started([*PROTOTYPE, name, folder], place.world.env(), folder) for name in ("bell", "poll")}
    for bell in bells.values():
        bell.line()
    fd = os.open(os.path.join(folder, "n"), os.O_WRONLY)

    def ours() -> float:
        waiting = bob.wait()
        at = send(bob.id)
        took = (waiting.line() - at) * 1000
        waiting.rest()
        waiting.done()
        return took

    def bare(name: str):
        def case() -> float:
            time.sleep(0.3)  # the poller is through with the change before
            for bell in bells.values():
                os.set_blocking(bell.out, False)
                try:
                    while os.read(bell.out, 4096):
                        pass
                except BlockingIOError:
                    pass
                os.set_blocking(bell.out, True)
                bell.text = b""
            at = time.perf_counter()
            os.pwrite(fd, b"x", 0)
            return (bells[name].line() - at) * 1000

        return case

    found = interleaved({"ours": ours, "raw inotify": bare("bell"), "250 ms poll": bare("poll")}, place.times(40, 8))
    os.close(fd)
    for bell in bells.values():
        bell.kill()
    mine = found.pop("ours")
    compared = {f"{name} p50": round(median(samples), 3) for name, samples in found.items()}
    compared |= {f"{name} p95": round(p95(samples), 3) for name, samples in found.items()}
    note = f"p95 {p95(mine):.1f}"
    good = median(mine) <= 2 and p95(mine) <= 6
    return Row(
        "commit → line of a blocked wait, p50",
        median(mine),
        "p50 ≤ 2, p95 ≤ 6",
        ok=good,
        compared=compared,
        note=note,
    )


def start_to_line(place) -> Row:
    """What an agent feels: its own command's start to the other's line."""
    repo = place.repo()
    ann, bob = place.sessions(repo, 2)
    ann.result("try")

    def ours() -> float:
        return exchange(bob.wait(), [TT, "msg", "send", bob.id, "hello"], ann.env, repo)

    folder, env = place.folder("proto"), place.world.env()
    kit.timed([*PROTOTYPE, "make", folder], env, folder)

    def prototype() -> float:
        waiting = Started([*PROTOTYPE, "listen", folder, "bob"], env, folder)
        waiting.settle()
        return exchange(waiting, [*PROTOTYPE, "send", folder, "bob", "hello"], env, folder)

    cases = {"ours": ours, "prototype": prototype}
    peer = Hcom.make(place)
    if peer:
        cases["hcom"] = peer.exchange
    found = interleaved(cases, place.times(40, 8))
    mine = found.pop("ours")
    compared = {name: round(median(samples), 1) for name, samples in found.items()}
    return Row(
        "`tt msg send` start → receiver's line, p50",
        median(mine),
        "≤ 25",
        ok=median(mine) <= 25,
        compared=compared,
        note=f"p95 {p95(mine):.1f}",
    )


def exchange(waiting: Started, argv, env, cwd) -> float:
    """From before the sender's start to the line."""
    sending = Started(argv, env, cwd)
    took = (waiting.line() - sending.began) * 1000
    for proc in (sending, waiting):
        proc.rest()
        proc.done()
    return took


class Hcom:
    """The fastest peer, in a home of its own; absent where it is not installed."""

    def __init__(self, place, program: str) -> None:
        self.home, self.program = place.folder("hcom"), program
        base = place.world.env()
        self.env = {"PATH": base["PATH"], "HOME": self.home, "HCOM_DIR": os.path.join(self.home, "h")}
        self.names = [self.start() for _ in range(2)]

    @classmethod
    def make(cls, place):
        """Set up, or None."""
        program = shutil.which("hcom", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
        try:
            return cls(place, program) if program else None
        except (kit.HungError, ValueError, IndexError):
            return None

    def start(self) -> str:
        """A new identity."""
        started = Started([self.program, "start"], self.env, self.home)
        text = started.rest().decode()
        started.done()
        return text.partition("[hcom:")[2].partition("]")[0] or text[99999]

    def send(self, text: str = "hello"):
        """How the first one sends to the second."""
        return [self.program, "send", "--name", self.names[0], "@" + self.names[1], "--", text]

    def exchange(self) -> float:
        """One message."""
        waiting = Started([self.program, "listen", "--name", self.names[1], "--json"], self.env, self.home)
        time.sleep(0.3)  # it polls, so it never comes to rest
        return exchange(waiting, self.send(), self.env, self.home)


def texts(session: Session) -> list[str]:
    """The messages that are unread for it, by pages, marked as read."""
    found = []
    while True:
        page = session.result("inbox")
        found += [event["text"] for event in page["events"] if event["type"] == "message"]
        if not page.get("more"):
            return found
