"""The bus of a swarm: what every engine promises, on SQLite in a file and in memory."""

import os
import select
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm.bus import MAX_ENTRY, MOST_MESSAGES, Bus, TooLong
from clawlite.protocols.swarm.swarm import DEAD, FAILED, RUNNING, WAITING, Task

ROOT = Path(__file__).resolve().parents[3]
IDS = ["c1a00000-0000-4000-8000-%012d" % number for number in range(9)]


class Place:
    """A swarm's folder, and the ends of its bus that a test opens."""

    def __init__(self, folder):
        self.folder, self.now_ms, self.ends = folder, 1000, []

    def bus(self, identity="", at_once=1):
        one = Bus(str(self.folder), lambda: self.now_ms, os.urandom)
        one.join(identity, at_once)
        self.ends.append(one)
        return one


OPENS = """
import os, sys
from clawlite.linux.swarm.bus import MAX_ENTRY, TooLong, Bus
for number in range(40):
    sys.stdin.readline()
    end = Bus("%s/%d" % (sys.argv[1], number), lambda: 1, os.urandom)
    end.join("lead")
    end.leave()
    print(number, flush=True)
"""


def test_processes_that_begin_at_once_all_open_a_new_swarm(tmp_path):
    """SQLite's busy time-out does not hold while a file becomes a WAL file."""
    command = [sys.executable, "-c", OPENS, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    several = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(6)]
    try:
        for number in range(40):
            for one in several:
                one.stdin.write("\n")
                one.stdin.flush()
            said = [one.stdout.readline() for one in several]
            assert said == ["%d\n" % number] * len(several), several[said.index("")].stderr.read()
    finally:
        for one in several:
            one.kill()
            one.communicate()


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "swarm")
    yield made
    for end in made.ends:
        end.leave()
    assert [name for name in os.listdir(made.folder) if name.endswith(".fifo")] == []


def task(number=0, recipient="", description="Look.", data=None):
    return Task(IDS[number], description, data, "lead", recipient)


def is_woken(bus) -> bool:
    poll = select.poll()
    poll.register(bus.fileno(), select.POLLIN)
    return bool(poll.poll(0)) and bus.receive()


KILLED = """
import os, sys
from clawlite.linux.swarm.bus import MAX_ENTRY, TooLong, Bus
bus = Bus(sys.argv[1], lambda: 2000, os.urandom)
bus.join("hand", 1)
taken = bus.take("hand", True, None)
if len(sys.argv) > 2:
    bus.begins(taken.id)
print(taken.id, flush=True)
sys.stdin.read()
"""


def killed(place, *words) -> str:
    """Let another process take a task and be killed; return the id of the task."""
    command = [sys.executable, "-c", KILLED, str(place.folder), *words]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    taken = process.stdout.readline().strip()
    process.kill()
    process.communicate()
    return taken


def test_only_its_user_may_read_the_file_of_a_swarm(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    place = Place(tmp_path / "open")
    place.bus("lead")
    assert not any(file.stat().st_mode & 0o077 for file in place.folder.iterdir())
    for one in place.ends:
        one.leave()


def test_a_task_is_taken_once_and_in_its_turn(place):
    lead, one, two = place.bus("lead", 0), place.bus("hand"), place.bus("hand")
    for number in (1, 0):
        assert lead.put(task(number, data={"n": number}))
        place.now_ms += 1
    taken = one.take("hand", True, None)
    assert (taken.id, taken.description, taken.data, taken.sender) == (
        IDS[1],
        "Look.",
        {"n": 1},
        "lead",
    )
    assert two.take("hand", True, None).id == IDS[0]
    assert one.take("hand", True, None) is None
    assert one.state(IDS[1]) == RUNNING and one.state(IDS[2]) is None


def test_who_has_nothing_to_take_asks_for_no_lock(place, monkeypatch):
    monkeypatch.setattr("clawlite.linux.swarm.bus.BUSY_S", 0)
    lead, hand = place.bus("lead", 0), place.bus("hand")
    lead._db.execute("begin immediate")  # as while it syncs a task that it gives
    assert hand.take("hand", True, None) is None
    lead._db.execute("rollback")
    lead.put(task())
    assert hand.take("hand", True, None).id == IDS[0]


def test_a_task_delegated_twice_runs_once_and_another_content_is_refused(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    assert lead.put(task()) and lead.put(task())
    assert not lead.put(task(description="Water."))
    assert hand.take("hand", True, None) and hand.take("hand", True, None) is None
    assert lead.put(task()) and hand.take("hand", True, None) is None


def test_a_task_delegated_twice_may_have_the_keys_of_its_input_in_another_order(place):
    lead = place.bus("lead", 0)
    assert lead.put(task(data={"a": 1, "b": {"c": 2, "d": [3]}}))
    assert lead.put(task(data={"b": {"d": [3], "c": 2}, "a": 1}))
    assert not lead.put(task(data={"a": 1, "b": {"c": 2, "d": [4]}}))


def test_what_is_too_long_is_refused(place):
    lead = place.bus("lead", 0)
    fits = task(data="x" * (MAX_ENTRY - len('Look.""')))
    assert lead.put(fits) and lead.report(IDS[0], "completed", "x" * (MAX_ENTRY - 2), 0, 0, "lead")
    fits.id, fits.input = IDS[1], fits.input + "x"
    for refused in (
        lambda: lead.put(fits),
        lambda: lead.report(IDS[0], "completed", "x" * (MAX_ENTRY - 1), 0, 0, "lead"),
        lambda: lead.broadcast("lead", "\xe4" * (MAX_ENTRY // 2)),
    ):
        with pytest.raises(TooLong, match="at most 524288 bytes, got 5242"):
            refused()
    assert lead.state(IDS[1]) is None and len(lead.history(IDS[0])[1]) == 1, lead.history(IDS[0])


def test_who_a_task_is_for_takes_it(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    lead.put(task(0, "other"))
    lead.put(task(1))
    lead.put(task(2, "hand"))
    assert hand.take("hand", False, None).id == IDS[2]
    assert hand.take("hand", True, None).id == IDS[1]
    assert hand.take("hand", True, None) is None


def test_no_more_than_max_parallel_run_in_the_whole_swarm(place):
    lead, one, two = place.bus("lead", 0), place.bus("hand"), place.bus("hand")
    lead.put(task(0))
    lead.put(task(1))
    assert one.take("hand", True, 1) and two.take("hand", True, 1) is None
    assert one.report(IDS[0], "completed", 1, None, 5, "hand")
    assert two.take("hand", True, 1).id == IDS[1]


def test_a_report_that_comes_while_a_task_is_read_comes_before_or_after(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    lead.put(task())
    hand.take("hand", True, 1)

    def report_first(statement: str):
        if "from reports" in statement or "select state" in statement:
            hand.report(IDS[0], "completed", {}, None, None, "hand")

    lead._db.set_trace_callback(report_first)
    _, reports, state = lead.history(IDS[0])
    lead._db.set_trace_callback(None)
    assert (reports, state) == ([], "running")
    _, reports, state = lead.history(IDS[0])
    assert (len(reports), state) == (1, "completed")


def test_the_first_report_ends_a_task_and_later_ones_are_kept(place):
    lead = place.bus("lead", 0)
    lead.put(task())
    assert not lead.report(IDS[1], "completed", {}, None, None, "hand")
    assert lead.report(IDS[0], "partial", {"half": 1}, 12, 34, "hand")
    assert lead.report(IDS[0], "failed", None, None, None, "operator")
    assert lead.state(IDS[0]) == "partial"
    events, reports, _ = lead.history(IDS[0])
    assert [(what, who) for _, what, who in events] == [
        ("delegated", "lead"),
        ("partial", "hand"),
        ("failed", "operator"),
    ]
    assert [row[1:] for row in reports] == [
        ("hand", "partial", {"half": 1}, 12, 34),
        ("operator", "failed", None, None, None),
    ]


def test_who_changes_something_wakes_the_others(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    lead.receive(), hand.receive()
    assert not is_woken(hand)
    lead.put(task())
    assert is_woken(hand) and not is_woken(hand)
    assert lead.receive() and not lead.receive()
    hand.report(IDS[0], "completed", {}, None, None, "hand")
    assert is_woken(lead)


def test_a_broadcast_reaches_those_who_are_there_once_and_not_its_sender(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    lead.broadcast("lead", {"news": 1})
    late = place.bus("hand")
    assert hand.messages() == [("lead", {"news": 1})]
    assert hand.messages() == lead.messages() == late.messages() == []


def test_broadcasts_are_not_kept_for_ever(place):
    lead = place.bus("lead", 0)
    for number in range(MOST_MESSAGES + 5):
        lead.broadcast("lead", {})
    assert lead._rows("select count(*) from messages") == [(MOST_MESSAGES,)]


def test_who_is_there_and_who_is_busy(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    assert lead.present() == {"lead": [False], "hand": [True]}
    lead.put(task())
    hand.take("hand", True, None)
    assert lead.present()["hand"] == [False]
    place.ends.remove(hand)
    hand.leave()
    assert lead.present() == {"lead": [False]}


def test_a_task_whose_process_was_killed_is_given_back(place):
    lead = place.bus("lead", 0)
    lead.put(task())
    assert killed(place) == IDS[0] and lead.state(IDS[0]) == RUNNING
    assert "hand" not in lead.present()
    assert lead.reclaim(1, True) == [(IDS[0], WAITING, "its process ended")]
    assert lead.reclaim(1, True) == []
    killed(place)
    assert lead.reclaim(1, True) == [(IDS[0], DEAD, "its process ended, 2 times in all")]
    assert lead.state(IDS[0]) == DEAD
    assert lead.history(IDS[0])[1][0][2:4] == (
        "failed",
        {"error": "its process ended, 2 times in all"},
    )


def test_a_task_that_may_have_had_side_effects_is_never_begun_again_by_itself(place):
    lead = place.bus("lead", 0)
    lead.put(task())
    killed(place, "begins")
    ((_, state, why),) = lead.reclaim(5, True)
    assert state == DEAD and "what it did is not known" in why
    assert place.bus("hand").take("hand", True, None) is None
    lead.again(IDS[0])
    assert place.bus("hand").take("hand", True, None).id == IDS[0]


def test_without_dead_letters_what_is_given_up_has_failed(place):
    lead = place.bus("lead", 0)
    lead.put(task())
    killed(place, "begins")
    lead.reclaim(5, False)
    assert lead.state(IDS[0]) == FAILED


def test_a_dead_task_that_is_dropped_has_failed(place):
    lead = place.bus("lead", 0)
    lead.put(task())
    killed(place, "begins")
    lead.reclaim(0, True)
    lead.drop(IDS[0])
    assert lead.state(IDS[0]) == FAILED


def test_what_nobody_takes_in_time_is_given_up(place):
    lead = place.bus("lead", 0)
    lead.put(task())
    place.now_ms += 999
    assert lead.expire(1000, True) == []
    place.now_ms += 1
    assert lead.expire(1000, True) == [(IDS[0], DEAD, "nobody took it within 1000 ms")]


def test_who_ends_in_order_gives_back_what_has_done_nothing(place):
    lead, hand = place.bus("lead", 0), place.bus("hand")
    lead.put(task(0))
    lead.put(task(1))
    for number in (0, 1):
        assert hand.take("hand", True, None).id == IDS[number]
    hand.begins(IDS[1])
    hand.release(IDS[0]), hand.release(IDS[1])
    assert lead.state(IDS[0]) == WAITING and lead.state(IDS[1]) == RUNNING


def test_who_joins_while_others_wake_is_not_taken_for_one_that_ended(place, monkeypatch):
    """Between the making of a FIFO and its opening nobody reads it."""
    lead, mkfifo = place.bus("lead", 0), os.mkfifo

    def made(path, mode):
        mkfifo(path, mode)
        lead.put(task())

    monkeypatch.setattr(os, "mkfifo", made)
    assert place.bus("hand").take("hand", True, None).id == IDS[0]


def test_alone_in_memory_it_keeps_the_same_promises():
    bus = Bus(None, lambda: 7, os.urandom)
    bus.join("peer", 1)
    assert bus.fileno() == -1 and bus.put(task(0, "peer")) and bus.receive()
    assert bus.take("peer", True, None).id == IDS[0]
    assert bus.present() == {"peer": [False]} and bus.reclaim(0, True) == []
    assert bus.report(IDS[0], "completed", {}, None, None, "peer") and not bus.is_open()
    bus.leave()


@pytest.mark.parametrize("what", ["no database", "a folder that is a file"])
def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path, what):
    folder = tmp_path / "swarm"
    if what == "no database":
        folder.mkdir()
        (folder / "swarm.db").write_bytes(b"this is something else " * 100)
    else:
        folder.write_text("")
    with pytest.raises(ClawError, match="swarm's file in .* cannot be used"):
        Bus(str(folder), lambda: 0, os.urandom)


def test_a_file_of_an_older_version_gets_the_tables_that_it_lacks(place):
    one = place.bus("one")
    one.put(task(0))
    one._db.executescript("drop table tries; pragma user_version = 2;")
    assert place.bus("two").take("two", True, None).id == IDS[0]


def test_a_file_of_an_older_version_is_upgraded_while_somebody_writes(place, monkeypatch):
    """A process of that version writes without the lock on the folder, at any moment."""
    one = place.bus("one")
    one._db.executescript("drop table accounts; pragma user_version = 4;")
    other = sqlite3.connect(place.folder / "swarm.db", timeout=0, isolation_level=None)
    written, connect = [], sqlite3.connect

    def meddle(statement: str):
        if statement.strip().startswith("create table"):
            try:
                other.execute("insert into messages values (null, 'one', '1', 1)")
                written.append(True)
            except sqlite3.OperationalError:
                written.append(False)  # it has to wait

    def connected(*place, **more):
        db = connect(*place, **more)
        db.set_trace_callback(meddle)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        two = place.bus("two")
    other.close()
    assert set(written) == {False} and two.budget(IDS[0]) == [(0, 0, 0), (0, 0, 0)]


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_folder_that_is_removed_while_it_is_used_is_begun_anew(place, capfd, replaced):
    one, two = place.bus("one"), place.bus("two")
    number = one.fileno()
    assert one.put(task(0))
    if replaced:
        shutil.copytree(place.folder, place.folder.with_name("copy"), ignore=_fifos)
    shutil.rmtree(place.folder)
    if replaced:
        shutil.copytree(place.folder.with_name("copy"), place.folder)
    assert one.put(task(1)) and one.fileno() == number
    assert "swarm.db was removed or replaced" in capfd.readouterr().err
    taken = two.take("two", True, None)
    assert taken.id == IDS[0 if replaced else 1]
    assert "swarm.db was removed or replaced" in capfd.readouterr().err
    while one.receive():
        pass
    assert two.report(taken.id, "completed", {}, None, None, "two") and is_woken(one)
    assert sorted(one.present()) == ["one", "two"] and capfd.readouterr().err == ""


def _fifos(_, names: list) -> list:
    return [name for name in names if name.endswith(".fifo")]


def test_a_folder_that_cannot_be_made_anew_is_an_error_until_it_can(place):
    one = place.bus("one")
    shutil.rmtree(place.folder)
    place.folder.write_text("a file in the folder's place")
    for _ in range(2):
        with pytest.raises(ClawError, match="swarm's file in .* cannot be used"):
            one.put(task(0))
    place.folder.unlink()
    assert one.put(task(0)) and one.take("one", True, None).id == IDS[0]
