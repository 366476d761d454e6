"""The protocol to the letter: what an operator's line answers, clause by clause (CKP 0.2.0 and its Runtime Profile)."""
import json

import pytest
from agents import INITIALIZE, tool_call

REQUEST, PARAMS, MANIFEST, MISSING = -32600, -32602, -32060, -32061
STATUS = {"jsonrpc": "2.0", "id": 7, "method": "claw.status"}
OPEN = {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}


def test_9_3_1_nothing_is_done_in_the_batch_of_an_initialize(bench, marks):
    with bench("serve", "--stdio") as agent:
        for batch in ([OPEN, STATUS, tool_call("careful", number=2)], [STATUS, OPEN]):
            agent.line(json.dumps(batch))
            answers = agent.message()
            assert len(answers) == len(batch)
            for answer in answers:
                if answer["id"] == 1:
                    assert "result" in answer
                else:
                    assert answer["error"]["code"] == REQUEST and "claw.initialize alone" in answer["error"]["message"]
            assert agent.call("claw.shutdown")["result"]["drained"]
        agent.line(json.dumps([OPEN, {"jsonrpc": "2.0", "method": "claw.initialized"}]))
        assert [answer["id"] for answer in agent.message()] == [1], "a notification is answered by nobody"


@pytest.mark.parametrize("blank", [b"", b" ", b"\t \t", b"   \r", b"\x1e  "])
def test_9_2_a_blank_line_is_silent(bench, blank):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.send(blank + b"\n" + json.dumps(STATUS).encode() + b"\n")
        assert agent.message()["id"] == 7


@pytest.mark.parametrize("uri", ["claw://local/identity/nobody", "claw://local/tool/echo", "claw://registry/clawlite/guest@1.0.0", "claw://local/identity/%s@9.9.9"])
def test_catalogue_a_uri_that_names_nobody_is_primitive_not_found(bench, uri):
    with bench("serve", "--stdio") as agent:
        name = agent.call("claw.initialize", INITIALIZE)["result"]["agentInfo"]["name"]
        agent.call("claw.shutdown")
        error = agent.call("claw.initialize", dict(INITIALIZE, manifest=uri.replace("%s", name)))["error"]
        assert error["code"] == MISSING, error


@pytest.mark.parametrize("identity", ["somebody", "Bench", "bench ", "claw://local/identity/bench"])
def test_9_3_2_a_call_of_another_identity_runs_nothing(bench, marks, identity):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 0}, 3, identity)))
        error = agent.message()["error"]
        assert error["code"] == PARAMS and "context.identity" in error["message"] and "bench" in error["data"]["hint"]
        assert not (marks / "pump-on").exists()
        agent.line(json.dumps(tool_call("pump", {"ms": 0}, 3)))
        assert agent.message()["result"]["isError"] is False, "the id is free: nothing ran under it"
