"""CKP 0.2.0, section 8, ERROR on a board: what fails, how it is told, and the ways out, with
real processes and real faults.
"""

import json

import pytest
from agents import BENCH, INITIALIZE, Agent, board, eventually, tool_call

from clawlite.host.builder.build import build_beside

SABOTAGE = '''

def sabotage() -> str:
    """Break the session of the agent that runs this, once."""
    import inside_board
    inside_board.break_session()
    return "done"
'''
AUDIT = BENCH["claw.yaml"].replace(
    '{ id: "all", action: "allow", scope: "all" }',
    '{ id: "all", action: "audit-only", scope: "all" }',
)


STUBBORN = """

def hold_on() -> str:
    \"\"\"Let nothing that is under way be ended any more.\"\"\"
    import inside_board
    inside_board.hold_on()
    return "done"
"""


@pytest.fixture
def serving(micropython, tmp_path):
    """Return a function that builds the bench agent with other files, and boots it."""

    def start(more: dict):
        (tmp_path / "flash").mkdir()
        (tmp_path / "marks").mkdir()
        packages = 'packages = ["inside_board"]\n' + BENCH["clawlite.toml"]
        for name, text in dict(BENCH, **dict(more, **{"clawlite.toml": packages})).items():
            (tmp_path / "flash" / name).write_text(text)
        words, path = board(build_beside(str(tmp_path / "flash")), "--stdio", inside=True)
        return Agent(words, tmp_path / "home", env=dict(path, MARKS=tmp_path / "marks"))

    return start


def state(agent) -> str:
    return agent.call("claw.status")["result"]["state"]


def test_8_what_nobody_expected_switches_all_off_and_is_got_over(serving, tmp_path):
    with serving({"tools.py": BENCH["tools.py"] + SABOTAGE}) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000}, 5)))
        eventually((tmp_path / "marks/pump-on").exists)
        agent.line(json.dumps(tool_call("sabotage", number=6)))
        answers = {answer["id"]: answer for answer in (agent.message(), agent.message())}
        assert answers[6]["result"]["content"][0]["text"] == "done"
        assert (
            answers[5]["error"]["code"] == -32603
            and "nobody expected this" in answers[5]["error"]["message"]
        )
        assert (tmp_path / "marks/pump-off").exists()
        assert state(agent) == "ERROR"
        agent.line(json.dumps(tool_call("quick", number=7)))
        refused = agent.message()["error"]
        assert (
            refused["code"] == -32600
            and "ValueError: nobody expected this" in refused["message"]
            and refused["data"]["hint"]
        )
        eventually(lambda: state(agent) == "READY")
        agent.line(json.dumps(tool_call("quick", number=8)))
        assert agent.message()["result"]["isError"] is False
        agent.end()
        assert (
            agent.wait() == 0
            and agent.errors().count("clawlite: ERROR: ") == 1
            and "Traceback" not in agent.errors()
        )


def test_8_a_log_that_a_policy_demands_and_that_cannot_be_written(serving, tmp_path):
    (tmp_path / "flash").mkdir()
    (tmp_path / "flash/log.jsonl").mkdir()
    (tmp_path / "flash").rename(tmp_path / "before")
    agent = serving({"claw.yaml": AUDIT})
    with agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("quick", number=1)))
        assert agent.message()["result"]["isError"] is False
        log = tmp_path / "flash/log.jsonl"
        log.rename(tmp_path / "flash/log.old")
        # a folder stands where the log belongs
        (tmp_path / "before/log.jsonl").rename(log)
        agent.line(json.dumps(tool_call("quick", number=2)))
        agent.message()
        eventually(lambda: state(agent) == "ERROR")
        agent.line(json.dumps(tool_call("quick", number=3)))
        refused = agent.message()["error"]
        assert "audit-only" in refused["message"]
        assert refused["data"]["hint"] == "look at the flash"  # it has room
        assert agent.call("claw.initialize", INITIALIZE)["error"]["code"] == -32600
        log.rmdir()
        eventually(lambda: state(agent) == "READY")
        agent.line(json.dumps(tool_call("quick", number=4)))
        assert agent.message()["result"]["isError"] is False
        agent.end()
        assert agent.wait() == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events[:1]] == ["tool.call"]
    assert [event["to"] for event in events if event["event"] == "lifecycle.transition"][:2] == [
        "STARTING",
        "READY",
    ]


def test_8_what_cannot_be_ended_does_not_keep_a_board_from_its_end(serving, tmp_path):
    with serving({"tools.py": BENCH["tools.py"] + STUBBORN}) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000}, 5)))
        eventually((tmp_path / "marks/pump-on").exists)
        agent.line(json.dumps(tool_call("hold_on", number=6)))
        agent.end()
        assert agent.wait() == 0
        assert (tmp_path / "marks/pump-off").exists() and "Traceback" not in agent.errors()
