"""The write transaction, and what a store that cannot be written says."""

from __future__ import annotations

import os
import sqlite3

import pytest

from bus import limits
from bus.errors import BusError
from bus.store import config, db, events


def value(fill, key="x"):
    with db.open_bus(fill.dir) as other:
        return config.get(other.con, key)


def refusal(call) -> BusError:
    with pytest.raises(BusError) as refused:
        call()
    return refused.value


def test_a_block_commits(fill):
    with db.Write(fill.con) as con:
        config.put(con, "x", "1")
    assert value(fill) == "1"


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), BusError("usage", "no")])
def test_any_exception_rolls_back_and_is_passed_on(fill, error):
    def broken():
        with db.Write(fill.con) as con:
            config.put(con, "x", "1")
            raise error

    with pytest.raises(type(error)) as seen:
        broken()
    assert seen.value is error
    assert not fill.con.in_transaction
    assert value(fill) is None


def test_what_sqlite_refuses_is_said_in_our_words_and_rolled_back(fill):
    def broken():
        with db.Write(fill.con) as con:
            config.put(con, "x", "1")
            con.execute("INSERT INTO members (agent, room, cursor, rank, joined_at) VALUES ('nobody', 99, 0, 1, 0)")

    assert refusal(broken).code == "store_unusable"
    assert value(fill) is None


def test_a_write_begins_as_a_writer(fill):
    """A read that turns into a write would fail under contention, however long it waits."""
    with db.Write(fill.con), db.open_bus(fill.dir, busy_ms=1) as other:
        assert refusal(lambda: db.Write(other.con).__enter__()).code == "store_busy"


def test_busy(fill):
    with db.open_bus(fill.dir, busy_ms=20) as other, db.Write(fill.con) as con:
        config.put(con, "x", "held")

        def late():
            with db.Write(other.con) as con:
                config.put(con, "y", "1")

        error = refusal(late)
    assert error.code == "store_busy"
    assert "lock" in error.details["detail"]
    assert (value(fill), value(fill, "y")) == ("held", None)


def test_a_reader_is_never_busy(fill):
    with db.Write(fill.con), db.open_bus(fill.dir, busy_ms=1) as other:
        assert config.everything(other.con) == {}


def test_a_verb_waits_for_a_foreign_writer(fill):
    with db.open_bus(fill.dir) as other:
        assert other.con.execute("PRAGMA busy_timeout").fetchone()[0] == limits.BUSY


def test_read_only(fill):
    fill.con.execute("PRAGMA query_only = ON")

    def write():
        with db.Write(fill.con) as con:
            config.put(con, "x", "1")

    assert refusal(write).code == "store_read_only"
    assert not fill.con.in_transaction


def test_full(fill):
    before = list(fill.con.iterdump())
    pages = fill.con.execute("PRAGMA page_count").fetchone()[0]
    fill.con.execute(f"PRAGMA max_page_count = {pages}")

    def write():
        with db.Write(fill.con) as con:
            for number in range(100):
                config.put(con, f"key {number}", "x" * 1000)

    assert refusal(write).code == "store_full"
    assert not fill.con.in_transaction
    assert list(fill.con.iterdump()) == before


def test_a_file_that_is_no_database(fill):
    fill.bus.close()
    for name in ("bus.db-wal", "bus.db-shm"):
        if os.path.exists(os.path.join(fill.dir, name)):
            os.unlink(os.path.join(fill.dir, name))
    with open(os.path.join(fill.dir, "bus.db"), "wb") as file:
        file.write(b"this is no database " * 500)
    error = refusal(lambda: db.open_bus(fill.dir))
    assert error.code == "store_unusable"
    assert error.details["detail"]


def test_no_file(tmp_path):
    error = refusal(lambda: db.connect(str(tmp_path)))
    assert error.code == "store_unusable"
    assert os.listdir(tmp_path) == [], "connecting never makes the file"


@pytest.mark.parametrize("name", ["100% sure?", "a#b", "mode=ro&x", "ä ö", "a%20b"])
def test_strange_paths(tmp_path, name):
    from bus.store import migrate

    directory = str(tmp_path / name)
    migrate.make_bus(directory, directory, directory)
    with db.open_bus(directory) as bus, db.Write(bus.con) as con:
        config.put(con, "x", "1")
    assert os.path.exists(os.path.join(directory, "bus.db"))


def test_a_consistent_view_over_several_reads(fill):
    with db.Read(fill.con) as con:
        first = events.newest(con)
        with db.open_bus(fill.dir) as other, db.Write(other.con) as writing:
            events.append(writing, events.Draft(fill.room, "message", "ann", 0, {}))
        assert events.newest(con) == first
    assert events.newest(fill.con) == first + 1


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (sqlite3.SQLITE_BUSY, "store_busy"),
        (sqlite3.SQLITE_BUSY | 2 << 8, "store_busy"),
        (sqlite3.SQLITE_LOCKED, "store_busy"),
        (sqlite3.SQLITE_READONLY | 5 << 8, "store_read_only"),
        (sqlite3.SQLITE_FULL, "store_full"),
        (sqlite3.SQLITE_CORRUPT, "store_unusable"),
        (sqlite3.SQLITE_CANTOPEN, "store_unusable"),
        (0, "store_unusable"),
    ],
)
def test_codes(number, code):
    error = sqlite3.OperationalError("as it was")
    error.sqlite_errorcode = number
    found = db.translate(error, "/somewhere/bus.db")
    assert found.code == code
    assert found.details == {"detail": "as it was", "path": "/somewhere/bus.db"}
