"""`Client`: the long-lived process an agent is anchored on, which starts the agent's commands."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from tests.kit.procs import gone, send, start_directly, wait_for

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py")


class Client:
    """A process named like the real client. An orphan has no ancestors of ours: a person's shell.

    A person must have no harness in the ancestry, and the test run itself may be a child of one.
    """

    def __init__(self, folder: str, name: str, env: dict[str, str], *, orphan: bool) -> None:
        os.makedirs(folder, exist_ok=True)
        program = os.path.join(folder, name)
        if not os.path.lexists(program):
            os.symlink(sys.executable, program)  # the kernel names a process after the file it ran
        self._sock, theirs = socket.socketpair()
        with theirs:
            words = [program, "-I", "-S", PROGRAM, str(theirs.fileno())] + ["orphan"] * orphan
            self._child = subprocess.Popen(
                words,
                env=env,
                cwd=folder,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        if orphan:
            self._child.wait(10)
        self._answers = self._sock.makefile("r", encoding="utf-8")
        self._changed = threading.Condition()
        self._codes: dict[int, int] = {}
        self._started: list[str] = []
        self._starting = threading.Lock()
        self.alive = True
        self.pid = int(self._answers.readline().split()[1])
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            for line in self._answers:
                word, _, rest = line.strip().partition(" ")
                with self._changed:
                    if word == "ended":
                        pid, code = rest.split()
                        self._codes[int(pid)] = int(code)
                    else:
                        self._started.append(rest if word == "started" else line)
                    self._changed.notify_all()
        with self._changed:
            self.alive = False
            self._changed.notify_all()

    def starter(self, cwd: str, env: dict[str, str]):
        """A `start` for `Proc`: a child of the client, or of the test run once the client is dead."""
        if not self.alive:
            return start_directly(cwd, env)

        def start(argv, stdin: int, stdout: int, stderr: int):
            request = json.dumps({"argv": argv, "cwd": cwd, "env": env}).encode() + b"\n"
            with self._starting:
                sent = socket.send_fds(self._sock, [request], [stdin, stdout, stderr])
                self._sock.sendall(request[sent:])
                with self._changed:
                    self._changed.wait_for(lambda: self._started or not self.alive, 10)
                    answer = self._started.pop(0) if self._started else "the client died"
            assert answer.isdigit(), answer
            return int(answer), lambda timeout: self._ended(int(answer), timeout)

        return start

    def _ended(self, pid: int, timeout: float):
        """The exit code; None when nobody can know it since the client died first; False: still running."""
        with self._changed:
            known = self._changed.wait_for(lambda: pid in self._codes or not self.alive, timeout)
            if not known:
                return False
            if pid in self._codes:
                return self._codes.pop(pid)
        try:
            wait_for(lambda: gone(pid), timeout)
        except AssertionError:
            return False
        return None

    def die(self) -> None:
        """SIGKILL. What it started lives on, as with a real client."""
        send(self.pid, signal.SIGKILL)
        if self._child.pid == self.pid:
            self._child.wait(10)
        wait_for(lambda: gone(self.pid), what="the client's end")
        self._reader.join(10)

    def close(self) -> None:
        """Kill, reap, and let go of the socket."""
        if self.alive:
            self.die()
        self._answers.close()
        self._sock.close()
