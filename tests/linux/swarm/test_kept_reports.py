"""A report outlives its process: it is kept in a file until the engine has acknowledged it, and the
next process of the same agent sends it again.
"""

import errno
import json
import os

import pytest
from agents import eventually
from swarm_team import SWARM, UUID, delegate, project, start
from swarm_world import ENGINES, IDS, World, settings, task

from clawlite.linux.files.inherited_log import InheritedLog
from clawlite.linux.files.record_log import RecordLog
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.swarm.bus import MAX_ENTRY, TooLong
from clawlite.linux.swarm.replicated_bus import REPORTS
from clawlite.protocols.swarm.swarm import COMPLETED, DEAD, FAILED

ROWS = [[IDS[number], COMPLETED, {"text": "Bed %d." % number}, None, 5] for number in range(3)]


@pytest.fixture(params=ENGINES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    yield made
    made.close()


def kept(folder) -> list:
    """Return the names of the files with reports."""
    found = os.listdir(folder) if os.path.isdir(folder) else []
    return [name for name in found if name.endswith(".reports")]


def log_of(folder: str, identity: str, process: str) -> InheritedLog:
    return InheritedLog(folder, identity, process, REPORTS, dumps, loads)


def left_by_a_kill(world, *rows: list):
    """Write what a process of "hand" leaves that had not heard of the reports *rows*."""
    file = log_of(world.keep, "hand", "killed")
    for row in rows:
        file.keep(row, True)
    file._log.close()


# -- the file


def test_what_was_done_before_a_kill_is_not_found_again(tmp_path):
    folder = str(tmp_path / "team")
    killed = log_of(folder, "hand", "a1")
    for row in ROWS:
        killed.keep(row, False)
    killed.remove(IDS[1])
    killed.remove(IDS[0])
    killed.keep(ROWS[0], False)  # once more
    killed._log.close()
    after = log_of(folder, "hand", "a2")
    assert sorted(after.take_over(pytest.fail)) == sorted([ROWS[0], ROWS[2]])
    after.remove(IDS[2])
    after._log.close()
    last = log_of(folder, "hand", "a3")
    assert last.take_over(pytest.fail) == [ROWS[0]]
    last.remove(IDS[0])
    last.close()
    assert kept(folder) == []


def test_a_steady_flow_keeps_the_file_small_and_what_is_done_stays_done(tmp_path):
    folder = str(tmp_path / "team")
    killed = log_of(folder, "hand", "a1")
    killed.keep(["waits", 0], False)
    for number in range(5000):
        killed.keep(["key%d" % number, number], False)
        killed.remove("key%d" % number)
    (name,) = kept(folder)
    assert os.path.getsize(os.path.join(folder, name)) < 50000
    killed._log.close()
    assert log_of(folder, "hand", "a2").take_over(pytest.fail) == [["waits", 0]]


def test_a_file_is_taken_over_once_and_only_when_its_process_has_ended(tmp_path):
    folder = str(tmp_path / "team")
    one, other = (log_of(folder, "hand", process) for process in ("a1", "a2"))
    stranger = log_of(folder, "hand.two", "a3")
    assert one.take_over(pytest.fail) == []
    for row in (*ROWS, ROWS[0]):
        one.keep(row, False)
    one.sync()
    assert other.take_over(pytest.fail) == [], "its process lives"
    one._log.close()  # as a kill does
    assert stranger.take_over(pytest.fail) == [], "it is another agent's"
    with open(one._log.path, "ab") as file:
        file.write(b'["half a li')
    assert other.take_over(pytest.fail) == ROWS and other.take_over(pytest.fail) == []
    assert kept(folder) == ["hand.a2.reports"]
    for row in ROWS:
        other.remove(row[0])
    other.close()
    assert kept(folder) == []


def test_each_flipped_bit_is_told_unless_all_is_there(tmp_path, capfd):
    folder = tmp_path / "team"
    one = log_of(str(folder), "hand", "a1")
    for row in ROWS:
        one.keep(row, False)
    one._log.close()
    path = folder / "hand.a1.reports"
    whole = path.read_bytes()
    for place in range(0, len(whole) * 8, 3):
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        other = log_of(str(folder), "hand", "a2")
        found = other.take_over(pytest.fail)
        assert all(row in ROWS for row in found)
        assert ("was damaged" in capfd.readouterr().err) == (found != ROWS), place
        if found != ROWS:
            assert (folder / "hand.a1.reports.damaged").read_bytes() == data
            (folder / "hand.a1.reports.damaged").unlink()
        for row in found:
            other.remove(row[0])
        other.close()
    assert kept(folder) == []


def test_what_cannot_be_moved_is_sent_and_found_again(tmp_path, monkeypatch):
    """A disk that is full after the first row: its file stays, and what was read is returned."""
    folder, wrong = str(tmp_path / "team"), []
    one, two, other = (log_of(folder, "hand", process) for process in ("a1", "a2", "a3"))
    for file, rows in ((one, ROWS[:2]), (two, ROWS[2:])):
        for row in rows:
            file.keep(row, False)
        file._log.close()  # as a kill does
    append, room = RecordLog.append, [True, False, True]

    def appended(log, *values):
        if not room.pop(0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(log, *values)

    with monkeypatch.context() as patch:
        patch.setattr(RecordLog, "append", appended)
        assert other.take_over(wrong.append) == ROWS
    assert [e.errno for e in wrong] == [errno.ENOSPC]
    assert sorted(kept(folder)) == ["hand.a1.reports", "hand.a3.reports"]
    for row in ROWS:
        other.remove(row[0])
    other.close()
    assert log_of(folder, "hand", "a4").take_over(pytest.fail) == ROWS[:2]


def test_a_file_does_not_grow_without_end(tmp_path):
    """What is not done moves to a new file when most of many rows are done."""
    one, last = log_of(str(tmp_path), "hand", "a1"), ["last", "kept"]
    one.keep(last, False)
    for number in range(3000):
        one.keep([str(number)], False)
        one.remove(str(number))
    (name,) = kept(tmp_path)
    assert 0 < os.path.getsize(tmp_path / name) < 30000
    other = log_of(str(tmp_path), "hand", "a2")
    assert other.take_over(pytest.fail) == [], "the new file is locked, too"
    one._log.close()  # as a kill does
    assert last in other.take_over(pytest.fail)
    other.close()


def test_what_is_acknowledged_is_not_kept(world):
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0]
    hand.report(*ROWS[0], "hand", True)
    assert len(kept(world.keep)) == 1
    world.until(lambda: lead.outcome(IDS[0]) and not hand._waiting)
    [name] = kept(world.keep)
    assert os.path.getsize(os.path.join(world.keep, name)) == 0
    world.ends.remove(hand)
    hand.leave()
    assert kept(world.keep) == []


def test_a_report_that_is_too_long_is_not_kept(world):
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0]
    with pytest.raises(TooLong):
        hand.report(IDS[0], COMPLETED, "x" * MAX_ENTRY, None, 5, "hand", True)
    assert kept(world.keep) == []
    hand.report(*ROWS[0], "hand", True)
    world.until(lambda: lead.state(IDS[0]) == COMPLETED)


# -- the swarm


def test_a_report_that_is_too_long_keeps_no_other_one_back(world):
    """A version before this one has left it: it goes once the others are acknowledged."""
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0]
    too_long = [IDS[1], COMPLETED, "x" * MAX_ENTRY, None, 5]
    left_by_a_kill(world, too_long, ROWS[0])
    again = world.bus("hand")
    world.until(lambda: lead.state(IDS[0]) == COMPLETED and not again._waiting)
    assert [os.path.getsize(os.path.join(world.keep, name)) for name in kept(world.keep)] == [0]
    assert "cannot be sent: a task or a report of a swarm has at most" in world.refused[0]


def test_a_process_that_was_only_cut_off_says_what_its_task_came_to(world):
    """The others gave it up; its own report comes when it is back, and a person's word holds."""
    lead, hand = world.bus("lead", 0), world.bus("hand")
    for number in (0, 1):
        world.done(lead.put(task(number)))
        assert world.take(hand).id == IDS[number] and world.done(hand.begins(IDS[number]))
    world.ends.remove(hand)  # it hears nothing
    lead._append("gone", hand.process)
    world.until(lambda: lead.reclaim(2, True) or lead.state(IDS[1]) == DEAD)
    assert world.done(world.bus().drop(IDS[1]))
    world.ends.append(hand)
    for row in ROWS[:2]:
        hand.report(*row, "hand", True)
    world.until(lambda: not hand._waiting)
    assert hand.outcome(IDS[0])[:3] == ("hand", COMPLETED, {"text": "Bed 0."})
    assert hand.state(IDS[0]) == COMPLETED
    assert hand.state(IDS[1]) == FAILED and hand.outcome(IDS[1])[0] == ""
    assert [row[1] for row in hand.history(IDS[1])[1]] == ["", "hand"]


@pytest.mark.parametrize("was_given_up", [False, True])
def test_a_report_that_comes_late_and_twice_counts_once(world, was_given_up):
    """Also where the task was given up, because a tool had begun and its process was gone."""
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0] and world.done(hand.begins(IDS[0]))
    for bus in (hand, lead) if was_given_up else ():
        if bus is hand:
            world.ends.remove(hand)
            hand.leave()
        else:
            world.until(lambda: lead.reclaim(2, True) or lead.state(IDS[0]) == DEAD)
    left_by_a_kill(world, ROWS[0])
    again = world.bus("hand")
    world.until(lambda: lead.state(IDS[0]) == COMPLETED and not again._waiting)
    assert lead.outcome(IDS[0])[:3] == ("hand", COMPLETED, {"text": "Bed 0."})
    left_by_a_kill(world, ROWS[0])  # it had been sent before the kill
    third = world.bus("hand")
    world.until(lambda: not third._waiting)
    reports = [row for row in third.history(IDS[0])[1] if row[1]]
    assert [row[1:3] for row in reports] == [("hand", COMPLETED)]
    assert third.state(IDS[0]) == COMPLETED


def test_nobody_else_ends_what_was_given_up(world):
    """A person decides, unless the report of who did it comes."""
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0] and world.done(hand.begins(IDS[0]))
    world.ends.remove(hand)
    hand.leave()
    world.until(lambda: lead.reclaim(2, True) or lead.state(IDS[0]) == DEAD)
    assert world.done(lead.report(*ROWS[0], "operator"))
    assert lead.state(IDS[0]) == DEAD


@pytest.mark.parametrize("kind", ["redis", "nats"])
def test_a_report_outlives_a_worker_that_is_killed_while_the_engine_is_away(tmp_path, kind):
    """Its tool with side effects has run once, and does not run again."""
    world, agents = World(kind, tmp_path), []
    (tmp_path / "bed").mkdir()
    place = {"coordination": dict(SWARM["coordination"])}
    place["coordination"]["backend"], place["toml"] = settings(kind, world.server)
    folder = tmp_path / "state/swarms/team"

    def ran() -> list:
        return [name for name in os.listdir(tmp_path / "bed") if name != "go"]

    def reported() -> bool:
        log = (tmp_path / "state/hand/log.jsonl").read_text().splitlines()
        return "swarm.report" in [json.loads(line)["event"] for line in log]

    try:
        images = [project(tmp_path, name, **place) for name in ("lead", "hand")]
        agents = [start(tmp_path, image) for image in images]
        eventually(lambda: "result" in delegate(agents[0], "water bed"))
        eventually(ran)
        world.server.kill()
        (tmp_path / "bed/go").touch()
        eventually(reported)
        agents.pop().__exit__()  # kill -9
        assert len(kept(folder)) == 1
        world.server.start()
        agents.append(start(tmp_path, images[1]))
        bus = world.bus()
        world.until(lambda: bus.state(UUID % 1) == COMPLETED)
        assert bus.outcome(UUID % 1)[:3] == ("hand", COMPLETED, {"text": "Watered bed"})
        assert len(ran()) == 1
        assert [row[1] for row in bus.history(UUID % 1)[1] if row[1]] == ["hand"]
        eventually(lambda: [os.path.getsize(folder / name) for name in kept(folder)] == [0])
    finally:
        for agent in agents:
            agent.__exit__()
        world.close()
