"""The bus of one machine on a file system that is really full: a small tmpfs, of which more and
more is free.
"""

import os

import pytest
from agents import Agent, eventually, linux
from small_disk import fill, small_disk
from swarm_team import GOES_ON, UUID, delegate, ended, is_stopped, look_on, project, start, swarm
from swarm_world import Turns

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm.bus import Bus
from clawlite.protocols.swarm.swarm import COMPLETED, DEAD, RUNNING, WAITING, Task

FULL = "the swarm's file in %s cannot be used: database or disk is full"
ROOM = "its disk must have room"


@pytest.fixture
def disk(tmp_path):
    """A tmpfs of 512 KB where the swarms of this machine lie; skips where it cannot be mounted."""
    folder = tmp_path / "state/swarms"
    folder.mkdir(parents=True, mode=0o700)
    with small_disk(folder):
        yield folder


def task(number: int) -> Task:
    return Task(UUID % number, "look at bed", {"what": "x" * 3000}, "lead", "")


@pytest.mark.parametrize("pages", range(0, 24))
def test_what_a_full_disk_acknowledged_is_there_and_the_rest_is_refused(disk, pages):
    place, ballast = disk / "team", disk / "ballast"
    one = Bus(str(place), lambda: 1000, os.urandom)
    one.join("hand", 9)
    for number in (1, 2, 3):
        one.put(task(number))
    one.take("hand", True, None)
    fill(ballast, pages)
    kept, refused = {}, []

    def attempt(name: str, act):
        try:
            kept[name] = act()
        except ClawError as e:
            assert FULL % place in e.message and ROOM in e.hint, (name, e.message, e.hint)
            refused.append(name)

    attempt("put", lambda: one.put(task(4)))
    attempt("begins", lambda: one.begins(UUID % 1))
    attempt("report", lambda: one.report(UUID % 1, COMPLETED, {}, None, 1, "hand", True))
    attempt("take", lambda: one.take("hand", True, None).id)
    attempt("stop", lambda: one.stop("a person"))
    attempt("broadcast", lambda: one.broadcast("lead", {"text": "x" * 3000}))
    assert one.state(UUID % 3) == WAITING and one.holds(UUID % 1) is ("report" in refused)
    one.leave()
    ballast.unlink()
    later = Bus(str(place), lambda: 1000, os.urandom)
    later.join("hand", 9)
    assert later.state(UUID % 4) == (WAITING if "put" in kept else None)
    assert (later.find_stop() is not None) is ("stop" in kept)
    lost = later.reclaim(1, True)
    if "report" in kept:
        assert later.state(UUID % 1) == COMPLETED and later.outcome(UUID % 1)[1] == COMPLETED
    elif "begins" in kept:  # a tool had begun
        assert later.state(UUID % 1) == DEAD
    else:
        assert later.state(UUID % 1) == WAITING
    if "take" in kept:
        assert later.state(kept["take"]) == WAITING, lost  # its process ended
    assert later.put(task(5)) and later.state(UUID % 5) == WAITING
    assert later.stop("a person") is None and later.find_stop()
    later.leave()
    assert pages > 3 or refused, "it was not full"


def test_a_report_that_does_not_fit_is_written_when_there_is_room(disk):
    """Before, its task stayed at this process for ever."""
    now, bus = [0], Bus(str(disk / "team"), lambda: 1000, os.urandom)
    hand = Turns(bus, clock=lambda: now[0])
    bus.put(task(1))
    hand.poll()
    fill(disk / "ballast", 0)
    hand.ended(UUID % 1, "x" * 60000)
    assert bus.state(UUID % 1) == RUNNING
    now[0] = hand.deadline()
    hand.poll()
    assert bus.state(UUID % 1) == RUNNING and hand.deadline() > now[0]
    (disk / "ballast").unlink()
    now[0] = hand.deadline()
    hand.poll()
    assert bus.outcome(UUID % 1)[:4] == ("hand", COMPLETED, {"text": "x" * 60000}, None)
    assert hand.deadline() is None
    bus.put(task(2))
    hand.poll()
    fill(disk / "ballast", 0)
    hand.ended(UUID % 2, "x" * 60000)
    (disk / "ballast").unlink()
    hand.close()  # it reports what it can before it is gone
    later = Bus(str(disk / "team"), lambda: 1000, os.urandom)
    assert later.outcome(UUID % 2)[1] == COMPLETED
    later.leave()


def test_agents_on_a_full_disk_say_so_and_go_on_when_there_is_room(tmp_path, disk):
    images = project(tmp_path, "lead"), project(tmp_path, "hand")
    with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]) as hand:
        delegate(lead, "look at bed", 1)
        bus = look_on(tmp_path)
        assert ended(bus, 1)[0] == COMPLETED
        fill(disk / "ballast", 0)
        number, error = 1, None
        while error is None:  # what the file has allocated takes some more
            number += 1
            error = delegate(lead, "look at " + "x" * 20000, number).get("error")
        assert FULL % (disk / "team") in error["message"] and ROOM in error["data"]["hint"], error
        code, said, told = swarm(tmp_path, "stop", images[0])
        # whether so few bytes fit depends on the room that SQLite's log has been given before
        is_done = (code, said, told) == (0, is_stopped(2), "")
        assert is_done or code == 1 and said == "" and ROOM in told, (code, said, told)
        context = {"request_id": UUID % 900, "identity": "hand"}
        params = {"name": "look", "arguments": {"bed": "7"}, "context": context}
        assert "result" in hand.call("claw.tool.call", params, 900)  # what needs no swarm goes on
        (disk / "ballast").unlink()
        assert swarm(tmp_path, "stop", images[0]) == (0, is_stopped(2), "")
        assert swarm(tmp_path, "resume", images[0]) == (0, GOES_ON, "")
        assert "result" in delegate(lead, "look at bed", number)
        eventually(lambda: bus.state(UUID % number) == COMPLETED)
        bus.leave()


def test_a_process_that_begins_on_a_full_disk_says_so(tmp_path, disk):
    image = project(tmp_path, "hand")
    fill(disk / "ballast", 0)
    with Agent(linux("serve", image, "--stdio"), tmp_path) as hand:
        assert hand.wait() == 2 and "disk must have room" in hand.errors(), hand.errors()
        assert "Traceback" not in hand.errors()
