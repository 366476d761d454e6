"""What others may write: entries of an engine's log, snapshots, and the file of a swarm."""

import fcntl
import json
import os
import sqlite3

import pytest
from swarm_world import read_usage

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm import bus as swarm_bus
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.replicated_bus import ReplicatedBus
from clawlite.linux.swarm.stop_file import StopFile
from clawlite.linux.swarm_engines.engine import ENTRY, SNAPSHOT, SYNCED, UP
from clawlite.protocols.swarm.swarm import MERGE, PEER_TO_PEER, Swarm, Task

NOW = 1780000000000


def swarm() -> Swarm:
    me = lambda name: [name, "claw://local/identity/" + name, "agent", 1]
    members = [me("a"), me("b")]
    row = ["team", 0, PEER_TO_PEER, members, True, None, 4, None, 2, True, MERGE, False]
    return Swarm([*row, None, None, None, None])


class Engine:
    """An engine whose log the test writes; what this process appends is there at once."""

    address, most_bytes = "test://", None

    def __init__(self):
        self.come, self.asked, self.position = [], [], 0

    def fileno(self):
        return -1

    def start(self):
        pass

    def take(self):
        come, self.come = self.come, []
        return come

    def append(self, sender, data):
        self.position += 1
        self.come.append((ENTRY, str(self.position), NOW, sender, data))

    def ask_there(self, processes):
        self.asked += processes

    def save(self, *_):
        pass

    def stopped(self, stop):
        pass


class Replica:
    """A member ``a`` of a swarm on an engine; ``says`` lets the member ``b`` write an entry."""

    def __init__(self, folder, *first):
        self.engine, self.notes, self.now, self.number = Engine(), [], 0, 0
        clocks = (lambda: NOW, lambda: self.now, os.urandom)
        make = lambda process, identity: self.engine
        self.bus = ReplicatedBus(make, swarm(), *clocks, StopFile(str(folder)))
        self.bus.subscribe(refused=self.notes.append)
        self.bus.join("a", 4)
        self.engine.come += [*first, (UP,), (SYNCED,)]
        self.go_on()

    def go_on(self):
        while self.engine.come:
            self.bus.receive()

    def says(self, name: str, *values, process="ab" * 8):
        self.number += 1
        entry = [1, process, self.number, "b", name, values]
        self.engine.append("b", json.dumps(entry).encode())
        self.go_on()


@pytest.fixture
def replica(tmp_path):
    found = Replica(tmp_path)
    found.says("put", ["one", "do it", None, "b", "a", ""])
    assert found.notes == [] and found.bus.state("one") == "waiting"
    return found


@pytest.mark.parametrize(
    "name, values",
    [
        *[("report", ["one", status, {}, 1, 1, "b", False]) for status in (
            "waiting", "running", "dead", "canceled", "", "x\n\x1b[31m", "COMPLETED")],
        ("report", ["one", "completed", {}, -1, 1, "b", False]),
        ("report", ["one", "completed", {}, 1, -1, "b", False]),
        ("use", ["one", -1, 0]),
        ("use", ["one", 0, -1]),
        ("hold", ["one", ["x", "y"], [None, None]]),
        ("hold", ["one", [1], [1]]),
        ("hold", ["one", [-1, 0], [None, None]]),
        ("hold", ["one", [1, 1], ["x", None]]),
        ("allot", ["one", [5], True, [None, None]]),
        ("allot", ["one", ["p"], True, ["x", None]]),
        ("allot", ["one", ["p"], True, [1]]),
    ],
)  # fmt: skip
def test_an_entry_that_can_mean_nothing_changes_nothing(replica, name, values):
    """A report brought a task into any state, and use of less than nothing gave limits back."""
    replica.says("use", "one", 700, 7)
    before = replica.bus._replica.save()
    replica.says(name, *values)
    assert "not a change that this version knows" in replica.notes[-1]
    assert replica.bus._replica.save() == before
    assert read_usage(replica.bus, "one") == (700, 7)


@pytest.mark.parametrize(
    "process",
    [
        "",
        "a b",
        "*",
        ">",
        "a.b",
        "a/b",
        "../x",
        "x" * 101,
        "x\r\nPUB a 0\r\n",
        "\0",
        "é",
        "#",
        "-1",
    ],
)
def test_a_process_has_a_name_that_an_engine_can_be_asked_for(replica, process):
    """It becomes part of a subject, a channel or a topic: NATS ended the connection of all."""
    replica.says("here", "b", 1, process=process)
    assert "not a change that this version knows" in replica.notes[-1]
    replica.says("here", "b", 1, process="ab" * 8)
    replica.now += 5000
    replica.bus.receive()
    assert replica.engine.asked == ["ab" * 8] and list(replica.bus.present()) == ["a", "b"]


def _database(*statements) -> bytes:
    db = sqlite3.connect(":memory:")
    for one in statements:
        db.execute(one)
    data = db.serialize()
    db.close()
    return data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"SQLite format 3\0" + bytes(4000),
        _database("create table tasks (x)"),
        _database("create view tasks as select 1"),
        _database(
            "create table peers (process text primary key, identity text, at_once int)",
            "create trigger t after insert on peers begin delete from peers; end",
        ),
    ],
)
def test_a_snapshot_that_is_none_is_said_and_ends_nothing(tmp_path, data):
    """It ended the agent with a bug of SQLite."""
    found = Replica(tmp_path, (SNAPSHOT, "5", data))
    assert "its snapshot cannot be read" in found.notes[-1]
    assert "stop all agents of the swarm" in found.notes[-1]
    found.says("put", ["one", "do it", None, "b", "a", ""])
    for ask in (
        lambda: found.bus.take("a", True, 4),
        lambda: found.bus.put(Task("two", "do", None, "a", "b", "")),
    ):
        with pytest.raises(ClawError, match="its snapshot cannot be read"):
            ask()
    assert found.bus.tasks(9) == []


def test_a_snapshot_that_is_one_is_taken(tmp_path):
    first = Replica(tmp_path / "first")
    first.says("put", ["one", "do it", None, "b", "a", ""])
    other = Replica(tmp_path / "other", (SNAPSHOT, "5", first.bus._replica.save()))
    assert other.notes == [] and other.bus.state("one") == "waiting"


# -- the file


@pytest.fixture
def world(tmp_path):
    """A bus with a waiting task, and function(statement, *values), by which another writes."""
    folder = tmp_path / "swarm"
    bus = Bus(str(folder), lambda: NOW, os.urandom)
    bus.join("a", 4)
    bus.put(Task("one", "do it", None, "b", "a", ""))

    def other(statement: str, *values):
        with sqlite3.connect(folder / "swarm.db") as db:
            db.execute(statement, values)
        db.close()

    yield bus, other, folder
    bus.leave()


WRONG = [None, b"\xff\0", "{", "", "[" * 4000, "\x1b"]
TASK = "insert into tasks values (?, ?, ?, ?, 'a', 'waiting', '', 0, 0, ?, ?, ?, 0, null)"


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("column", [0, 1, 2, 3, 4, 5, 6])
def test_a_task_that_cannot_be_read_is_in_nobodys_way(world, column, wrong):
    """It stayed with who took it, and the error came each time."""
    bus, other, _ = world
    row = ["odd", "do", "1", "b", 1, "", "odd"]
    row[column] = wrong
    other(TASK, *row)
    taken = [bus.take("a", True, 4) for _ in range(3)]
    assert "one" in [task.id for task in taken if task]
    state = bus.state("odd")
    if column == 2 or wrong is None or isinstance(wrong, bytes):
        assert state in ("failed", None) or column == 0
    if state == "failed":
        assert bus.outcome("odd")[2] == {
            "error": "what the swarm has on record of it cannot be read"
        }


@pytest.mark.parametrize("wrong", WRONG)
def test_reports_and_broadcasts_that_cannot_be_read(world, wrong):
    bus, other, _ = world
    other("insert into messages values (null, 'b', ?, 5)", wrong)
    other("insert into messages values (null, 'b', '\"good\"', 5)")
    assert bus.messages() == [("b", "good")]
    other("insert into reports values ('one', 5, 'b', 'completed', ?, 1, 1)", wrong)
    other("update tasks set state = 'completed', report = (select max(rowid) from reports)")
    assert bus.outcome("one")[2] == {"error": "it cannot be read"}
    assert bus.history("one")[1][0][3] == {"error": "it cannot be read"}


@pytest.mark.parametrize("process", [None, b"\xff", "../x", "a/b", "", "." * 300, "\x1b"])
def test_a_process_that_can_be_none_is_not_there(world, process):
    bus, other, folder = world
    os.mkfifo(folder.parent / "x.fifo")
    other("insert or replace into peers values (?, 'b', 1)", process)
    other("update tasks set state = 'running', process = ?", process)
    assert bus.present() == {"a": [True]}
    bus.reclaim(2, True)
    assert (folder.parent / "x.fifo").exists(), "nothing outside of the folder is removed"


def test_what_is_no_fifo_is_not_written(world, tmp_path):
    """Each change wrote a byte into whatever ``NAME.fifo`` led to."""
    bus, _, folder = world
    (tmp_path / "victim").write_text("VICTIM")
    (folder / "link.fifo").symlink_to(tmp_path / "victim")
    (folder / "file.fifo").write_text("FILE")
    bus.broadcast("a", "hi")
    assert (tmp_path / "victim").read_text() == "VICTIM"
    assert (folder / "file.fifo").read_text() == "FILE"


def test_a_process_that_keeps_the_lock_is_an_error_and_no_wait_for_ever(world, monkeypatch):
    """One that was stopped in a change let all agents of the swarm wait, each in its loop."""
    monkeypatch.setattr(swarm_bus, "BUSY_S", 0)
    bus, _, folder = world
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for ask in (
        lambda: bus.broadcast("a", "hi"),
        lambda: Bus(str(folder), lambda: NOW, os.urandom),
    ):
        with pytest.raises(ClawError, match="another process has locked its folder") as caught:
            ask()
        assert "fuser -v %s" % folder in caught.value.hint
    os.close(lock)
    assert bus.broadcast("a", "hi") is None


@pytest.mark.parametrize(
    "statement",
    [
        "create trigger t after insert on messages begin delete from messages; end",
        "create view endless as with recursive n(x) as (select 1 union all select x from n) "
        "select x from n",
    ],
)
def test_a_file_that_runs_something_by_itself_is_refused(world, statement):
    _, other, folder = world
    other(statement)
    with pytest.raises(ClawError, match="it has triggers or views") as caught:
        Bus(str(folder), lambda: NOW, os.urandom)
    assert "move swarm.db away" in caught.value.hint


def test_a_count_that_is_none_is_an_error_of_the_file(world):
    bus, other, _ = world
    assert bus.take("a", True, 4).id == "one"
    other("insert or replace into used values ('one', 'x', x'00')")
    with pytest.raises(ClawError, match="what the swarm has on record of it cannot be read"):
        bus.hold("one", [1, 1], [5, 5])
    other("delete from used")
    assert bus.hold("one", [1, 1], [5, 5]) is True


def test_a_pipe_in_the_place_of_the_log_keeps_nobody_waiting(world):
    bus, _, folder = world
    os.unlink(folder / "swarm.db-wal")
    os.mkfifo(folder / "swarm.db-wal")
    with pytest.raises(ClawError, match="cannot be used"):
        Bus(str(folder), lambda: NOW, os.urandom)


@pytest.mark.parametrize("wrong", [None, b"\xff\0", "x", 1.5, 1 << 62])
def test_what_people_are_shown_has_the_types_of_the_tables(world, wrong):
    """``swarm status`` and ``swarm trace`` were tracebacks."""
    bus, other, _ = world
    other("update tasks set description = ?, sender = ?, tries = ?, created_ms = ?", *[wrong] * 4)
    other("insert into events values ('one', ?, ?, ?)", *[wrong] * 3)
    other("insert into events values ('', ?, 'stopped', ?)", *[wrong] * 2)
    row = "insert into reports values ('one', ?, ?, ?, ?, ?, ?)"
    other(row, *[wrong] * 6)
    other("update tasks set state = 'completed', report = (select max(rowid) from reports)")
    kinds = [int, str, str]
    counts = [int | None] * 2
    for found, wanted in (
        (bus.tasks(9)[0], [str] * 4 + [int] * 2),
        (bus.page(["completed"], None, 9)[0], [int, str, str, int]),
        (bus.history("one")[0][-1], kinds),
        (bus.history("one")[1][-1], [*kinds, object, *counts]),
        (bus.outcome("one"), [str, str, object, *counts]),
        (bus.find_stop(), [str, int]),
    ):
        assert len(found) == len(wanted) and all(map(isinstance, found, wanted)), found
