"""Processes as tests need them: started, read line by line, stopped, killed, always reaped."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time

import psutil


def wait_for(predicate, deadline: float = 10, what: str = ""):
    """The first true answer of `predicate`, looked at every few ms; the deadline (s) is a hang guard."""
    until = time.monotonic() + deadline
    while True:
        answer = predicate()
        if answer:
            return answer
        if time.monotonic() > until:
            message = f"not within {deadline} s: {what or predicate}"
            raise AssertionError(message)
        time.sleep(0.004)


def gone(pid: int) -> bool:
    """Is this process over? A zombie that its parent has not collected yet counts as over."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def send(pid: int, number: int) -> None:
    """Signal one process; one that is over already is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def holding(text: str) -> list[int]:
    """Pids of the processes with this text in their command line or environment, ourselves excepted."""
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            words = [*process.cmdline(), *process.environ().values()]
        except (psutil.Error, OSError):
            continue
        if any(text in word for word in words):
            found.append(process.pid)
    return found


def kill_holding(text: str) -> None:
    """Kill all of them, each by its pid, until none is left (one may just be starting another)."""
    assert len(text) > 12, "too short to be a scratch folder"
    for _ in range(20):
        pids = [pid for pid in holding(text) if not gone(pid)]
        if not pids:
            return
        for pid in pids:
            send(pid, signal.SIGKILL)
        for pid in pids:
            wait_for(lambda pid=pid: gone(pid), what=f"the end of {pid}")
    message = f"processes keep appearing: {holding(text)}"
    raise AssertionError(message)


class Run:
    """A finished command: exit code (negative: signal), text of both streams."""

    def __init__(self, argv, code: int | None, out: str, err: str) -> None:
        self.argv, self.code, self.out, self.err = argv, code, out, err

    @property
    def json(self):
        """The result on stdout: one JSON value, or a list when several lines hold one each."""
        try:
            return json.loads(self.out)
        except ValueError:
            pass
        try:
            lines = [json.loads(line) for line in self.out.splitlines() if line]
        except ValueError:
            lines = []
        if not lines:
            message = f"no JSON on stdout: {self!r}"
            raise AssertionError(message)
        return lines

    @property
    def error(self):
        """The error object, the last JSON line of stderr, or None."""
        for line in reversed(self.err.splitlines()):
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and "error" in found:
                    return found
        return None

    def ok(self):
        """This run, which must have ended with 0; the failure shows both streams."""
        assert self.code == 0, repr(self)
        return self

    def failed(self, code: str, exit_code: int | None = None):
        """This run, which must have been refused with that error code."""
        assert self.error, repr(self)
        assert self.error["error"] == code, repr(self)
        assert self.code == exit_code if exit_code is not None else self.code in (1, 2), repr(self)
        return self

    def __repr__(self) -> str:
        return f"{' '.join(self.argv)} → {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


class Proc:
    """A running command. Both streams are read all the time, so that it never blocks on a full pipe."""

    def __init__(self, argv, start, data: bytes | None = None) -> None:
        """`start(argv, stdin, stdout, stderr) -> (pid, ended)` starts it; `ended(timeout) -> code | None`."""
        self.argv = argv
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._out: list[str] = []
        self._err: list[bytes] = []
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        stdin, feed = (os.open(os.devnull, os.O_RDONLY), None) if data is None else os.pipe()
        try:
            self.pid, self._ended = start(argv, stdin, out_end, err_end)
        except BaseException:
            for end in (out, err, *((feed,) if feed is not None else ())):
                os.close(end)
            raise
        finally:
            for end in (stdin, out_end, err_end):
                os.close(end)
        jobs = [(self._read_out, out), (self._read_err, err)]
        if feed is not None:
            jobs.append((lambda end: self._feed(end, data or b""), feed))
        self._threads = [threading.Thread(target=job, args=(end,), daemon=True) for job, end in jobs]
        for thread in self._threads:
            thread.start()

    def _read_out(self, end: int) -> None:
        with open(end, encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            for line in stream:
                self._out.append(line)
                self.lines.put(line)
        self.lines.put(None)

    def _read_err(self, end: int) -> None:
        with open(end, "rb") as stream:
            self._err.extend(iter(stream.readline, b""))

    @staticmethod
    def _feed(end: int, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError), open(end, "wb") as stream:
            stream.write(data)

    @property
    def out(self) -> str:
        """What it has printed so far."""
        return "".join(self._out)

    @property
    def err(self) -> str:
        """What it has said on stderr so far."""
        return b"".join(self._err).decode(errors="replace")

    def line(self, timeout: float = 10):
        """The next line of stdout, as JSON where it is JSON, else as text; None at its end."""
        try:
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            message = f"no line within {timeout} s: {Run(self.argv, None, self.out, self.err)!r}"
            raise AssertionError(message) from None
        if line is None:
            self.lines.put(None)  # whoever asks again gets the same answer
            return None
        try:
            return json.loads(line)
        except ValueError:
            return line.rstrip("\n")

    def wait(self, timeout: float = 20) -> Run:
        """Its end. Also a failure: streams still open then, since a harness would hang on them."""
        code = self._ended(timeout)
        if code is False:
            self.kill()
            message = f"still running after {timeout} s: {Run(self.argv, None, self.out, self.err)!r}"
            raise AssertionError(message)
        for thread in self._threads:
            thread.join(5)
        run = Run(self.argv, code, self.out, self.err)
        assert not any(thread.is_alive() for thread in self._threads), f"a child kept our streams: {run!r}"
        return run

    @property
    def running(self) -> bool:
        """Has it not ended yet?"""
        return not gone(self.pid)

    def signal(self, number: int) -> None:
        """Send a signal."""
        if self.running:
            send(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        wait_for(lambda: gone(self.pid), what=f"the end of {self.pid}")

    def stop(self) -> None:
        """SIGSTOP: alive, but does nothing."""
        self.signal(signal.SIGSTOP)
        wait_for(lambda: psutil.Process(self.pid).status() == psutil.STATUS_STOPPED, what="a stop")

    def cont(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)


def start_directly(cwd: str, env: dict[str, str]):
    """A `start` for `Proc`: a child of the test process itself."""

    def start(argv, stdin: int, stdout: int, stderr: int):
        child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)

        def ended(timeout: float):
            try:
                return child.wait(timeout)
            except subprocess.TimeoutExpired:
                return False

        return child.pid, ended

    return start
