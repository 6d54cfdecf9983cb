"""The program that stands for a harness client in `tt demo`: it starts `tt` as its own child.

Run by path with a bare interpreter, so it imports nothing of ours. Each request on the socket
is one JSON line: `{"argv", "env", "cwd"}` with the two output streams attached is answered by
the pid, `{"wait": pid}` by the exit code. Kept true: it ends with the demo, whatever kills
that, and takes its commands along.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

LONGEST = 1 << 16  # bytes of one request


def serve(sock: socket.socket) -> None:
    """Start and reap children until the other side is gone; then kill what still runs."""
    children: dict[int, subprocess.Popen[bytes]] = {}
    try:
        while True:
            data, streams, _, _ = socket.recv_fds(sock, LONGEST, 2)
            if not data:
                return
            answer = _answer(json.loads(data), streams, children)
            sock.sendall(f"{answer}\n".encode())
    except ConnectionError:  # the demo ended in the middle of a question
        return
    finally:
        for child in children.values():
            child.kill()
            child.wait()


def _answer(request: dict[str, object], streams: list[int], children: dict[int, subprocess.Popen[bytes]]) -> int:
    """Carry out one request."""
    if "wait" in request:
        pid = request["wait"]
        assert isinstance(pid, int)  # noqa: S101  # for the type checker; both sides are ours
        return children.pop(pid).wait()
    child = _start(request, streams)
    children[child.pid] = child
    for stream in streams:
        os.close(stream)
    return child.pid


def _start(request: dict[str, object], streams: list[int]) -> subprocess.Popen[bytes]:
    """One command, in an environment made from scratch."""
    out, err = streams
    named: dict[str, object] = {name: request[name] for name in ("cwd", "env")}
    return subprocess.Popen(request["argv"], stdin=subprocess.DEVNULL, stdout=out, stderr=err, **named)  # type: ignore[call-overload,no-any-return]


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        serve(ours)
