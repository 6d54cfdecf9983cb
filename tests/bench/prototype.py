"""The floor: a message bus of one SQLite table and one inotify watch, with no framework at all.

    prototype.py make FOLDER | send FOLDER NAME TEXT | listen FOLDER NAME
    prototype.py bell FOLDER | poll FOLDER     print a line for every change of FOLDER/n

`listen` prints the first message to NAME or `*` after its start, and ends.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

IN_MODIFY = 2


def connect(folder: str) -> sqlite3.Connection:
    """The one database."""
    con = sqlite3.connect(os.path.join(folder, "p.db"), isolation_level=None, timeout=10)
    con.execute("PRAGMA synchronous = NORMAL")
    return con


def make(folder: str) -> None:
    """Database and bell."""
    con = connect(folder)
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("CREATE TABLE m (seq INTEGER PRIMARY KEY, box TEXT, body TEXT)")
    con.close()
    ring(folder)


def ring(folder: str) -> None:
    """Everybody looks."""
    fd = os.open(os.path.join(folder, "n"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.pwrite(fd, b"x", 0)
    os.close(fd)


def watch(folder: str) -> int:
    """An inotify descriptor for the bell."""
    import ctypes

    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    libc.inotify_add_watch(fd, os.path.join(folder, "n").encode(), IN_MODIFY)
    return fd


def say(text: str) -> None:
    """One line, at once."""
    os.write(1, text.encode() + b"\n")


def send(folder: str, box: str, text: str) -> None:
    """Commit, then ring."""
    con = connect(folder)
    con.execute("INSERT INTO m (box, body) VALUES (?, ?)", (box, text))
    ring(folder)
    say("sent")


def listen(folder: str, box: str) -> None:
    """Block until there is one."""
    con = connect(folder)
    start = con.execute("SELECT COALESCE(MAX(seq), 0) FROM m").fetchone()[0]
    fd = watch(folder)
    while True:
        query = "SELECT body FROM m WHERE seq > ? AND box IN (?, '*')"
        row = con.execute(query, (start, box)).fetchone()
        if row:
            return say(row[0])
        os.read(fd, 4096)


def bell(folder: str) -> None:
    """The bare event, without a database."""
    fd = watch(folder)
    say("ready")
    while os.read(fd, 4096):
        say("rang")


def poll(folder: str) -> None:
    """What it replaces: a look every 250 ms."""
    path = os.path.join(folder, "n")
    seen = os.stat(path).st_mtime_ns
    say("ready")
    while True:
        time.sleep(0.25)
        now = os.stat(path).st_mtime_ns
        if now != seen:
            seen = now
            say("rang")


if __name__ == "__main__":
    commands: dict[str, Any] = {"make": make, "send": send, "listen": listen, "bell": bell, "poll": poll}
    commands[sys.argv[1]](*sys.argv[2:])
