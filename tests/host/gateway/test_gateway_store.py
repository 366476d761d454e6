"""The gateway's store while its file takes nothing more, and when it can be written again."""

import asyncio
import sqlite3

import pytest

pytest.importorskip("aiosqlite")

from clawlite.host.gateway.store import Store  # noqa: E402

ROW = "x" * 8000


def rows(path, sql: str) -> list:
    with sqlite3.connect(path) as db:
        return db.execute(sql).fetchall()


async def limit(store, pages: int):
    """Let SQLite refuse a file of more pages, as on a full disk; it counts those that it has."""
    await store._db.execute("PRAGMA max_page_count=%d" % pages)


async def keep(store, asked: str):
    store.note_request("kitchen", "a", "p", "request", asked + ROW, "", "ok")
    await asyncio.wait(store._tasks)


def test_a_fault_is_told_once_and_again_after_it_was_mended(tmp_path):
    path, notes = tmp_path / "gateway.db", []

    async def play():
        store = await Store.open(str(path), notes.append)
        await keep(store, "first")
        await limit(store, 1)
        for number in range(3):
            await keep(store, "lost %d" % number)
            await store.spend("kitchen", "a", {"tokens": [1, number, ROW]})
        assert len(notes) == 1 and "gateway.db cannot be written" in notes[0], notes
        assert "full" in notes[0] and "make room" in notes[0]
        assert store.meters("kitchen", "a")["tokens"][1] == 2, "it counts all the same"
        await limit(store, 1000)
        await keep(store, "again")
        await store.spend("kitchen", "a", {"tokens": [1, 3, ROW]})
        assert len(notes) == 1
        await limit(store, 1)
        await keep(store, "lost once more")
        assert len(notes) == 2, "the next fault is told again"
        await limit(store, 1000)
        await store.close()
        later = await Store.open(str(path), notes.append)
        assert later.meters("kitchen", "a") == {"tokens": [1, 3, ROW]}
        await later.close()

    asyncio.run(play())
    asked = [text.removesuffix(ROW) for (text,) in rows(path, "SELECT asked FROM history")]
    assert asked == ["first", "again"]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_flush_is_on_the_disk_when_it_returns(tmp_path):
    """Also after a fault, whose transaction may be open still; other writes are not synced."""
    path, notes, said = tmp_path / "gateway.db", [], []
    hidden = "SELECT anchor, messages FROM hidden ORDER BY id"

    async def play():
        store = await Store.open(str(path), notes.append)
        await store._db.set_trace_callback(said.append)
        store.hide("r", "a", "", "[1]")
        await store.flush()
        assert rows(path, hidden) == [("a", "[1]")]
        store.unhide("r", "a")
        store.hide("r", "a", "", "[2]")
        both = store.flush(), store.flush()
        await asyncio.gather(*both)
        assert rows(path, hidden) == [("a", "[2]")]
        await limit(store, 1)
        store.hide("r", "b", "", ROW)
        await store.flush()
        assert len(notes) == 1
        await limit(store, 1000)
        store.hide("r", "c", "", "[3]")
        await store.flush()
        ((level,),) = await store._db.execute_fetchall("PRAGMA synchronous")
        assert level == 1, "NORMAL"
        await store.close()

    asyncio.run(play())
    assert rows(path, hidden) == [("a", "[2]"), ("c", "[3]")]
    steps = [one for one in said if one.startswith(("PRAGMA sync", "INSERT INTO hidden", "COMMIT"))]
    full, normal = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"
    assert steps[0] == full and steps[1].startswith("INSERT") and steps[2:4] == ["COMMIT", normal]


def test_what_one_device_sends_takes_nothing_of_the_others_with_it(tmp_path):
    """Half of a surrogate pair is no UTF-8, and SQLite refuses a commit with it as a whole."""
    path, notes = tmp_path / "gateway.db", []

    async def play():
        store = await Store.open(str(path), notes.append)
        store.event("garden", "request.began", tool="look")
        store.note_device("kitchen", "a", "\ud800")
        store.event("kitchen", "tool.began", tool="\udfff")
        assert await store.flush()
        await store.close()

    asyncio.run(play())
    assert rows(path, "SELECT image FROM devices") == [("?",)] and notes == []
    assert [device for (device,) in rows(path, "SELECT device FROM audit")] == ["garden", "kitchen"]


def test_a_flush_says_whether_it_is_on_the_disk(tmp_path):
    async def play():
        store = await Store.open(str(tmp_path / "gateway.db"), [].append)
        await limit(store, 1)
        store.hide("garden", "anchor", "asked", ROW)
        assert not await store.flush()
        await limit(store, 1000)
        store.hide("garden", "anchor", "asked", ROW)
        assert await store.flush()
        await store.close()

    asyncio.run(play())
    assert rows(tmp_path / "gateway.db", "SELECT count(*) FROM hidden") == [(1,)]
