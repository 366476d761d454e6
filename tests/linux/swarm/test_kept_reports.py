"""A report outlives its process: it is kept in a file until the engine has acknowledged it, and the
next process of the same agent sends it again.
"""

import json
import os

import pytest
from agents import eventually
from swarm_team import SWARM, UUID, delegate, project, start
from swarm_world import ENGINES, IDS, World, settings, task

from clawlite.core.swarm.swarm import COMPLETED, DEAD
from clawlite.linux.files.inherited_log import InheritedLog
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.swarm.replicated_bus import REPORTS

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


def left_by_a_kill(world, row: list):
    """Write what a process of "hand" leaves that had not heard of the report *row*."""
    file = log_of(world.keep, "hand", "killed")
    file.keep(row, True)
    file._log.close()


# -- the file


def test_a_file_is_taken_over_once_and_only_when_its_process_has_ended(tmp_path):
    folder = str(tmp_path / "team")
    one, other = (log_of(folder, "hand", process) for process in ("a1", "a2"))
    stranger = log_of(folder, "hand.two", "a3")
    assert one.left_behind() == []
    for row in (*ROWS, ROWS[0]):
        one.keep(row, False)
    one.sync()
    assert other.left_behind() == [], "its process lives"
    one._log.close()  # as a kill does
    assert stranger.left_behind() == [], "it is another agent's"
    with open(one._log.path, "ab") as file:
        file.write(b'["half a li')
    assert other.left_behind() == ROWS and other.left_behind() == []
    assert kept(folder) == ["hand.a2.reports"]
    for row in ROWS:
        other.done(row[0])
    other.close()
    assert kept(folder) == []


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


# -- the swarm


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
