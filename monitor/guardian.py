"""The guardian of one lease: renews it, and notices the death of its holder.

Started by command line, double-forked into a session of its own. Kept true: it holds the
lease's lock from before the grant commits until it ends; it never refreshes presence, so a
wedged holder looks idle; only a guardian surrenders a turn, on proof of death and silence.
"""

from __future__ import annotations

import os
import sys

from bus import clock, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.bell import Ears
    from bus.process import ExitWatch
    from bus.store.db import Bus
    from bus.store.rooms import Room

ARGUMENTS = 7


def main() -> None:
    """Detach, take the lock, answer READY, guard. Exit code 0 whatever happens: nobody reads it."""
    if len(sys.argv) != ARGUMENTS + 1:
        sys.exit(2)
    bus_dir, room, lease, owner, anchor, told, ready = sys.argv[1:]
    if os.fork():
        os._exit(0)
    os.setsid()
    _close_others({int(told), int(ready)})
    os.chdir("/")
    held = locks.hold(os.path.join(bus_dir, "locks", "lease-" + lease))
    if held is None:
        os.write(int(ready), b"TAKEN\n")
        return
    guardian = Guardian(bus_dir, int(room), lease, owner, int(told))
    guardian.watch(anchor)
    try:
        os.write(int(ready), f"READY {os.getpid()}\n".encode())
    except BrokenPipeError:
        return  # the starter waited no longer: nothing was granted
    os.close(int(ready))
    guardian.guard()


def _close_others(kept: set[int]) -> None:
    """Close what was inherited: a pipe that stays open here would hold its reader for the lease's time."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        numbers = list(range(256))
    for fd in numbers:
        if fd > 2 and fd not in kept:  # the three standard ones lead to /dev/null
            try:
                os.close(fd)
            except OSError:
                continue
    for fd in kept:
        os.set_inheritable(fd, False)


class Guardian:
    """One lease. Blocks on the room's bell, the granter's pipe, the holder's process and the next beat."""

    def __init__(self, bus_dir: str, room: int, lease: str, owner: str, told: int) -> None:
        """Nothing is opened yet: READY must come fast."""
        self.bus_dir = bus_dir
        self.room = room
        self.lease = lease
        self.owner = owner
        self.pipe = told
        self.anchor = ""
        self.exit: ExitWatch | None = None
        self.gone_since: int | None = None
        self.next_beat = 0
        self.seen_lease = False

    def watch(self, anchor: str) -> None:
        """Watch the holder's present process; after a resume it is another one."""
        from bus import process  # kept beside its only use

        if anchor == self.anchor:
            return
        self.anchor = anchor
        if self.exit is not None:
            self.exit.close()
            self.exit = None
        pid = process.anchor_pid(anchor) if anchor else None
        if pid is None or process.liveness(anchor) != "alive":
            return
        try:
            self.exit = process.ExitWatch(pid, process.anchor_start(anchor))
        except (ProcessLookupError, OSError):
            self.exit = None

    def guard(self) -> None:
        """Look, block, until the lease is no more."""
        from bus import bell  # READY must not wait for it
        from bus.store import db

        with db.open_bus(self.bus_dir) as bus, bell.Ears([bus.room_bell(self.room)]) as ears:
            ears.arm()
            while True:
                deadline = self._step(bus)
                if deadline is None:
                    return
                ears.fds = tuple(thing for thing in (self._pipe_fd(), self.exit) if thing is not None)
                self._block(ears, deadline)

    def _pipe_fd(self) -> int | None:
        """The granter's pipe while it is open."""
        return self.pipe if self.pipe >= 0 else None

    def _block(self, ears: Ears, deadline: int) -> None:
        """Sleep until something happens; note what cannot happen twice."""
        heard = ears.wait(deadline)
        if self.pipe in heard and not os.read(self.pipe, 1):
            os.close(self.pipe)
            self.pipe = -1
        if self.exit is not None and self.exit in heard:
            self.exit.close()
            self.exit = None

    def _step(self, bus: Bus) -> int | None:
        """One look: the next time that something is due, or None when the work is over."""
        from bus.errors import BusError
        from bus.store import db, rooms

        try:
            room = rooms.by_id(bus.con, self.room)
            if room is None or room.lease_id != self.lease:
                # Before the commit there is no lease yet: while the granter lives, wait for it.
                return None if self.seen_lease or self.pipe < 0 else clock.now() + 86_400_000
            return self._owned(bus, room)
        except (BusError, db.Error):
            return clock.now() + RETRY  # a busy store: the lease is still ours to renew

    def _owned(self, bus: Bus, room: Room) -> int | None:
        """The lease is there: renew it, follow its holder, surrender it when that one is gone."""
        from bus.store import agents

        now = clock.now()
        if (room.lease_until or 0) <= now:
            return None
        if self.pipe < 0 and not self.seen_lease:
            self._announce(bus, room)
        owner = agents.get(bus.con, self.owner)
        if owner is not None and owner.anchor:
            self.watch(owner.anchor)
        due = self._vanished(bus, now)
        if due is not None:
            return due if due > 0 else None
        if now >= self.next_beat:
            self._beat(bus, now)
        self.seen_lease = self.seen_lease or self.pipe < 0
        return self.next_beat

    def _announce(self, bus: Bus, room: Room) -> None:
        """The granter is gone. If nobody told the owner of its turn, wake it like for any mail."""
        from bus import deliver
        from bus.operations import grant
        from bus.operations.outcome import Wakes
        from bus.store import db, mail, wakes

        if grant.announced(bus.con, room) or room.owner is None:
            return
        claim = mail.letter(bus.con, room.owner, room.claim_seq or 0)
        with db.Write(bus.con) as con:
            if claim is not None and claim.wake_id is not None and claim.received_at is None:
                wakes.close(con, claim.wake_id, clock.now())
        deliver.send(bus, Wakes(boxes=[room.owner]))

    def _vanished(self, bus: Bus, now: int) -> int | None:
        """None while the holder lives; else when to look again, or 0 after the turn was surrendered."""
        from bus import deliver, gitdir
        from bus.operations import grant, present
        from bus.store import agents, rooms

        owner = agents.get(bus.con, self.owner)
        if owner is None:
            return None
        sign = present.Sign(bus, owner, now)
        if not sign.gone:
            return None
        left = present.grace(owner) - sign.silent
        if left > 0:
            return now + left
        room = rooms.by_id(bus.con, self.room)
        found = gitdir.status(room.path, os.environ) if room is not None else None
        seen = {"branch": found.branch, "changed_files": found.changed} if found is not None else {}
        wakes = grant.surrender(bus, grant.Vanished(self.lease, self.room, self.owner, seen))
        if wakes is None:
            return now + RETRY
        deliver.send(bus, wakes)
        return 0

    def _beat(self, bus: Bus, now: int) -> None:
        """Renew the lease, and repair what dead processes left on this bus."""
        from bus import deliver, limits
        from bus.operations import present, sweep
        from bus.store import agents

        owner = agents.get(bus.con, self.owner)
        unseen = owner is not None and present.Sign(bus, owner, now).silent >= limits.OWNER_IDLE
        self.next_beat = now + limits.GUARDIAN_BEAT
        if not unseen:  # a session without a process of its own cannot be proven gone: its lease runs out
            self._renew(bus, now)
        deliver.send(bus, sweep.sweep(bus))

    def _renew(self, bus: Bus, now: int) -> None:
        """Lengthen the lease, if it is still this one."""
        from bus import limits
        from bus.store import db, rooms

        with db.Write(bus.con) as con:
            rooms.renew(con, self.room, self.lease, now + limits.LEASE, os.getpid())


RETRY = 1000  # ms until a busy store is tried again, or a refused surrender looked at anew
