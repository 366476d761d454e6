"""An agent with rules in a real process: an operator's methods, the console, and a process that is
killed while a question waits.
"""

import json
import signal
from pathlib import Path

import pytest
from agents import Agent, clawlite, eventually, linux, tool_call
from ckp.test_methods import line
from llm_server import Server, say
from provider_builds import provider
from rules_world import ALLOW, ASK, READING, RULE, project

from clawlite.linux.rules.rule_group import RuleGroup

PAGE = Path(__file__).parents[3] / "docs/methods.md"
UNKNOWN, PARAMS, DENIED = -32601, -32602, -32011


def built(tmp_path, rules: str, policy=None):
    project(tmp_path / "project", rules, policy)
    made = clawlite("build", "-o", "claw.cbor", cwd=tmp_path / "project")
    assert made.returncode == 0, made
    return tmp_path / "project" / "claw.cbor"


def test_the_page_has_each_method():
    rows = [row.split() for row in RuleGroup.rows.split("\n")[1:-1]]
    table = PAGE.read_text().split("|---|---|---|---|---|---|\n")[2].split("\n\n")[0]
    assert table == "\n".join(map(line, rows))


def code(agent, method: str, params) -> int:
    answer = agent.call(method, params)
    return answer["error"]["code"] if "error" in answer else 0


def test_methods_of_a_session(tmp_path):
    image = built(tmp_path, READING + RULE + 'every = "1s"\n', ASK)
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        listed = eventually(
            lambda: (
                rules := agent.call("claw.rule.list")["result"]["rules"],
                rules[0]["waits"] and rules,
            )[1]
        )
        assert listed[0]["begins"] == "every 1s" and listed[0]["call"] == "water(seconds=3)"
        assert agent.call("claw.reading.list")["result"]["readings"][0]["value"] == 20
        kept = agent.call("claw.reading.history", {"name": "soil"})["result"]
        assert [value for _, value in kept["samples"]] == [20] and kept["from"] < kept["to"]
        for wrong in ({}, {"name": "x"}, {"name": "soil", "points": 1}):
            assert code(agent, "claw.reading.history", wrong) == PARAMS
        played = agent.call("claw.rule.rehearse", {"name": "r"})["result"]
        assert played["runs"] and {run["rule"] for run in played["runs"]} == {"r"}
        assert code(agent, "claw.rule.rehearse", {"name": "x"}) == PARAMS
        for method in ("why", "switch", "answer"):
            assert code(agent, "claw.rule." + method, {}) == PARAMS
            assert code(agent, "claw.rule." + method, {"name": "x"}) == PARAMS
        assert code(agent, "claw.rule.switch", {"name": "r", "is_on": 1}) == PARAMS
        good = {"name": "r", "is_approved": True, "reason": "good"}
        assert code(agent, "claw.rule.answer", good) == 0
        eventually(lambda: agent.call("claw.rule.list")["result"]["rules"][0]["last"])
        assert code(agent, "claw.rule.switch", {"name": "r", "is_on": False}) == 0
        assert code(agent, "claw.rule.answer", good) == DENIED
        assert "switched it off" in agent.call("claw.rule.why", {"name": "r"})["result"]["text"]


def test_without_rules_the_methods_are_unknown_and_nothing_of_them_is_loaded(tmp_path):
    image = built(tmp_path, '[[rule]]\nwhen = "hello"\nsay = "hi"\n')
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        assert code(agent, "claw.rule.list", {}) == UNKNOWN
    said = clawlite(
        "serve", str(image), "--stdio", cwd=tmp_path, stdin=b"", PYTHONPROFILEIMPORTTIME="1"
    )
    text = said.stderr
    assert "clawlite.linux.runtime.shell" in text and "clawlite.core.rules" not in text
    assert "clawlite.linux.rules" not in text


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_question_outlives_its_process(tmp_path, how):
    image = built(tmp_path, RULE + 'every = "1s"\nat_most = "1/week"\n', ASK)
    with Agent(linux("run", image), tmp_path) as agent:
        agent.expect("Approve water(seconds=3)?")
        agent.signal(how)
        agent.wait()
    with Agent(linux("run", image), tmp_path, terminal=True) as agent:
        agent.expect("Approve water(seconds=3)?")
        agent.line("/rules")
        agent.expect("waits for a person")
        agent.end()  # Ctrl-D: whoever leaves denies nothing
        agent.wait()
    with Agent(linux("run", image), tmp_path) as agent:
        agent.expect("Approve water(seconds=3)?")
        agent.line("y")
        agent.line("/rules last")
        eventually(lambda: (agent.line("/rules last"), agent.text())[1].count(" ok"))
        agent.signal(signal.SIGTERM)
        agent.wait()


def test_an_operators_agent_runs_rules_until_its_input_ends(tmp_path):
    image = built(tmp_path, RULE + 'every = "1s"\n', ALLOW)
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        eventually(lambda: agent.call("claw.rule.list")["result"]["rules"][0]["last"])
        agent.end()
        assert agent.wait() == 0


def test_each_act_is_in_the_chain_of_the_audit(tmp_path):
    """CKP 5.8, audit: the caller is the rule; a reading is there when its state changes."""
    folder = tmp_path / "project"
    audit = {"log_inputs": True, "log_outputs": True, "log_approvals": True, "destination": "file"}
    project(
        folder,
        READING.replace("60s", "100ms") + RULE + 'every = "1s"\nat_most = "1/week"\n',
        policies=[{"inline": {"rules": ALLOW, "audit": audit}}],
    )
    assert clawlite("build", "-o", "claw.cbor", cwd=folder).returncode == 0
    with Agent(linux("serve", folder / "claw.cbor", "--stdio"), tmp_path).initialize() as agent:
        eventually(lambda: agent.call("claw.rule.list")["result"]["rules"][0]["last"])
        eventually(lambda: agent.call("claw.rule.list")["result"]["rules"][0]["why"])
        agent.end()
        assert agent.wait() == 0
    state = next(tmp_path.rglob("audit.jsonl"))
    records = [json.loads(text) for text in state.read_text().splitlines()]
    text = [json.dumps(record) for record in records]
    assert len([one for one in text if "rule/r" in one and '"ok"' in one]) == 1, text
    assert len([one for one in text if "reading/soil" in one]) == 1, text


FLOW = """
[[pins]]
name = "flow"
pin = 26
kind = "adc"
[[pins]]
name = "pump"
pin = 5
kind = "output"
%s
[confirm]
sprinkle = { reading = "flow", above = 500, within = "1s", pins = ["pump"] }
"""
SPRINKLE = {
    "inline": {
        "name": "sprinkle",
        "description": "x",
        "input_schema": {
            "type": "object",
            "properties": {"seconds": {"type": "integer"}},
            "required": ["seconds"],
        },
    }
}
WATER = '''

def sprinkle(seconds: int, board):
    """Water."""
    board.write("pump", 1)
    yield seconds * 1000
    board.write("pump", 0)
    return "done"
'''


@pytest.mark.parametrize("works", [True, False])
def test_what_must_follow_a_call_in_a_real_agent(tmp_path, works):
    folder = tmp_path / "project"
    audit = {"log_inputs": True, "log_outputs": True, "log_approvals": True, "destination": "file"}
    project(
        folder,
        '[[reading]]\nname = "flow"\npin = "flow"\nevery = "1h"\n'
        + RULE.replace("3 }", "1 }").replace("water", "sprinkle")
        + 'every = "1s"\n',
        settings=FLOW % ('simulate = { raises = "flow", per_second = 20000 }' if works else ""),
        more_code=WATER,
        more_tools=["claw://registry/clawlite/digital-read@1.0.0", SPRINKLE],
        policies=[{"inline": {"rules": ALLOW, "audit": audit}}],
    )
    assert clawlite("build", "-o", "claw.cbor", cwd=folder).returncode == 0
    with Agent(linux("serve", folder / "claw.cbor", "--stdio"), tmp_path).initialize() as agent:
        ended = eventually(lambda: agent.call("claw.rule.list")["result"]["rules"][0]["last"])
        assert ended["status"] == ("ok" if works else "error"), ended
        (rule,) = agent.call("claw.rule.list")["result"]["rules"]
        assert rule["is_on"] is works
        agent.line(json.dumps(tool_call("digital-read", {"pin": "pump"}, 7)))
        if not works:
            assert '"value":false' in agent.message()["result"]["content"][0]["text"]
        agent.end()
        assert agent.wait() == 0
    records = next(tmp_path.rglob("audit.jsonl")).read_text().splitlines()
    (record,) = [one for one in map(json.loads, records) if "confirm" in one][:1]
    assert record["caller"] == "rule/r" and ("not confirmed" in record["confirm"]) is not works
    traced = clawlite(
        "trace", "--json", str(folder), cwd=tmp_path, CLAWLITE_STATE=str(tmp_path / "state")
    )
    assert traced.returncode == 0, traced


def test_a_model_is_asked_what_to_say_and_calls_nothing(tmp_path):
    folder = tmp_path / "project"
    rules = READING + RULE + 'every = "1s"\nat_most = "1/week"\n'
    rules += 'then = [{ ask = "It has {result} at {soil} %. Say so." }]\n'
    with Server([say("It is watered."), say("No more.")]) as server:
        project(folder, rules, providers=[provider("m", endpoint=server.endpoint)])
        made = clawlite("build", "-o", "claw.cbor", cwd=folder)
        assert made.returncode == 0, made
        with Agent(linux("run", folder / "claw.cbor"), tmp_path) as agent:
            agent.expect("[rule r] It is watered.")
            agent.signal(signal.SIGTERM)
            agent.wait()
        (request,) = [request.body for request in server.requests]
    assert request["messages"][-1]["content"] == "It has done at 20 %. Say so."
    assert not request.get("tools")
