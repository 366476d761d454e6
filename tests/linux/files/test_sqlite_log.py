"""A killed process leaves the log of a SQLite database; damage in it is told, in each store."""

import shutil
import sqlite3
import threading

import pytest
from disk_stores import AuditSQLite, Remembered, SwarmTasks

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.sqlite_log import unread_frames


@pytest.mark.parametrize("kind", [AuditSQLite, Remembered, SwarmTasks])
def test_a_damaged_log_is_told_and_kept(kind, tmp_path, capfd):
    one = kind(str(tmp_path / "a"))
    for name in "abcd":
        assert one.put(name)
    shutil.copytree(
        tmp_path / "a", tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm", "*.fifo")
    )
    one.close()
    capfd.readouterr()
    (log,) = (tmp_path / "killed").rglob("*-wal")
    whole = log.read_bytes()
    lost = 0
    for number, at in enumerate((None, 32 + 24 + 100, len(whole) // 2, len(whole) - 100)):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "killed", folder)
        (log,) = folder.rglob("*-wal")
        damaged = bytearray(whole)
        if at is not None:
            damaged[at] ^= 4
            log.write_bytes(damaged)
        doctor = unread_frames(str(log).removesuffix("-wal"))
        one = None
        try:
            one = kind(str(folder))
            assert one.put("e")  # an audit is opened by its first record
            found = [name for name in one.found() if name in "abcd"]
        except ClawError:  # that is told, too
            found = ["abcd"]
        finally:
            if one:
                one.close()
        told = capfd.readouterr().err
        assert ("its log is damaged" in told) == (found != list("abcd")), (at, found, told)
        assert (doctor is not None) == (found != list("abcd")), "doctor says what the agent will"
        if doctor:
            assert "after frame %d of %d" % doctor in told, (doctor, told)
        if at is None:
            assert found == list("abcd")
        elif found != list("abcd"):
            lost += 1
            assert log.with_name(log.name + ".damaged").read_bytes() == damaged
    assert lost


def test_each_damaged_byte_that_costs_an_entry_is_found(tmp_path):
    """The frames of SQLite's own log are the oracle: each byte in turn, and both byte orders."""
    path = tmp_path / "one.db"
    with sqlite3.connect(path) as db:
        db.executescript("PRAGMA journal_mode=WAL; PRAGMA page_size=512; CREATE TABLE t(x);")
        for name in "abc":
            with db:
                db.execute("INSERT INTO t VALUES(?)", (name,))
        log = (tmp_path / "one.db-wal").read_bytes()
        data = path.read_bytes()
    db.close()
    kept = tmp_path / "kept.db"
    differing = 0
    for at in [None, *range(0, len(log), 7)]:
        damaged = bytearray(log)
        if at is not None:
            damaged[at] ^= 1
        kept.write_bytes(data)
        (tmp_path / "kept.db-wal").write_bytes(damaged)
        found = unread_frames(str(kept))
        again = sqlite3.connect(kept)
        try:
            rows = again.execute("SELECT count(*) FROM t").fetchall()
        except sqlite3.Error:
            rows = []
        again.close()
        assert (rows != [(3,)]) == (found is not None), (at, rows, found)
        differing += found is not None
    assert differing > 100 and unread_frames(str(tmp_path / "none.db")) is None


def test_a_process_that_writes_is_no_damage(tmp_path):
    path = tmp_path / "one.db"
    with sqlite3.connect(path, check_same_thread=False) as db:
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(x);")
        ended = threading.Event()

        def write():
            while not ended.is_set():
                with db:
                    db.execute("INSERT INTO t VALUES(?)", ("x" * 2000,))

        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert [unread_frames(str(path)) for _ in range(100)] == [None] * 100
        finally:
            ended.set()
            thread.join()
    db.close()


def test_a_commit_whose_process_was_killed_before_its_page_is_no_damage(tmp_path):
    """SQLite writes the head of a frame and then the page: nobody was told of that commit."""
    path = tmp_path / "one.db"
    with sqlite3.connect(path) as db:
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1);")
        log = (tmp_path / "one.db-wal").read_bytes()
        data = path.read_bytes()
    db.close()
    killed = tmp_path / "killed.db"
    for page in (b"", b"x", b"x" * 4095):
        killed.write_bytes(data)
        (tmp_path / "killed.db-wal").write_bytes(log + log[-4096 - 24 : -4096] + page)
        assert unread_frames(str(killed)) is None
