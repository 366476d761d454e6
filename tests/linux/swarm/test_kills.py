"""kill -9 of leaders and workers loses no acknowledged task and repeats no side effect."""

import os
import random

from agents import Agent, eventually, linux
from swarm_team import UUID, delegate, look_on, project, start

WORKERS = 2
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

    def __init__(self, tmp_path):
        (tmp_path / "done").mkdir()
        self.home, self.kills = tmp_path, 0
        failure = {"retry_per_agent": 1000}
        self._images = [
            project(tmp_path, name, code=TOOLS, failure=failure) for name in ("lead", "hand")
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


def campaign(tmp_path, seed: int, kills: int) -> dict:
    """Delegate until there were so many *kills*; return {state: tasks}, with what was checked."""
    dice, team, acknowledged, number = random.Random(seed), Team(tmp_path), [], 0
    try:
        while team.kills < kills:
            number += 1
            what = "water %d" if number % 2 else "look at %d"
            assert delegate(team.lead, what % number, number)["result"] == {"acknowledged": True}
            acknowledged.append(number)
            if dice.random() < 0.02:
                team.kill_leader()
            elif dice.random() < 0.1:
                team.kill_worker(dice.randrange(WORKERS))
        bus = look_on(tmp_path)
        eventually(lambda: not bus.is_open())
        states = {task[0]: task[2] for task in bus.tasks(-1)}
        bus.leave()
    finally:
        team.close()
    found = {}
    for number in acknowledged:
        state = states[UUID % number]
        found[state] = found.get(state, 0) + 1
        done = tmp_path / "done" / str(number)
        if number % 2:
            assert state in ("completed", "dead"), (number, state)
            assert state == "dead" or os.path.getsize(done) == 1
            assert not done.exists() or os.path.getsize(done) == 1, "it happened twice"
        else:
            assert state == "completed", (number, state)
    return found


def test_kill_9_loses_no_acknowledged_task_and_repeats_no_side_effect(tmp_path):
    assert campaign(tmp_path, 1, 12)["completed"] > 12
