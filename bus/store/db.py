"""One connection factory, one write transaction, one place that makes and migrates a bus.

Kept true: pragmas are set before anything else; every write is `BEGIN IMMEDIATE`; the
database file is never opened by anything but SQLite, since closing another descriptor of
it would drop the process's locks; a connection is never used by a forked child.
"""

from __future__ import annotations

import os

from bus import crash, ids, limits, quickjson
from bus.errors import BusError
from bus.store import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from types import TracebackType
    from typing import Any, Self
else:
    try:
        import _sqlite3 as sqlite3  # the C part: `sqlite3` itself loads datetime, 2 ms
    except ImportError:
        import sqlite3  # another Python

Error = sqlite3.Error  # what SQLite refuses; `translate` says it in our words

_CODES = {
    sqlite3.SQLITE_BUSY: (
        "store_busy",
        "another program holds the database of this bus",
        "try again in a moment",
    ),
    sqlite3.SQLITE_LOCKED: (
        "store_busy",
        "another program holds the database of this bus",
        "try again in a moment",
    ),
    sqlite3.SQLITE_READONLY: ("store_read_only", "the database of this bus is read-only", None),
    sqlite3.SQLITE_FULL: (
        "store_full",
        "the disk that holds this bus is full",
        "free some space; nothing was written",
    ),
}


def translate(error: sqlite3.Error, where: str = "") -> BusError:
    """The stable code for what SQLite said; the original text is kept as `detail`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    name, message, hint = _CODES.get(
        code,
        (
            "store_unusable",
            "the database of this bus cannot be used",
            "it may be damaged or, inside a sandbox, not writable: allow the data directory",
        ),
    )
    return BusError(name, message, hint, detail=str(error), **({"path": where} if where else {}))


class Bus:
    """An open bus: its directory and its connection. Close it, or use it as a context manager."""

    __slots__ = ("con", "dir")

    def __init__(self, directory: str, con: sqlite3.Connection) -> None:
        """Wrap what `open_bus` made."""
        self.dir = directory
        self.con = con

    @property
    def name(self) -> str:
        """The bus as people see it: the last part of its directory."""
        return os.path.basename(self.dir)

    def repository(self) -> str:
        """The repository or workspace as people know it, by `bus.json`."""
        return str(describe(self.dir).get("repository", self.name))

    def notify_path(self, agent: str) -> str:
        """The notify file of an agent."""
        return os.path.join(self.dir, ids.file_name(agent) + ".notify")

    def agent_bell(self, agent: str) -> str:
        """The directory whose bell is rung for one agent."""
        return os.path.join(self.dir, "bell", ids.file_name(agent))

    def room_bell(self, room: int) -> str:
        """The directory whose bell is rung for turn and membership changes of a room."""
        return os.path.join(self.dir, "bell", f"room-{room}")

    def lock(self, agent: str, kind: str) -> str:
        """The lock that a listener of this kind holds for its life."""
        return os.path.join(self.dir, "locks", ids.file_name(agent), kind)

    def lease_lock(self, lease: str) -> str:
        """The lock that the guardian of a lease holds for its life."""
        return os.path.join(self.dir, "locks", "lease-" + lease)

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        self.con.close()

    def __enter__(self) -> Self:
        """Nothing more to open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close, whatever happened."""
        self.close()


class Write:
    """One write transaction: commits at the end of the block, rolls back on any exception.

    Raises `BusError` store_busy, store_read_only, store_full or store_unusable; nothing
    is written then.
    """

    __slots__ = ("con",)

    def __init__(self, con: sqlite3.Connection) -> None:
        """Remember the connection; the transaction begins with the block."""
        self.con = con

    def __enter__(self) -> sqlite3.Connection:
        """Begin at once as a writer: a read that turns into a write fails under contention."""
        try:
            self.con.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise translate(error) from error
        return self.con

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Commit, or roll back and say in our words what SQLite refused."""
        if kind is None:
            crash.point("before_commit")
            try:
                self.con.execute("COMMIT")
            except sqlite3.Error as refused:
                self._roll_back()
                raise translate(refused) from refused
            crash.point("after_commit")
            return
        self._roll_back()
        if isinstance(error, sqlite3.Error):
            raise translate(error) from error

    def _roll_back(self) -> None:
        """Undo; SQLite has already done so after some errors (disk full)."""
        if self.con.in_transaction:
            self.con.execute("ROLLBACK")


class Read:
    """One consistent view over several reads. Ends at once, so that checkpoints can run."""

    __slots__ = ("con",)

    def __init__(self, con: sqlite3.Connection) -> None:
        """Remember the connection."""
        self.con = con

    def __enter__(self) -> sqlite3.Connection:
        """Begin a deferred transaction, which only ever reads."""
        self.con.execute("BEGIN")
        return self.con

    def __exit__(self, *_: object) -> None:
        """End it; nothing was written."""
        if self.con.in_transaction:
            self.con.execute("COMMIT")


def connect(directory: str, *, busy_ms: int | None = None) -> sqlite3.Connection:
    """A connection to an existing bus, with every pragma set. Never makes the file."""
    path = os.path.join(directory, "bus.db")
    wait = limits.BUSY if busy_ms is None else busy_ms
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=rw"
    try:
        con = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=wait / 1000, check_same_thread=False)
        con.execute(f"PRAGMA busy_timeout = {wait}")
        con.execute("PRAGMA foreign_keys = ON")
        con.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return con


def version(con: sqlite3.Connection) -> int:
    """The schema version of the database: one page read."""
    try:
        return int(con.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error as error:
        raise translate(error) from error


def open_bus(directory: str, *, busy_ms: int | None = None) -> Bus:
    """Open an existing bus, migrating it if this program is newer than its database.

    Raises `schema_too_new` when the database is newer, without writing.
    """
    con = connect(directory, busy_ms=busy_ms)
    try:
        found = version(con)
    except BusError:
        con.close()
        raise
    if found != schema.VERSION:
        con.close()
        if found > schema.VERSION:
            raise _too_new(found)
        from bus.store import migrate  # needs filelock, and is rarely needed

        migrate.migrate(directory)
        con = connect(directory, busy_ms=busy_ms)
    return Bus(directory, con)


def _too_new(found: int) -> BusError:
    """The refusal of a database that a newer program made."""
    return BusError(
        "schema_too_new",
        f"this bus was written by a newer talking-stick (schema {found}, this program knows {schema.VERSION})",
        "update with `tt self-update`, or use the newer program",
        found=found,
        known=schema.VERSION,
    )


def describe(directory: str) -> dict[str, Any]:
    """The contents of `bus.json`; empty when it is missing or unreadable."""
    try:
        with open(os.path.join(directory, "bus.json"), encoding="utf-8") as file:
            found = quickjson.loads(file.read())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
