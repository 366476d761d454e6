"""kill -9 of leaders and workers loses no acknowledged task and repeats no side effect."""

import os
import random
import time

import pytest
from agents import DEADLINE_S, Agent, eventually, linux
from swarm_team import SWARM, UUID, delegate, look_on, project, start
from swarm_world import ENGINES, World, settings

WORKERS = 2
MOST_AT_ONCE = 4000  # tasks that are counted together: a bus keeps 10,000
TOOLS = '''\
def look(bed: str) -> str:
    """Look at a bed."""
    yield 5
    return bed + " is dry"


def water(bed: str) -> str:
    """Water a bed: a byte more in its file."""
    with open("done/" + bed, "a") as file:
        file.write("x")
    yield 5
    return "Watered " + bed
'''


class Team:
    """A leader and its workers, any of which may be killed."""

    def __init__(self, tmp_path, world=None):
        (tmp_path / "done").mkdir()
        self.home, self.kills = tmp_path, 0
        more = {}
        if world:
            backend, more["toml"] = settings(world.kind, world.server)
            more["coordination"] = dict(SWARM["coordination"], backend=backend)
        failure = {"retry_per_agent": 1000}
        self._images = [
            project(tmp_path, name, code=TOOLS, failure=failure, **more)
            for name in ("lead", "hand")
        ]
        self.lead = start(tmp_path, self._images[0])
        self.workers = [self._worker() for _ in range(WORKERS)]

    def _worker(self) -> Agent:
        return Agent(linux("serve", self._images[1], "--stdio"), self.home)

    def kill_worker(self, at: int):
        self.kills += 1
        self.workers[at].__exit__()
        self.workers[at] = self._worker()

    def kill_leader(self):
        self.kills += 1
        self.lead.__exit__()
        self.lead = start(self.home, self._images[0])

    def close(self):
        for one in (self.lead, *self.workers):
            one.__exit__()


def campaign(tmp_path, seed: int, kills: int, world=None, tasks=0) -> dict:
    """Delegate until there were so many *kills* and *tasks*; return how many tasks were
    acknowledged, in which state they are, and how many were lost or had their side effect twice:
    none.

    world  ``World`` of the engine, which is killed as well; None: the swarm's file
    tasks  kills are spread over so many; 0: some 16 of a hundred tasks are followed by one
    """
    dice, team, number = random.Random(seed), Team(tmp_path, world), 0
    rate = kills / tasks / 0.16 if tasks else 1
    found = dict.fromkeys(("tasks", "kills", "engine kills", "lost", "twice"), 0)
    acknowledged: list = []
    away_since = None  # the engine has been, for the leader
    try:
        while team.kills < kills or found["tasks"] + len(acknowledged) < tasks:
            number += 1
            what = "water %d" if number % 2 else "look at %d"
            answer = delegate(team.lead, what % number, number)
            if world and "error" in answer:  # the engine was away
                assert "cannot be used" in answer["error"]["message"], answer
                away_since = away_since or time.monotonic()
                assert time.monotonic() < away_since + DEADLINE_S, answer
                continue
            away_since = None
            assert answer["result"] == {"acknowledged": True}
            acknowledged.append(number)
            if dice.random() < 0.02 * rate:
                team.kill_leader()
            elif dice.random() < 0.1 * rate:
                team.kill_worker(dice.randrange(WORKERS))
            elif world and dice.random() < 0.05 * rate:
                team.kills += 1
                found["engine kills"] += 1
                world.server.kill()
                world.server.start()
            if len(acknowledged) == MOST_AT_ONCE:  # the bus forgets old ones that have ended
                _count(tmp_path, acknowledged, world, found)
        _count(tmp_path, acknowledged, world, found)
    finally:
        team.close()
    found["kills"] = team.kills
    assert found["lost"] == found["twice"] == 0, found
    return found


def _count(tmp_path, acknowledged: list, world, found: dict):
    """Wait until the *acknowledged* tasks have ended, and count them."""
    bus = world.bus(is_patient=True) if world else look_on(tmp_path)
    if world:
        world.until(lambda: not bus.is_open())
        world.ends.remove(bus)
    else:
        eventually(lambda: not bus.is_open())
    states = {task[0]: task[2] for task in bus.tasks(-1)}
    bus.leave()
    found["tasks"] += len(acknowledged)
    for number in acknowledged:
        state = states.get(UUID % number)
        found[state] = found.get(state, 0) + 1
        done = tmp_path / "done" / str(number)
        # a worker that was killed between open and write leaves an empty file
        times = os.path.getsize(done) if done.exists() else 0
        found["twice"] += times > 1
        # one with a side effect may be given up, for a person: what it did is not known
        is_kept = state == "completed" and times == number % 2 or state == "dead" and number % 2
        found["lost"] += not is_kept
    acknowledged.clear()


def test_kill_9_loses_no_acknowledged_task_and_repeats_no_side_effect(tmp_path):
    assert campaign(tmp_path, 1, 12)["completed"] > 12


@pytest.mark.parametrize("kind", ENGINES)
def test_kill_9_of_agents_and_engines_loses_no_acknowledged_task(tmp_path, kind):
    world = World(kind, tmp_path)
    try:
        assert campaign(tmp_path, 2, 10, world)["completed"] > 10
    finally:
        world.close()
