"""Entries that a disk has changed: none is an answer, and that is told."""

import os
import re
import sqlite3

import pytest
from memory_world import World, store

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import KEY_VALUE
from clawlite.linux.admin import doctor_agent
from clawlite.linux.memory import database

CONTENT = "The lemon tree wants 240 ml on Tuesday."
ALL = ("time-range", (0, 1 << 50), 10, None)


@pytest.fixture
def written(tmp_path):
    """Return (path of a database with three entries in it alone, its bytes)."""
    world = World(tmp_path)
    notes = store("notes", type=KEY_VALUE)
    world.put(notes, "first", key="one", metadata={"by": "test"})
    world.put(notes, CONTENT, key="lemon", metadata={"by": "a person"})
    world.put(notes, "last", key="three")
    world.stores.close()
    path = tmp_path / database.FILE
    assert not os.path.exists(str(path) + "-wal")
    return path, path.read_bytes()


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def answer(folder) -> list:
    """Return the entries as an agent gets them."""
    world = World(folder)
    try:
        return world.do("query", store("notes", type=KEY_VALUE), "", ALL)["entries"]
    finally:
        world.stores.close()


def test_no_bit_that_changes_makes_another_entry(written, capfd):
    """Each bit of an entry's key, content and metadata in turn."""
    path, data = written
    whole = answer(path.parent)
    assert [entry["content"] for entry in whole] == ["first", CONTENT, "last"]
    (at,) = [m.start() for m in re.finditer(re.escape(CONTENT.encode()), data)]
    at -= len("lemon")
    places = len("lemon") + len(CONTENT) + len('\x00{"by":"a person"}')
    told = 0
    for number in range(places * 8):
        path.write_bytes(flipped(data, at + number // 8, number % 8))
        try:
            found = answer(path.parent)
        except StoreError as e:
            assert "damaged" in e.message, e.message
            continue
        assert all(entry in whole for entry in found), found
        told += "were not as they were written" in capfd.readouterr().err
    assert told > places * 7


def test_what_differs_is_set_aside_once_and_the_rest_goes_on(written, capfd):
    path, data = written
    path.write_bytes(data.replace(CONTENT.encode(), CONTENT.encode().replace(b"240", b"940")))
    assert [entry["content"] for entry in answer(path.parent)] == ["first", "last"]
    assert capfd.readouterr().err == (
        "clawlite: the memory %s: 1 of its entries were not as they were written; they are no "
        "longer used, and its table damaged has them as they are\n" % path
    )
    assert [entry["content"] for entry in answer(path.parent)] == ["first", "last"]
    assert capfd.readouterr().err == ""
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT key, content FROM damaged").fetchall() == [
            ("lemon", CONTENT.replace("240", "940"))
        ]
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


def test_a_file_that_cannot_be_written_gives_an_error_and_no_altered_entry(written):
    path, data = written
    path.write_bytes(data.replace(b"240 ml", b"940 ml"))
    world = World(path.parent)
    notes = store("notes", type=KEY_VALUE)
    try:
        world.stores._db.run("SELECT 1")
        world.stores._db.run("PRAGMA query_only=1")
        with pytest.raises(StoreError, match="it cannot be written"):
            world.do("query", notes, "", ALL)
    finally:
        world.stores.close()


def test_entries_of_a_version_without_checksums_are_read_as_they_are(written):
    path, _ = written
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET crc=NULL")
    db.close()
    assert len(answer(path.parent)) == 3


def test_a_database_of_the_version_before_gets_the_column(tmp_path):
    path = tmp_path / database.FILE
    with sqlite3.connect(path) as db:
        for script in database.MIGRATIONS[:3]:
            for statement in script.split(";\n"):
                db.execute(statement)
        db.execute("PRAGMA user_version=3")
        db.execute("INSERT INTO places VALUES(1, 'notes', '', 0)")
        row = ((1 << 40) + 1, 1_799_999_999_000, "k", "from before", False, None, None)
        db.execute("INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?)", row)
    db.close()
    assert [entry["content"] for entry in answer(tmp_path)] == ["from before"]


def test_the_doctor_compares_all_entries(written, tmp_path):
    path, data = written
    os.makedirs(tmp_path / "state/agent/memory")
    kept = tmp_path / "state/agent/memory" / database.FILE

    class Here:
        state = str(tmp_path / "state")

        def may(self, *_):
            return True

    kept.write_bytes(data)
    assert doctor_agent.databases(Here())[0][1] == doctor_agent.OK
    kept.write_bytes(data.replace(b"240 ml", b"940 ml"))
    ((_, result, what, _),) = doctor_agent.databases(Here())
    assert result == doctor_agent.WRONG
    assert what.startswith("%s: 1 entries are not as they were written" % kept)
