"""Agents that delegate to each other in a circle are told so at once, and nobody waits for ever."""

import json

from swarm_team import SWARM, delegate, ended, look_on, project, start

ASKS = """
[[rule]]
when = "tell {name:word} {words:text}"
call = "delegate"
arguments = { task = "{words}", to = "{name}" }
then = [{ if = "failed", say = "It failed." }, { say = "{by} says: {result}" }]
"""
TOOLS = ["claw://registry/clawlite/delegate@1.0.0"]
NAMES = ("lead", "hand", "other")
MEMBERS = [{"identity_ref": name, "role": "worker"} for name in NAMES[1:]]
MEMBERS.insert(0, {"identity_ref": "lead", "role": "leader"})


def team(tmp_path, most=4, **more) -> list:
    """Return the images of a leader and two workers whose rules delegate."""
    coordination = json.loads(json.dumps(SWARM["coordination"]))
    coordination["concurrency"]["max_parallel"] = most
    coordination.update(more.pop("coordination", {}))
    changes = {"agents": MEMBERS, "coordination": coordination, **more}
    return [project(tmp_path, name, tools=TOOLS, rules=ASKS, **changes) for name in NAMES]


def test_a_circle_of_two_agents_is_refused_and_the_first_goes_on(tmp_path):
    images = team(tmp_path)
    with start(tmp_path, images[1]) as hand, start(tmp_path, images[2]):
        delegate(hand, "tell other tell hand look at 1")
        bus = look_on(tmp_path)
        state, _, result = ended(bus)
        assert state == "completed" and result["text"].startswith("other says:"), result
        said = "each process of hand waits for it, or for another task that waits for it"
        assert said in (tmp_path / "state/other/log.jsonl").read_text()
        states = sorted(bus.state(row[0]) for row in bus.tasks(9))
        assert states == ["completed", "failed", "partial"]
        bus.leave()


def test_a_worker_whose_swarm_has_one_place_cannot_wait_for_another(tmp_path):
    images = team(tmp_path, most=1)
    with start(tmp_path, images[1]) as hand, start(tmp_path, images[2]):
        delegate(hand, "tell other look at 1")
        bus = look_on(tmp_path)
        state, _, result = ended(bus)
        assert (state, result) == ("partial", {"text": "It failed."})
        said = "max_parallel is 1, and each running task waits for another"
        assert said in (tmp_path / "state/hand/log.jsonl").read_text()
        bus.leave()
