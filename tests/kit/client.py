"""The program that stands for a harness client or a shell: it starts `tt` as its own child.

Run by `Client` (tests/kit/anchor.py) with `python -I -S client.py FD [orphan]` under the name of
the client (`claude`, `codex`, `sh`), so that a started `tt` has the ancestry of the real thing.
Each request is one JSON line with the child's three standard streams attached; the answers are
`started PID` and, whenever a child is over, `ended PID CODE`. Ends when its socket closes,
which is when the test run ended: its children are killed then, so that none survives a crash of pytest.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading


def serve(sock: socket.socket) -> None:
    """Start children until the other side is gone."""
    lock = threading.Lock()
    children: dict[int, subprocess.Popen] = {}

    def say(line: str) -> None:
        with lock:
            sock.sendall(line.encode() + b"\n")

    def reap(child) -> None:
        code = child.wait()
        children.pop(child.pid, None)
        try:
            say(f"ended {child.pid} {code}")
        except OSError:
            pass

    say(f"ready {os.getpid()}")
    while True:
        data, streams, _, _ = socket.recv_fds(sock, 1 << 16, 3)
        while data and not data.endswith(b"\n"):
            data += sock.recv(1 << 16)
        if not data:
            break
        request = json.loads(data)
        try:
            child = subprocess.Popen(
                request["argv"],
                cwd=request["cwd"],
                env=request["env"],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
            )
        except OSError as problem:
            say(f"failed {problem}")
        else:
            children[child.pid] = child
            say(f"started {child.pid}")
            threading.Thread(target=reap, args=(child,), daemon=True).start()
        for stream in streams:
            os.close(stream)
    for child in list(children.values()):
        child.kill()


def main(arguments: list[str]) -> None:
    """Serve; as an orphan first cut the ties to whoever started the test run."""
    if "orphan" in arguments and os.fork():
        os._exit(0)
    with socket.socket(fileno=int(arguments[0])) as sock:
        serve(sock)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
