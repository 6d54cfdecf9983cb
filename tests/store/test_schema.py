"""The schema, the way to it, and sixteen who make it at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

from bus.errors import BusError
from bus.store import check, db, migrate, schema
from tests.kit.world import ROOT

TABLES = {"rooms", "agents", "sessions", "members", "events", "mail", "wakes", "listeners", "notes", "config"}
INDEXES = {
    "rooms_lease",
    "members_room",
    "events_room",
    "events_public",
    "events_type",
    "mail_seq",
    "mail_unread",
    "mail_due",
    "mail_wake",
    "wakes_open",
    "wakes_at",
    "notes_room",
}
ROUNDS = 10
MAKER = """
import sys
sys.path.insert(0, sys.argv[1])
from bus.store import db, migrate
for directory in sys.argv[2:]:
    sys.stdin.read(1)
    migrate.make_bus(directory, "/work", "/work")
    with db.open_bus(directory) as bus, db.Write(bus.con) as con:
        con.execute("INSERT INTO config VALUES (?, '')", (str(__import__("os").getpid()),))
    print("done", flush=True)
"""


def made_of(con) -> list[tuple[str, str, str]]:
    rows = con.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    return [tuple(row) for row in rows]


def test_the_steps_lead_to_the_schema(fill):
    """Statement by statement under a lock gives what SQLite makes of the whole text."""
    plain = sqlite3.connect(":memory:")
    for _, statements in schema.MIGRATIONS:
        plain.executescript(statements)
    bus_room = "SELECT * FROM rooms WHERE id = 0"
    assert made_of(fill.con) == made_of(plain)
    assert fill.con.execute(bus_room).fetchall() == plain.execute(bus_room).fetchall()
    plain.close()


@pytest.mark.parametrize("version", range(1, schema.VERSION + 1))
def test_every_older_version_becomes_the_present_one(fill, tmp_path, monkeypatch, version):
    directory = str(tmp_path / "older")
    with monkeypatch.context() as then:
        then.setattr(schema, "VERSION", version)
        then.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:version])
        migrate.make_bus(directory, "/work", "/work")
    with db.open_bus(directory) as bus:
        assert made_of(bus.con) == made_of(fill.con)
        assert db.version(bus.con) == schema.VERSION
        assert check.check(bus.con) == []


def test_versions_count_up():
    numbers = [number for number, _ in schema.MIGRATIONS]
    assert numbers == list(range(1, schema.VERSION + 1))


def test_tables_and_indexes(fill):
    found = {(kind, name) for kind, name, _ in made_of(fill.con) if not name.startswith("sqlite_")}
    assert found >= {("table", name) for name in TABLES} | {("index", name) for name in INDEXES}


def test_a_fresh_bus_is_sound(fill):
    assert check.check(fill.con) == []
    assert db.version(fill.con) == schema.VERSION
    assert fill.con.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert fill.con.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_nobody_else_can_read_it(fill):
    for name in ("bus.db", "bus.json"):
        assert os.stat(os.path.join(fill.dir, name)).st_mode & 0o077 == 0
    assert os.stat(fill.dir).st_mode & 0o077 == 0


def test_it_is_described(fill):
    told = db.describe(fill.dir)
    assert (told["repository"], told["common_dir"], told["schema"]) == ("/work", "/work", schema.VERSION)


def test_making_it_again_changes_nothing(fill):
    before, told = list(fill.con.iterdump()), db.describe(fill.dir)
    migrate.make_bus(fill.dir, "/other", "/other")
    assert list(fill.con.iterdump()) == before
    assert db.describe(fill.dir) == told


def test_a_newer_database_is_refused_and_not_touched(fill):
    fill.con.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    fill.con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fill.bus.close()
    path = os.path.join(fill.dir, "bus.db")
    with open(path, "rb") as file:
        before = file.read()
    with pytest.raises(BusError) as refused:
        db.open_bus(fill.dir)
    assert refused.value.code == "schema_too_new"
    assert refused.value.details == {"found": schema.VERSION + 1, "known": schema.VERSION}
    with open(path, "rb") as file:
        assert file.read() == before


def test_an_older_database_is_brought_up_to_date_in_one_step(fill, monkeypatch):
    steps = (*schema.MIGRATIONS, (schema.VERSION + 1, "CREATE TABLE later (x);\nINSERT INTO later VALUES (1);\n"))
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with db.open_bus(fill.dir) as bus:
        assert bus.con.execute("SELECT x FROM later").fetchall() == [(1,)]
        assert db.version(bus.con) == schema.VERSION


def test_a_step_that_fails_leaves_the_version_before(fill, monkeypatch):
    before = list(fill.con.iterdump())
    steps = (
        *schema.MIGRATIONS,
        (schema.VERSION + 1, "CREATE TABLE later (x);\n"),
        (schema.VERSION + 2, "CREATE TABLE later (x);\n"),
    )
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 2)
    with pytest.raises(BusError) as refused:
        db.open_bus(fill.dir)
    assert refused.value.code == "store_unusable"
    assert list(fill.con.iterdump()) == before


def test_sixteen_processes_at_once_find_one_bus(tmp_path):
    buses = [str(tmp_path / f"bus-{n}") for n in range(ROUNDS)]
    makers = [
        subprocess.Popen(
            [sys.executable, "-I", "-c", MAKER, ROOT, *buses],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(16)
    ]
    try:
        for directory in buses:
            for maker in makers:
                maker.stdin.write("x")
                maker.stdin.flush()
            said = [maker.stdout.readline() for maker in makers]
            assert said == ["done\n"] * 16, [maker.stderr.read() for maker in makers if maker.poll()]
            with db.open_bus(directory) as bus:
                assert bus.con.execute("SELECT COUNT(*) FROM config").fetchone()[0] == 16
                assert check.check(bus.con) == []
            assert db.describe(directory)["uuid"]
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()
