"""Files of the state that somebody removes or replaces while an agent uses them: that is told,
and they are written anew.
"""

import json
import os
import shutil

import pytest
from memory_world import World, store

from clawlite.core.idempotency.idempotency import BEGIN, END
from clawlite.linux.audit import files, sqlite
from clawlite.linux.audit.chain import line, verify
from clawlite.linux.channels.inbox import Inbox
from clawlite.linux.files.files import Log
from clawlite.linux.runtime.call_journal import Journal

AUDITS = {"file": (files, files.FileStore), "sqlite": (sqlite, sqlite.SQLiteStore)}


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    return tmp_path / "a"


def test_the_journal_closes_no_number_of_somebody_else(state, tmp_path):
    journal = Journal("a")
    assert journal.keep(BEGIN, "c-1", ["f"]) == (True, [])
    number = journal._log.fd
    os.unlink(state / "calls.journal")
    os.mkdir(state / "calls.journal")  # it is closed, and cannot be opened
    assert not journal.keep(BEGIN, "c-2", ["f"])[0]
    opened = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    other = os.dup2(opened, number)  # a lower number may be free, too
    if opened != other:
        os.close(opened)
    os.rmdir(state / "calls.journal")
    assert journal.keep(BEGIN, "c-3", ["f"]) == (True, [])
    os.write(other, b"mine")
    assert (tmp_path / "other").read_bytes() == b"mine"
    assert journal.last_record("c-3") == (BEGIN, ["f"])
    journal.close()
    os.close(other)


def test_the_journal_of_a_removed_folder_is_written_anew(state, capfd):
    journal = Journal("a")
    journal.keep(END, "c-1", ["f", "x", False, 0])
    shutil.rmtree(state)
    assert journal.keep(END, "c-2", ["f", "x", False, 0]) == (True, [])
    assert journal.keep(END, "c-3", ["f", "x", False, 0]) == (True, [])
    assert capfd.readouterr().err.count("was removed or replaced while it was in use") == 1
    other = Journal("a")
    assert [key for key, _, _ in other.calls()] == ["c-2", "c-3"]
    assert os.path.samestat(os.fstat(other._lock), os.fstat(journal._lock)), "both lock one file"
    other.close()
    journal.close()


def test_the_log_of_a_removed_folder_is_written_anew(state, capfd):
    log = Log("a", json.dumps)
    log.write({"n": 1})
    assert log.flush()
    shutil.rmtree(state)
    log.write({"n": 2})
    assert log.flush()
    assert (state / "log.jsonl").read_text() == '{"n": 2}\n'
    assert "the log %s was removed" % (state / "log.jsonl") in capfd.readouterr().err
    log.close()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_what_waits_is_in_the_new_inbox(state, capfd, is_replaced):
    path = str(state / "channels" / "jobs.queue")
    box = Inbox(path)
    box.take([(1, "d1", "ann", "one", b""), (2, "d2", "ann", "two", b"")])
    shutil.rmtree(state)
    if is_replaced:
        os.makedirs(os.path.dirname(path))
        open(path, "w").close()
    box.take([(3, "d3", "ann", "three", b"")])
    box.remove(box.waiting[1])
    again = Inbox(path)
    assert [item.text for item in again.waiting.values()] == ["two", "three"]
    assert again.knows(2, "d2") and again.knows(3, "d3")
    assert capfd.readouterr().err.count("was removed or replaced") == 1
    box.close()
    again.close()


@pytest.mark.parametrize("kind", AUDITS)
def test_a_removed_audit_begins_anew_and_is_whole(state, capfd, kind):
    module, made = AUDITS[kind]
    audit = made(str(state), "a")
    for number in range(3):
        audit.append(lambda head: line(head, {"event": "e", "k": number}, str), 1800000000)
    shutil.rmtree(state)
    for number in range(2):
        audit.append(lambda head: line(head, {"event": "e", "k": number}, str), 1800000000)
    lines, head, _ = module.read(str(state))
    found = verify(lines, head, "a", None)
    assert found["ok"] and found["records"] == 2, found
    assert capfd.readouterr().err.count("was removed or replaced") == 1
    audit.close()


@pytest.mark.parametrize("saves_wear", [False, True])
def test_a_removed_memory_is_written_anew(tmp_path, capfd, saves_wear):
    world, one = World(tmp_path / "memory"), store(saves_wear=saves_wear)
    world.put(one, "lost")
    world.put(one, "lost, too")
    shutil.rmtree(world.folder)
    world.put(one, "first")
    world.put(one, "second")
    assert world.all(one) == ["first", "second"]
    assert capfd.readouterr().err.count("was removed or replaced") == 1
    again = world.again()
    assert again.all(one) == ["first", "second"], "another process finds it"
    world.stores.close()
