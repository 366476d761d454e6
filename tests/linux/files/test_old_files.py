"""Files of an agent that were emptied, removed or replaced by an older copy while it was stopped
(clawlite/linux/files/rollback_marks.py): the next start tells them, each once.
"""

import os
import shutil

import pytest
from disk_stores import (
    Audit,
    AuditSQLite,
    Calls,
    ChannelState,
    Remembered,
    RememberedByJournal,
    RememberedInFile,
    Signatures,
    Spent,
    Taken,
)

from clawlite.linux.files import rollback_marks
from clawlite.linux.files.old_files import tell
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.stop_file import StopFile


class RememberedUnsynced(Remembered):
    fields = {"lasting": False}


# a store -> the file of it that is told
FILES = {
    Audit: "audit.jsonl",
    AuditSQLite: "audit.db",
    Calls: "calls.journal",
    Taken: "i.queue",
    ChannelState: "channels/c.json",
    Signatures: "channels/w.seen",
    Spent: "meters.json",
    Remembered: "memory/memory.db",
    RememberedUnsynced: "memory/memory.db",
    RememberedByJournal: "memory/memory.db",
    RememberedInFile: "memory/files/s/conversation.jsonl",
}


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    (tmp_path / "a").mkdir()
    return tmp_path / "a"


def live(kind, state, names: str, killed: bool = False):
    """A process puts *names* into a store, and ends in order or is *killed*."""
    child = os.fork()
    if not child:
        code = 1
        try:
            folder = state if issubclass(kind, Remembered) else state.parent
            one = kind(str(folder))
            for name in names:
                assert one.put(name)
            if not killed:
                one.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def told(state) -> list:
    found: list = []
    tell(str(state), found.append)
    return found


def is_told(state, name: str, how: str, capfd) -> bool:
    (said,) = told(state)
    assert capfd.readouterr().err == "clawlite: %s\n" % said
    assert told(state) == []  # once
    return str(state / name) + " " + how in said and "put the newest copy" in said


both = pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
every = pytest.mark.parametrize("kind, name", FILES.items(), ids=[k.__name__ for k in FILES])


@every
@both
def test_what_nobody_has_touched_is_not_told(state, kind, name, killed):
    for part in ("01", "23", "45"):
        live(kind, state, part, killed)
        assert (state / "state.marks").exists() and told(state) == []


@every
@both
@pytest.mark.parametrize("is_gone", [False, True], ids=["emptied", "removed"])
def test_what_was_emptied_or_removed_is_told_once(state, kind, name, killed, is_gone, capfd):
    live(kind, state, "012", killed)
    if is_gone:
        (state / name).unlink()
    else:
        (state / name).write_bytes(b"")
    assert is_told(state, name, "is missing" if is_gone else "is empty", capfd)
    live(kind, state, "34", killed)
    assert told(state) == []


# where it was killed, the entries of RememberedByJournal are in the journal: the copy of its
# database is no older one
ENDS = [(k, n, killed) for k, n in FILES.items() for killed in (False, True)]
ENDS.remove((RememberedByJournal, FILES[RememberedByJournal], True))


@pytest.mark.parametrize("kind, name, killed", ENDS)
@pytest.mark.parametrize("keeps_time", [False, True])
def test_an_older_copy_is_told_once(state, kind, name, killed, keeps_time, tmp_path, capfd):
    live(kind, state, "0")
    (shutil.copy2 if keeps_time else shutil.copy)(state / name, tmp_path / "copy")
    live(kind, state, "123", killed)
    for log in ("-wal", "-shm"):
        (state / (name + log)).unlink(missing_ok=True)
    (shutil.copy2 if keeps_time else shutil.copy)(tmp_path / "copy", state / name)
    assert is_told(state, name, "is an older copy", capfd)
    live(kind, state, "45", killed)
    assert told(state) == []


@pytest.mark.parametrize("kind, name", [(k, n) for k, n in FILES.items() if not n.endswith(".db")])
def test_a_copy_from_the_life_of_the_process_before_is_told(state, kind, name, tmp_path):
    """The agent was killed after the copy was made: nothing was written at an orderly end.  A
    database is counted once a process and every 64 commits.
    """
    live(kind, state, "01", True)
    shutil.copy(state / name, tmp_path / "copy")
    live(kind, state, "2", True)
    shutil.copy(tmp_path / "copy", state / name)
    assert len(told(state)) == 1


def test_all_files_of_one_time_are_not_told(state, tmp_path):
    """A whole folder from a backup fits together."""
    for kind in FILES:
        live(kind, state, "01")
    shutil.copytree(state, tmp_path / "copy")
    for kind in FILES:
        live(kind, state, "23")
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "copy", state)
    assert told(state) == []


def test_an_emptied_log_of_the_memory_is_told(state, capfd):
    live(Remembered, state, "012", killed=True)
    log = state / "memory/memory.db-wal"
    assert log.stat().st_size
    log.write_bytes(b"")
    assert is_told(state, "memory/memory.db", "is an older copy", capfd)


def test_an_old_log_beside_a_newer_memory_is_set_aside(state, tmp_path, capfd):
    """SQLite would copy its old pages over the new ones."""
    live(Remembered, state, "012", killed=True)
    log = state / "memory/memory.db-wal"
    shutil.copy(log, tmp_path / "log")
    live(Remembered, state, "345")
    assert not log.exists()
    shutil.copy(tmp_path / "log", log)
    assert told(state) == []
    assert "older copy, which would have undone" in capfd.readouterr().err
    assert (state / "memory/memory.db-wal.damaged").read_bytes() == (tmp_path / "log").read_bytes()
    one = Remembered(str(state))
    assert one.found() == list("012345")
    one.close()


@both
def test_a_journal_of_the_memory_that_was_emptied_is_told(state, killed, capfd):
    live(RememberedByJournal, state, "012", killed=True)
    (state / "memory/memory.journal").write_bytes(b"")
    assert is_told(state, "memory/memory.journal", "is empty", capfd)


def test_a_conversation_may_be_edited(state):
    """It is for people and their tools; what they add is none of the agent's business."""
    live(RememberedInFile, state, "01")
    path = state / FILES[RememberedInFile]
    text = path.read_text()
    path.write_text(text.replace("0", "1", 1) + text)
    assert told(state) == []


@pytest.mark.parametrize("ago_s, tells", [(0, False), (1000, True)])
def test_what_a_power_cut_takes_is_not_told(state, ago_s, tells, monkeypatch):
    """The end of a journal that nobody has synced may be missing then, and its time is as new."""
    live(Calls, state, "0123", killed=True)
    path = state / "calls.journal"
    path.write_bytes(path.read_bytes()[:-30])
    now = path.stat().st_mtime - ago_s
    os.utime(path, (now, now))
    monkeypatch.setattr(rollback_marks, "_boot", ["another"])
    assert len(told(state)) == tells


def test_what_was_synced_outlives_a_power_cut(state, monkeypatch):
    live(Signatures, state, "0123", killed=True)
    path = state / "channels/w.seen"
    path.write_bytes(path.read_bytes()[:-20])
    monkeypatch.setattr(rollback_marks, "_boot", ["another"])
    assert len(told(state)) == 1


@pytest.mark.parametrize("damage", [b"", b"x" * 300, b"\xff" * 1000])
def test_damaged_marks_tell_nothing_and_come_again(state, damage):
    live(Calls, state, "0")
    (state / "state.marks").write_bytes(damage)
    (state / "calls.journal").write_bytes(b"")
    assert told(state) == []
    live(Calls, state, "1")
    (state / "calls.journal").write_bytes(b"")
    assert len(told(state)) == 1


def test_a_file_that_is_written_anew_meanwhile_is_no_old_one(state):
    """Two processes: one compacts its journal while the other looks."""
    live(Calls, state, "0")
    child = os.fork()
    if not child:
        try:
            one = Calls(str(state.parent))
            for _ in range(300):
                one.one._open()
                one.one._log.rewrite([one.one._log.contents(), b"0 1 0 k [] 0\n"], False)
        finally:
            os._exit(0)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert told(state) == []


@pytest.fixture
def swarm(state):
    return state.parent / "swarms" / "team"


def take_part(swarm, count: int):
    for _ in range(count):
        bus = Bus(str(swarm), lambda: 1, os.urandom)
        bus.join("ann", 1)
        bus.leave()
        StopFile(str(swarm)).set(("ann", count))


@pytest.mark.parametrize("name", ["swarm.db", "stopped"])
@pytest.mark.parametrize("how", ["is missing", "is empty", "is an older copy"])
def test_files_of_a_swarm_are_told(swarm, name, how, tmp_path, capfd):
    take_part(swarm, 1)
    shutil.copy(swarm / name, tmp_path / "copy")
    take_part(swarm, 2)
    assert told(swarm) == []
    if how == "is missing":
        (swarm / name).unlink()
    elif how == "is empty":
        (swarm / name).write_bytes(b"")
    else:
        shutil.copy(tmp_path / "copy", swarm / name)
    assert is_told(swarm, name, how, capfd)


def test_a_stop_that_has_ended_is_not_told(swarm):
    take_part(swarm, 1)
    StopFile(str(swarm)).set(None)
    assert told(swarm) == []
