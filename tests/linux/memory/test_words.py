"""What a word is: of scripts without spaces between words, of Korean, beside Latin, and emoji; in
the index and in the newest entries; in a file of the version before.
"""

import sqlite3

import pytest
from memory_world import World, store

from clawlite.linux.memory import database, search
from clawlite.linux.memory.stores import BATCH

NOTES = store("notes")
TEXTS = {
    "植物需要水，每天早上浇水": ("浇水", "植物", "水", "每天早上", "植物需要水", "浇水 植物"),
    "トマトに水をやる": ("トマト", "水", "ﾄﾏﾄ", "水をやる"),
    "토마토에 물을 준다": ("토마토", "물", "토마토에", "준다"),
    "Wi-Fi设定在GPIO12引脚": ("wifi设定 wi", "设定", "gpio12", "GPIO12 引脚", "Fi"),
    "ดินแห้งต้องรดน้ำต้นไม้": ("ต้นไม้", "รดน้ำ", "ดิน"),
    "ရေလောင်းပါ": ("ရေ", "လောင်း"),
    "the tomatoes 🍅 are ripe 👩‍🌾": ("🍅", "🌾", "tomatoes 🍅"),
    "Straße nach Łódź – „grün“": ("straße", "grun", "łodz"),
    "が、ガラス": ("が", "ガラス"),
}


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.stores.close()


def fill(world, count: int):
    for number in range(count):
        world.put(NOTES, "line %d of what nobody asks for" % number)


def finds(world, text: str) -> list:
    return world.search(NOTES, text)


@pytest.mark.parametrize("more", [0, BATCH + 10], ids=["newest", "indexed"])
def test_parts_of_any_script_are_found(world, more):
    for text in TEXTS:
        world.put(NOTES, text)
    fill(world, more)
    missed = [(text, one) for text, asked in TEXTS.items() for one in asked
              if text not in finds(world, one)]  # fmt: skip
    assert not missed
    for absent in ("番茄", "カラ", "감자", "🥕", "か", "ปลา"):
        assert finds(world, absent) == [], absent


def test_the_entry_with_the_whole_word_comes_first(world):
    for text in ("水浇过了花", "今天浇水了", "植物"):
        world.put(NOTES, text)
    fill(world, BATCH + 10)
    assert finds(world, "浇水") == ["今天浇水了"]


def test_a_long_question_finds_the_word_at_its_end(world):
    world.put(NOTES, "番茄每天一升")
    assert "番茄每天一升" in finds(world, "昨天下午在阳台上我到底浇过多少水给番茄")


def test_a_mixed_question_finds_an_entry_in_latin_letters(world):
    world.put(NOTES, "GPIO12 drives the pump")
    assert finds(world, "水泵接在GPIO12哪里呢") == ["GPIO12 drives the pump"]


def test_what_is_replaced_or_deleted_leaves_the_index_whole(tmp_path):
    world, notes = World(tmp_path), store("notes", max_entries=5)
    for number in range(2 * BATCH + 5):
        world.put(notes, "第%d条 浇水 🍅" % number)
    assert len(world.search(notes, "浇水")) == 5
    world.stores.close()
    with sqlite3.connect(tmp_path / database.FILE) as db:
        held = [id for (id,) in db.execute("SELECT id FROM words_docsize")]
        (found,) = db.execute(
            "SELECT count(*) FROM words WHERE words MATCH ?",
            (search.index_text("浇水").split()[-1],),
        ).fetchone()
        assert found == len(held) > 0
        db.execute("INSERT INTO words(words) VALUES('integrity-check')")
    db.close()


def test_a_file_of_the_version_before_is_indexed_again(tmp_path):
    world = World(tmp_path)
    for text in TEXTS:
        world.put(NOTES, text)
    fill(world, BATCH + 10)
    world.stores.close()
    with sqlite3.connect(tmp_path / database.FILE) as db:  # as version 4 had indexed it
        db.execute("INSERT INTO words(words) VALUES('delete-all')")
        db.execute(
            "INSERT INTO words(rowid, content) SELECT id, content FROM entries WHERE id<="
            "(SELECT indexed FROM places)"
        )
        db.execute("PRAGMA user_version=4")
    db.close()
    world = World(tmp_path)
    missed = [(text, one) for text, asked in TEXTS.items() for one in asked
              if text not in finds(world, one)]  # fmt: skip
    assert not missed and finds(world, "line 3")
    world.stores.close()
    with sqlite3.connect(tmp_path / database.FILE) as db:
        db.execute("INSERT INTO words(words) VALUES('integrity-check')")
        assert db.execute("PRAGMA user_version").fetchone() == (len(database.MIGRATIONS),)
    db.close()


def test_no_letter_fails_a_query(world):
    """FTS5 divides text by its own tables of letters, which may be older than Python's."""
    odd = "\u19b0\U0001e900 \u1c89"
    world.put(NOTES, odd)
    fill(world, BATCH)
    assert odd in finds(world, odd)
