"""``clawlite swarm stop`` and ``resume``: no tool with side effects begins in a stopped swarm, in
whichever way it is called.
"""

import json

import pytest
from agents import Agent, eventually, linux
from swarm_team import GOES_ON, UUID, delegate, ended, is_stopped, look_on, project, start, swarm

STOPPED = "water: the swarm team was stopped by a person at "


@pytest.fixture
def images(tmp_path):
    return project(tmp_path, "lead"), project(tmp_path, "hand")


def water(number: int, tool="water") -> dict:
    context = {"request_id": UUID % (300 + number), "identity": "hand"}
    return {"name": tool, "arguments": {"bed": "7"}, "context": context}


def called(agent, tool: str, number: int) -> dict:
    return agent.call("claw.tool.call", water(number, tool), number)


def test_a_stopped_swarm_looks_and_waters_nothing_until_a_person_resumes(tmp_path, images):
    with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]) as hand:
        assert "result" in called(hand, "water", 1)
        assert swarm(tmp_path, "stop", images[0]) == (0, is_stopped(2), "")
        error = called(hand, "water", 2)["error"]
        assert error["code"] == -32011 and error["message"].startswith(STOPPED)
        assert error["data"]["stopped_by"] == "a person"
        assert "result" in called(hand, "look", 3)
        delegate(lead, "water bed", 1)
        state, status, result = ended(look_on(tmp_path), 1)
        assert (state, status) == ("partial", "partial") and "Watered" not in result["text"]
        assert swarm(tmp_path, "resume", images[1]) == (0, GOES_ON, "")
        assert "result" in called(hand, "water", 4)
        for event in ("swarm.stopped", "swarm.resumed"):
            log = tmp_path / "state/hand/log.jsonl"
            eventually(lambda event=event: '"%s"' % event in log.read_text(), 20)


def test_a_stop_holds_for_who_begins_later_and_for_one_that_only_asks(tmp_path, images):
    assert swarm(tmp_path, "stop", images[0]) == (0, is_stopped(0), "")
    told = '{"swarm":"team","stopped":true,"running":0,"count":3}\n'
    assert swarm(tmp_path, "stop", images[0], "--json") == (0, told, "")
    with start(tmp_path, images[1]) as hand:
        error = called(hand, "water", 1)["error"]
        assert error["code"] == -32011 and "clawlite swarm resume" in error["data"]["hint"]
    with Agent(linux("ask", "water 3", images[1]), tmp_path) as one:
        code = one.wait()
        assert code == 5 and "Watered" not in one.text(), (code, one.text(), one.errors())
        told = one.text() + one.errors()
        assert "Z - resume it with: clawlite swarm resume\n" in told, told
    with Agent(linux("run", images[1]), tmp_path, True) as one:
        one.expect("> ")
        one.line("water 3")
        assert "Z - resume it with: clawlite swarm resume\n" in one.expect("> ")
    with Agent(linux("ask", "look at 3", images[1]), tmp_path) as one:
        assert one.wait() == 0 and one.text() == "Bed 3 is dry.\n"
    assert swarm(tmp_path, "resume", images[0])[0] == 0
    with Agent(linux("ask", "water 3", images[1]), tmp_path) as one:
        assert one.wait() == 0 and one.text() == "Watered 3\n"


def test_what_a_person_approves_does_not_run_when_the_swarm_was_stopped_meanwhile(tmp_path):
    image = project(tmp_path, "hand", autonomy="supervised")
    with start(tmp_path, image) as hand:
        hand.record({"jsonrpc": "2.0", "id": 1, "method": "claw.tool.call", "params": water(1)})
        assert swarm(tmp_path, "stop", image)[0] == 0
        approve = {"request_id": UUID % 301}
        hand.record({"jsonrpc": "2.0", "id": 2, "method": "claw.tool.approve", "params": approve})
        answers = {one["id"]: one for one in (hand.message(), hand.message())}
        assert "result" in answers[2]
        assert answers[1]["error"]["message"].startswith(STOPPED)


def test_the_status_says_who_stopped_it(tmp_path, images):
    assert json.loads(swarm(tmp_path, "status", images[0], "--json")[1])["stopped"] is None
    swarm(tmp_path, "stop", images[0])
    stopped = json.loads(swarm(tmp_path, "status", images[0], "--json")[1])["stopped"]
    assert stopped["by"] == "a person" and stopped["time"].endswith("Z")
    said = swarm(tmp_path, "status", images[0])[1]
    assert (
        "stopped by a person at %s: tools with side effects are refused\n" % stopped["time"] in said
    )


def test_a_call_is_denied_when_nobody_can_know(tmp_path, images):
    with start(tmp_path, images[1]) as hand:
        file = tmp_path / "state/swarms/team/swarm.db"
        for one in file.parent.glob("swarm.db*"):
            one.unlink()
        file.mkdir()
        error = called(hand, "water", 1)["error"]
        assert error["code"] == -32011 and "cannot be known" in error["message"], error
        assert "result" in called(hand, "look", 2)
