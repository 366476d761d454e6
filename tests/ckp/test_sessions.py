"""What the cases leave open of sessions and calls: fields of answers, heartbeats, denials,
timeouts, codes.
"""

import re

import pytest
from ckp import manifests, static, wire
from ckp.clock import Clockwork
from ckp.process import World

from clawlite.core.base import errors

CODES = {
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
    -32001,
    -32010,
    -32011,
    -32012,
    -32013,
    -32014,
    -32020,
    -32021,
    -32030,
    -32031,
    -32060,
    -32061,
}
BEAT = {"metadata": {"annotations": {"heartbeat_interval_ms": 1000}}}
ID = "c1a00000-0000-4000-8000-000000000001"


def case(steps: list, expect: list, manifest: str = "conf", **setup) -> dict:
    return {
        "setup": dict(setup, manifest=manifest),
        "input": {"kind": "wire", "steps": steps},
        "expect": expect,
    }


def send(id, method: str, **params) -> dict:
    return {"send": {"jsonrpc": "2.0", "id": id, "method": method, "params": params}}


def tool_call(id, name: str) -> dict:
    return send(
        id,
        "claw.tool.call",
        name=name,
        arguments={},
        context={"request_id": ID, "identity": "test-agent"},
    )


def test_initialize_and_status_answer_every_field(tmp_path):
    params = {
        "protocolVersion": "0.2.0",
        "clientInfo": {"name": "t", "version": "1"},
        "manifest": "$CONF",
        "capabilities": {},
    }
    wire.run(
        case(
            [send(1, "claw.initialize", **params), send(2, "claw.status")],
            [
                {
                    "id": 1,
                    "has": ["capabilities"],
                    "result": {
                        "protocolVersion": "0.2.0",
                        "conformanceLevel": "level-1",
                        "agentInfo": {"name": "test-agent", "version": "0.1.0"},
                    },
                },
                {"id": 2, "has": ["uptime_ms"], "result": {"state": "READY"}},
            ],
            "min-l1",
            session="none",
        ),
        tmp_path,
    )


def test_heartbeats_come_at_their_interval_and_only_in_a_session(tmp_path):
    work = Clockwork(World(case([], [], "min-l1", patch=BEAT), tmp_path))
    work.move(10000)
    assert work.sent == [], "no session, no heartbeat"
    work.open().move(3500)
    beats = [message for _, message in work.sent]
    assert [beat["method"] for beat in beats] == ["claw.heartbeat"] * 3 and all(
        "id" not in beat for beat in beats
    )
    assert [beat["params"]["uptime_ms"] for beat in beats] == [1000, 2000, 3000]
    assert {beat["params"]["state"] for beat in beats} == {"READY"}
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", beat["params"]["timestamp"])
        for beat in beats
    )
    work.request({"jsonrpc": "2.0", "id": 2, "method": "claw.shutdown", "params": {}})
    work.sent = []
    work.move(10000)
    assert work.sent == []


def test_heartbeats_come_every_30_s_unless_the_manifest_says_otherwise(tmp_path):
    work = Clockwork(World(case([], [], "min-l1"), tmp_path)).open()
    work.move(90000)
    assert [at for at, _ in work.sent] == [30000, 60000, 90000]


def test_a_denied_call_never_runs(tmp_path):
    in_process = manifests.in_process(manifests.resolved({"manifest": "conf"}))
    wire.run(
        case(
            [
                tool_call(2, "approval-tool"),
                send(3, "claw.tool.deny", request_id=ID, reason="no"),
                {"await": 2},
            ],
            [
                {"id": 3, "result": {"acknowledged": True}},
                {"id": 2, "error": -32013},
                {"executed": {"approval-tool": 0}},
            ],
        ),
        tmp_path,
        in_process,
    )


def test_a_timeout_ends_the_work(tmp_path):
    in_process = manifests.in_process(manifests.resolved({"manifest": "conf"}))
    wire.run(
        case(
            [tool_call(2, "slow-tool"), {"await": 2}, {"eof": True}],
            [
                {"id": 2, "error": -32014},
                {"within_ms": [2, 2000]},
                {"executed": {"slow-tool": 1}},
                {"exit": 0, "within_ms": 3000},
            ],
        ),
        tmp_path,
        in_process,
    )


@pytest.mark.parametrize(
    "policies, action, rule",
    [
        ([["deny"], ["allow"]], "deny", "0-0"),
        ([["allow"], ["deny"]], "allow", "0-0"),
        ([["other", "deny"], ["allow"]], "deny", "0-1"),
        ([["other"], ["allow"]], "allow", "1-0"),
        ([["other"], ["other"]], "deny", None),
    ],
)
def test_policies_are_one_list_in_their_order(tmp_path, policies, action, rule):
    given = [
        [
            {
                "id": "%d-%d" % (at, index),
                "action": "allow" if word == "other" else word,
                "scope": "tool",
                "match": {"name": "nothing" if word == "other" else "t"},
            }
            for index, word in enumerate(words)
        ]
        for at, words in enumerate(policies)
    ]
    static.run_policy(
        {
            "input": {"policies": given, "tool": {"name": "t"}},
            "expect": [{"action": action, "rule_id": rule}],
        },
        tmp_path,
    )


def test_annotations_of_metadata_decide_nothing(tmp_path):
    rules = [
        {
            "id": "a",
            "action": "allow",
            "scope": "tool",
            "match": {"annotations": {"readOnlyHint": True}},
        }
    ]
    tool = {"name": "t", "annotations": {}, "metadata_annotations": {"readOnlyHint": True}}
    static.run_policy(
        {
            "input": {"policies": [rules], "tool": tool},
            "expect": [{"action": "deny", "rule_id": None}],
        },
        tmp_path,
    )


def test_no_code_but_those_of_the_protocol():
    found, todo = set(), [errors.ClawError]
    while todo:
        kind = todo.pop()
        found.add(kind.code)
        todo += kind.__subclasses__()
    assert found <= CODES
