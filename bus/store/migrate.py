"""Making and migrating a bus, under a file lock, all pending steps in one transaction.

Kept true: sixteen first commands at once on a fresh data directory find one bus and no
error; a database is either wholly at a version or wholly at the one before.
"""

from __future__ import annotations

import json
import os
import sqlite3

import filelock

from bus import clock, crash, ids, limits, places
from bus.errors import BusError
from bus.store import db, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make_bus(directory: str, repo: str, key: str) -> None:
    """Make the bus directory, its database and `bus.json`; nothing to do when they are there.

    `repo` is the repository or workspace path, `key` what the directory's name hashes.
    Raises network_file_system, store_unusable, store_busy.
    """
    places.ensure_private(directory)
    with _lock(directory):
        _bring_up_to_date(directory)
        _write_description(directory, repo, key)


def migrate(directory: str) -> None:
    """Bring an older database up to date, once, whoever comes first."""
    with _lock(directory):
        _bring_up_to_date(directory)


def _lock(directory: str) -> filelock.BaseFileLock:
    """The lock under which a bus is made or changed."""
    return filelock.FileLock(os.path.join(directory, ".make.lock"), timeout=limits.BUSY * 3 / 1000, mode=0o600)


def _bring_up_to_date(directory: str) -> None:
    """Apply what is missing. The caller holds the lock."""
    path = os.path.join(directory, "bus.db")
    try:
        con = sqlite3.connect(path, isolation_level=None, timeout=limits.BUSY / 1000)
        try:
            con.execute(f"PRAGMA busy_timeout = {limits.BUSY}")
            if db.version(con) >= schema.VERSION:
                return
            os.chmod(path, 0o600)
            _prove_wal(con)
            _apply(con)
        finally:
            con.close()
    except sqlite3.Error as error:
        raise db.translate(error, path) from error


def _prove_wal(con: sqlite3.Connection) -> None:
    """Switch to the write-ahead log and prove by the answer that it works on this file system."""
    mode = con.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise BusError(
            "store_unusable",
            f"SQLite's write-ahead log does not work here (journal mode stays {mode})",
            "set TALKING_STICK_DATA_DIR to a directory on a local disk",
        )


def _apply(con: sqlite3.Connection) -> None:
    """Run every pending step and note the version, in one transaction."""
    con.execute("BEGIN IMMEDIATE")
    try:
        found = db.version(con)
        for number, statements in schema.MIGRATIONS:
            if number > found:
                for statement in _split(statements):
                    con.execute(statement)
        con.execute(f"PRAGMA user_version = {schema.VERSION}")
        crash.point("before_migrate")
        con.execute("COMMIT")
        crash.point("after_migrate")
    except BaseException:
        if con.in_transaction:
            con.execute("ROLLBACK")
        raise


def _split(statements: str) -> list[str]:
    """Single statements: `executescript` would commit the open transaction first."""
    found, current = [], ""
    for line in statements.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return found


def _write_description(directory: str, repo: str, key: str) -> None:
    """Write `bus.json` once: temp file, then rename, so that nobody reads half of it."""
    path = os.path.join(directory, "bus.json")
    if os.path.exists(path):
        return
    told: dict[str, Any] = {
        "uuid": ids.new_id("", 16),
        "repository": repo,
        "common_dir": key,
        "kitchen": None,
        "created": clock.iso(clock.now()),
        "schema": schema.VERSION,
    }
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)
        file.write("\n")
    crash.point("before_replace")
    os.replace(temporary, path)
