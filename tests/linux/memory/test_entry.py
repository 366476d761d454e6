"""Entries that a disk has changed: none is an answer, and that is told."""

import os
import random
import re
import shutil
import sqlite3

import pytest
from memory_world import World, store

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import KEY_VALUE
from clawlite.linux.doctor import doctor_agent
from clawlite.linux.memory import database
from clawlite.linux.memory.database import FILE

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


def test_no_bit_of_the_log_loses_an_entry_in_silence(tmp_path, capfd):
    """A killed agent leaves a log: SQLite takes the first frame that differs for its end."""
    world = World(tmp_path / "agent")
    for number in range(4):
        world.put(store("notes", type=KEY_VALUE), "entry %d" % number, key=str(number))
    files = {name: (tmp_path / "agent" / name).read_bytes() for name in (FILE, FILE + "-wal")}
    world.stores.close()
    log, lost = files[FILE + "-wal"], 0
    last = len(log) - 1024 - 24  # where the last frame begins; the first one begins at 32
    for at in [None, *range(56), *range(last, last + 24), *range(60, len(log), 311)]:
        folder = tmp_path / "after"
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        if at is not None:
            (folder / (FILE + "-wal")).write_bytes(flipped(log, at, at % 8))
        try:
            found = [entry["content"] for entry in answer(folder)]
        except StoreError as e:
            found = [e.message]
        told = capfd.readouterr().err
        is_lost = found != ["entry %d" % number for number in range(4)]
        assert not is_lost or at is not None and "damaged" in told, (at, found, told)
        lost += is_lost
        if is_lost and "its log" in told:
            assert (folder / (FILE + "-wal.damaged")).read_bytes() == flipped(log, at, at % 8)
        shutil.rmtree(folder)
    assert lost > 20


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
        told += "of its entries were damaged" in capfd.readouterr().err
    assert told > places * 7


def test_what_differs_is_set_aside_once_and_the_rest_goes_on(written, capfd):
    path, data = written
    path.write_bytes(data.replace(CONTENT.encode(), CONTENT.encode().replace(b"240", b"940")))
    assert [entry["content"] for entry in answer(path.parent)] == ["first", "last"]
    assert capfd.readouterr().err == (
        "clawlite: the memory %s: 1 of its entries were damaged; they are no longer used, "
        "and are kept in its table damaged\n" % path
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


def test_an_entry_that_has_lost_its_checksum_is_set_aside(written, capfd):
    """A bit of a row's header hides its last column."""
    path, _ = written
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET crc=NULL WHERE content='last'")
    db.close()
    assert len(answer(path.parent)) == 2 and "1 of its entries" in capfd.readouterr().err


def test_a_database_of_the_version_before_gets_checksums(tmp_path):
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
    path.write_bytes(path.read_bytes().replace(b"from before", b"from befpre"))
    assert answer(tmp_path) == []


TALK, FACTS = store("talk"), store("facts", type=KEY_VALUE)
JOURNAL, AGED = store("journal", saves_wear=True), store("aged", max_age_s=3600)


@pytest.fixture
def filled(tmp_path):
    """A world whose stores have 40 entries each; its database is closed."""
    world = World(tmp_path)
    for number in range(40):
        for one in (TALK, FACTS, JOURNAL, AGED):
            text = "entry %d of %s, and the river ran on" % (number, one.name)
            world.put(
                one,
                text,
                key="key %d" % number if one is FACTS else None,
                metadata={"number": number},
            )
    world.stores.close()
    return world


def change(world, old: bytes, new: bytes):
    path = os.path.join(world.folder, database.FILE)
    with open(path, "r+b") as file:
        at = file.read().index(old)
        file.seek(at)
        file.write(new)
    world.open()


def test_the_id_of_the_newest_entry_is_not_given_again_when_it_was_set_aside(filled):
    change(filled, b"entry 39 of talk", b"entry 49 of talk")
    assert len(filled.all(TALK)) == 39
    assert filled.put(TALK, "new") == ["entry-1-41"]
    assert filled.again().put(TALK, "newer") == ["entry-1-42"]


def test_a_request_that_writes_sets_aside_what_it_meets(filled, capfd):
    change(filled, b"entry 39 of talk", b"entry 49 of talk")
    assert filled.put(TALK, "new") == ["entry-1-41"]
    assert "1 of its entries" in capfd.readouterr().err


def test_a_changed_entry_is_in_no_summary(filled):
    change(filled, b"entry 7 of talk", b"entry X of talk")
    ((_, _, text, before),) = filled.do("oldest", TALK, "", None)
    assert before == 39 and "entry X" not in text and "- entry 8 of talk" in text


def test_an_index_of_keys_that_names_another_entry_is_built_anew(filled):
    path = os.path.join(filled.folder, database.FILE)
    with open(path, "rb") as file:
        data = file.read()
    row = data.index(b"key 17entry")
    (index,) = [m.start() for m in re.finditer(b"key 17", data) if m.start() != row]
    with open(path, "wb") as file:
        file.write(data[:index] + b"key 16" + data[index + 6 :])
    filled.open()
    for number in (16, 17):
        (found,) = filled.found(FACTS, "key", "key %d" % number)
        assert found["metadata"] == {"number": number}


def everything(world) -> set:
    """Return all that the stores answer, whichever way they are asked."""
    found = []
    for one in (TALK, FACTS, JOURNAL, AGED):
        found += world.found(one, "first", None, 100) + world.found(one, "semantic", "river", 100)
        found += world.found(one, "time-range", None, 100)
    for number in range(40):
        found += world.found(FACTS, "key", "key %d" % number, 1)
    for entry in found:
        entry.pop("score", None)
    return set(map(repr, found))


@pytest.mark.parametrize("seed", range(3))
def test_no_bit_in_or_before_a_row_changes_an_answer_in_silence(filled, seed, capfd):
    """Content, columns and the headers of rows, in each kind of store."""
    random_ = random.Random(seed)
    path = os.path.join(filled.folder, database.FILE)
    filled.open()
    good = everything(filled)
    filled.stores.close()
    with open(path, "rb") as file:
        data = file.read()
    rows = [m.start() for m in re.finditer(b"and the river", data)]
    altered = told = 0
    for _ in range(100):
        for name in os.listdir(filled.folder):  # a damaged file may leave its log
            os.remove(os.path.join(filled.folder, name))
        at = random_.choice(rows) + random_.randrange(-60, 70)
        with open(path, "wb") as file:
            file.write(flipped(data, at, random_.randrange(8)))
        filled.open()
        try:
            found = everything(filled)
            assert not found - good, found - good
            altered += found != good
        except StoreError as e:
            assert "damaged" in e.message, e.message
            told += 1
        filled.stores.close()
        told += "of its entries were damaged" in capfd.readouterr().err
    assert told > 70 and told >= altered


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
    assert what.startswith("%s: 1 entries are damaged" % kept)
