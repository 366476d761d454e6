"""Wear-saving stores: what goes through the journal is found at once, is there once, and costs
little.
"""

import os

import pytest
from memory_world import World, store

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import CHECKPOINT, CONVERSATION, KEY_VALUE, SEMANTIC, SUMMARIZE
from clawlite.linux.memory import memory_journal as journal
from clawlite.linux.memory.stores import Stores


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.stores.close()


def thrifty(name: str = "s", **fields):
    return store(name, saves_wear=True, **fields)


def left(world) -> World:
    """Return the world as the next process finds it after kill -9."""
    world.stores._journal._log.close()
    world.open()
    return world


def test_entries_are_found_before_they_are_in_the_database(world):
    talk, facts, notes, tasks = (
        thrifty(),
        thrifty("k", type=KEY_VALUE),
        thrifty("n", type=SEMANTIC),
        thrifty("t", type=CHECKPOINT, snapshots=1),
    )
    for number in range(3):
        world.put(talk, "entry %d" % number)
        world.put(facts, {"value": number}, key="k", metadata={"n": number})
        world.put(notes, "pump %d" % number, vector=[1.0, number])
        world.put(tasks, {"task_id": "a", "step_index": number}, key="a")
    assert world.rows() == 4, "the first entry of each place is a commit of its own"
    assert world.all(talk) == ["entry 0", "entry 1", "entry 2"]
    (fact,) = world.found(facts, "key", "k")
    assert (
        fact["content"] == {"value": 2}
        and fact["metadata"] == {"n": 2}
        and fact["id"] == "entry-2-3"
    )
    assert world.search(notes, "pump 2", 1) == ["pump 2"] and world.search(
        notes, "", 1, [1.0, 0.0]
    ) == ["pump 0"]
    assert [entry["content"]["step_index"] for entry in world.found(tasks, "key", "a")] == [2]
    assert world.rows() == 12 and os.path.getsize(world.stores._journal.path) == 0


def test_the_next_process_has_what_the_killed_one_had(world):
    one = thrifty()
    world.put(one, "a")
    again = world.id()
    ids = [world.put(one, "b"), world.put(one, "c", id=again)]
    assert world.rows() == 1
    left(world)
    assert world.put(one, "c", id=again) == ids[1], "a retry is known"
    assert world.put(one, "d") == ["entry-1-4"] and world.all(one) == ["a", "b", "c", "d"]


def test_a_store_that_saves_no_wear_any_more_loses_nothing(world):
    world.put(thrifty(), "a")
    world.put(thrifty(), "b")
    left(world)
    assert world.put(store(), "c") == ["entry-1-3"] and world.all(store()) == ["a", "b", "c"]


def test_what_is_folded_and_not_yet_emptied_is_there_once(world, monkeypatch):
    one = thrifty()
    world.put(one, "a")
    world.put(one, "b")
    # the process ends here
    monkeypatch.setattr(journal.Journal, "clear", lambda self, sequence: 1 / 0)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        world.all(one)
    monkeypatch.undo()
    assert os.path.getsize(world.stores._journal.path) and world.rows() == 2
    left(world)
    assert (
        world.all(one) == ["a", "b"]
        and world.put(one, "c") == ["entry-1-3"]
        and world.all(one) == ["a", "b", "c"]
    )


def test_a_fold_that_fails_is_undone(world, monkeypatch):
    one = thrifty()
    world.put(one, "a")
    world.put(one, "b")
    monkeypatch.setattr(Stores, "_tidy", lambda *_: 1 / 0)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        world.all(one)
    monkeypatch.undo()
    assert world.rows() == 1 and world.all(one) == ["a", "b"]


def test_of_a_torn_journal_what_is_before_it_counts(world, capfd):
    one = thrifty()
    world.put(one, "first")
    world.put(one, "whole")
    size = os.path.getsize(world.stores._journal.path)
    world.put(one, "torn")
    path = world.stores._journal.path
    whole = open(path, "rb").read()
    for number, end in enumerate(
        (
            whole[size:-1],
            whole[size : size + 5],
            b"\0" * 700,
            whole[size:-3] + b"\xff\xff\xff",
            b"\x01\0\0\0\xd2\x02\xef\x8d\0",
        )
    ):
        made = World(world.folder + "/%d" % number)
        made.put(one, "first")
        made.put(one, "whole")
        made.put(one, "torn")
        with open(path.replace(world.folder, made.folder), "wb") as file:
            file.write(open(path, "rb").read()[:size] + end)
        left(made)
        assert made.all(one) == ["first", "whole"] and made.put(one, "more") == ["entry-1-3"], end
        assert open(made.folder + "/memory.journal.damaged", "rb").read() == end
        assert "its last %d bytes are no whole record" % len(end) in capfd.readouterr().err
        assert made.again().all(one) == ["first", "whole", "more"]
        made.stores.close()


def test_two_processes_take_turns(world):
    one, other = thrifty(), World(world.folder)
    other._ids = world._ids
    for number in range(30):
        (world, other)[number // 2 % 2].put(one, str(number))
        if number % 7 == 0:
            (world, other)[number % 2].all(one)
    assert world.all(one) == other.all(one) == [str(n) for n in range(30)]
    other.stores.close()


def test_a_database_that_was_moved_away_takes_the_journal_all_the_same(world):
    other, one = store("x"), thrifty()
    world.put(other, "elsewhere")
    world.put(one, "a")
    world.put(one, "b", vector=[1.0])
    for end in ("", "-wal", "-shm"):
        os.unlink(world.stores._db.path + end)
    world.stores._db.close()
    for end in ("", "-wal", "-shm"):
        if os.path.exists(world.stores._db.path + end):
            os.unlink(world.stores._db.path + end)
    left(world)
    assert (
        world.all(one) == ["b"]
        and world.search(one, "", 1, [1.0]) == ["b"]
        and world.put(one, "c") == ["entry-1-2"]
    )


def test_a_journal_that_was_moved_away_is_made_anew(world):
    one = thrifty()
    for word in ("a", "b"):
        world.put(one, word)
    assert world.all(one) == ["a", "b"]
    os.unlink(world.stores._journal.path)
    world.put(one, "c")
    assert left(world).all(one) == ["a", "b", "c"]


def test_a_journal_that_cannot_be_written_is_an_error_and_is_read(world, monkeypatch):
    one = thrifty()
    world.put(one, "a")
    world.put(one, "b")
    left(world)
    real = os.open

    def refuse(path, flags, *more, **named):
        if str(path).endswith(journal.FILE) and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match="Permission denied") as raised:
        world.put(one, "c")
    assert raised.value.code == -32030
    monkeypatch.undo()
    assert world.all(one) == ["a", "b"] and world.put(one, "c") == ["entry-1-3"]


def test_a_journal_that_cannot_be_read_is_the_error_of_each_request(world, monkeypatch):
    one = thrifty()
    world.put(one, "a")
    world.put(one, "b")
    left(world)
    real = os.open

    def refuse(path, *more, **named):
        if str(path).endswith(journal.FILE):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    for ask in (
        lambda: world.put(one, "c"),
        lambda: world.all(one),
        lambda: world.put(store("other"), "c"),
    ):
        with pytest.raises(StoreError, match="memory.journal: Permission denied") as raised:
            ask()
        assert raised.value.code == -32030
    monkeypatch.undo()
    assert world.all(one) == ["a", "b"]


def test_the_words_of_many_entries_come_into_the_index_with_them(world):
    one = thrifty(type=SEMANTIC)
    for number in range(1200):
        world.put(one, "pump %d" % number)
    place = world.stores._places.find(one, "", world.now)
    assert place.indexed - place.base == 1025 and world.stores._journal.entries == 175
    assert world.search(one, "pump 700", 1) == ["pump 700"] and world.search(
        one, "pump 1199", 1
    ) == ["pump 1199"]


def test_a_store_that_is_full_by_what_the_journal_has_says_so(world):
    one = thrifty(compacts=True, compaction=SUMMARIZE, max_entries=8)
    told = [
        world.do("store", one, "", (world.id(), [(None, str(n), None, None)])).get("is_full")
        for n in range(20)
    ]
    assert told == [None] * 7 + [True] + [None] * 7 + [True] + [None] * 4
    assert world.do("compact", one, "", 2) == (8, 4) and world.all(one) == [
        str(n) for n in range(16, 20)
    ]


def test_retention_holds_over_the_journal(world):
    one = thrifty(max_age_s=60, max_entries=3)
    for number in range(5):
        world.put(one, str(number))
    assert world.all(one) == ["2", "3", "4"]
    world.put(one, "5")
    world.now += 61000
    assert world.all(one) == []


def test_an_entry_costs_few_bytes_of_the_disk(world):
    """290 bytes of text: the target is 1,600 with its words in the index (``clawlite bench
    memory``); a commit for each writes 2,500.
    """

    def written() -> int:
        with open("/proc/self/io") as file:
            return int(dict(line.split(": ") for line in file)["wchar"])

    text = " ".join("word%d" % n for n in range(45))[:290]
    one = thrifty(type=CONVERSATION)
    world.put(one, text)
    before = written()
    for _ in range(1100):
        world.put(one, text)
    world.stores.close()
    assert (written() - before) / 1100 < 1600
    world.open()
