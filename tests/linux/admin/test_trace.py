"""``clawlite trace``: why a past call ended as it did, from the log of the agent."""

import json

import pytest
from agents import Agent, clawlite, linux, make_greenhouse, tool_call

from clawlite.host.builder.build import build_beside

CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: traced }
spec:
  identity: { inline: { personality: "You explain.", autonomy: %s } }
  providers: [{ inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }]
  tools:
    - { inline: { name: note, metadata: { labels: { category: files } }, description: "d", input_schema: { type: object, properties: { path: { type: string } } },
                  annotations: { readOnlyHint: true } } }
    - { inline: { name: own, description: "d", input_schema: { type: object }, policy_ref: strict } }
  sandbox: { inline: { level: none } }
  policies:
    - inline:
        name: first
        rate_limits: { tool_calls_per_minute: 6 }
        rules:
          - { id: other, action: deny, scope: tool, match: { name: nobody } }
          - { id: spent, action: deny, scope: all, rate_limit: { tokens_per_day: 10 } }
          - { id: ws, action: allow, scope: category, match: { category: files }, conditions: { path_within: /workspace } }
          - { id: rest, action: require-approval, scope: all, reason: "a person decides", approval: { timeout_seconds: 9 } }
    - inline: { name: strict, rules: [{ id: never, action: deny, scope: tool, match: { name: "o*" }, reason: "not this one" }] }
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "claw.yaml").write_text(CLAW % "autonomous")
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "note {path:word}"\ncall = "note"\n'
        'arguments = { path = "{path}" }\nthen = [{ say = "Done." '
        "}]\n"
    )
    (folder / "tools.py").write_text(
        'def note(path: str = "") -> str:\n    """Note."""\n    '
        'return path\n\n\ndef own() -> str:\n    """Own."""\n    '
        'return "own"\n'
    )
    build_beside(str(folder))
    return folder


@pytest.fixture
def called(folder, tmp_path):
    """Return the folder of an agent to which six calls were made; a seventh exceeded the limit."""
    with Agent(linux("serve", "--stdio"), tmp_path, cwd=folder) as agent:
        agent.initialize()
        for number, (name, arguments) in enumerate(
            (
                ("note", {"path": "/workspace/a"}),
                ("own", {}),
                ("note", {"path": 5}),
                ("note", {"path": "/etc/\x9b2J"}),
            )
        ):
            agent.line(json.dumps(tool_call(name, arguments, number)))
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": "no",
                    "method": "claw.tool.deny",
                    "params": {
                        "request_id": tool_call("", {}, 3)["params"]["context"]["request_id"]
                    },
                }
            )
        )
        for _ in range(5):
            agent.message()
        for number in range(4, 9):
            agent.line(json.dumps(tool_call("note", {"path": "/workspace/%d" % number}, number)))
            agent.message()
        agent.end()
        agent.wait()
    return folder


def trace(folder, tmp_path, *args):
    return clawlite("trace", *args, cwd=folder, CLAWLITE_STATE=str(tmp_path / "state"))


def lines(folder, tmp_path, *args):
    done = trace(folder, tmp_path, *args)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_each_call_says_why(called, tmp_path):
    """A decision carries the trace of what was looked at, so that a person can be shown why."""
    spent = (
        "  - rule spent (policy first, once 10 tokens of the day are used): does not match, "
        "the day is not used up"
    )
    allowed = "  * rule ws (policy first, within /workspace): matches, so it is allowed"
    other = "  Before the last of these, for other tools: other"
    last = lines(called, tmp_path)
    assert last[0].startswith("call 1, 20") and last[1:] == [
        'note(path="/workspace/8")  refused (-32011), called by the operator',
        spent,
        allowed,
        "  * limit: tool_calls_per_minute, and this call would exceed it: it is denied",
        other,
    ]
    assert lines(called, tmp_path, "last") == lines(called, tmp_path, "1") == last
    assert lines(called, tmp_path, "9")[1:] == [
        'note(path="/workspace/a")  ok, called by the operator',
        spent,
        allowed,
        other,
    ]
    assert lines(called, tmp_path, "8")[1:] == [
        "own()  refused (-32011), called by the operator",
        "  * rule never (policy strict): matches, so it is denied: not this one",
    ]
    by_id = lines(called, tmp_path, "00000000-0000-4000-8000-000000000001")
    assert by_id == lines(called, tmp_path, "8") and by_id[0].endswith(
        ", request 00000000-0000-4000-8000-000000000001"
    )
    assert lines(called, tmp_path, "7")[2:] == [
        "  * the call does not fit what the tool takes; no rule was looked at"
    ]
    denied = lines(called, tmp_path, "6")
    assert denied[1] == 'note(path="/etc/\\x9b2J")  refused (-32013), called by the operator', (
        "nothing drives the terminal"
    )
    assert denied[2:] == [
        spent,
        "  - rule ws (policy first, within /workspace): does not match, "
        "its paths do not all lie there",
        "  * rule rest (policy first): matches, so it asks first: a person decides",
        "  * approval: it was not approved",
        other,
    ]


def test_json_has_the_same(called, tmp_path):
    found = json.loads(trace(called, tmp_path, "9", "--json").stdout)
    assert set(found) == {
        "call",
        "time",
        "tool",
        "arguments",
        "caller",
        "request_id",
        "image",
        "autonomy",
        "rules",
        "never",
        "action",
        "rule_id",
        "approval",
        "limit",
        "attempts",
        "status",
        "code",
    }
    assert found["request_id"] == "00000000-0000-4000-8000-000000000000"
    assert (found["call"], found["tool"], found["autonomy"], found["rule_id"], found["never"]) == (
        9,
        "note",
        "autonomous",
        "ws",
        ["other"],
    )
    assert found["rules"] == [
        {
            "number": 1,
            "id": "spent",
            "policy": "first",
            "action": "deny",
            "condition": "once 10 tokens of the day are used",
            "matched": False,
            "decides": False,
            "why": "the day is not used up",
        },
        {
            "number": 2,
            "id": "ws",
            "policy": "first",
            "action": "allow",
            "condition": "within /workspace",
            "matched": True,
            "decides": True,
            "why": None,
        },
    ]


def test_an_image_or_a_manifest_or_a_folder_may_be_named(called, tmp_path):
    for name in ("agent", "agent/claw.yaml", "agent/claw.cbor"):
        assert (
            lines(tmp_path, tmp_path, name)
            == lines(tmp_path, tmp_path, "last", name)
            == lines(called, tmp_path)
        )


def test_nothing_was_called(folder, tmp_path):
    done = trace(folder, tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert (
        done.stderr
        == "clawlite: no tool call is in %s/state/traced/log.jsonl - let the agent call a tool "
        "first\n" % tmp_path
    )


def test_a_call_that_is_not_there(called, tmp_path):
    for call, said in (
        ("10", "there is no call 10: the log has 9 - 1 is the last one"),
        ("0", "there is no call 0: the log has 9"),
        ("9" * 4000, "there is no call"),
        (
            "00000000-0000-4000-8000-ffffffffffff",
            "no call with the request_id "
            "00000000-0000-4000-8000-ffffffffffff "
            "is in the log, which has 9",
        ),
    ):
        done = trace(called, tmp_path, call)
        assert (
            done.returncode == 1
            and done.stderr.startswith("clawlite: " + said)
            and "Traceback" not in done.stderr
        ), done.stderr
    assert (
        "there is no call"
        in json.loads(trace(called, tmp_path, "10", "--json").stdout)["error"]["message"]
    )


def test_an_image_that_has_changed_since_is_said(called, tmp_path):
    (called / "claw.yaml").write_text(CLAW % "supervised")
    build_beside(str(called))
    done = trace(called, tmp_path)
    assert (
        done.returncode == 1
        and "call 1 was made with another manifest than this image" in done.stderr
        and "no longer fit" in done.stderr
    )


def test_the_log_before_this_one_counts_too(called, tmp_path):
    log = tmp_path / "state/traced/log.jsonl"
    events = log.read_bytes().splitlines(True)
    half = len(events) // 2
    log.with_name("log.jsonl.1").write_bytes(b"".join(events[:half]))
    log.write_bytes(b"".join(events[half:]) + b'{"event":"tool.call","tool":"no')
    assert (
        lines(called, tmp_path, "9")[1] == 'note(path="/workspace/a")  ok, called by the operator'
    )


@pytest.mark.parametrize(
    "change",
    [
        {"trace": 5},
        {"trace": [[99999, True]]},
        {"trace": [[1]]},
        {"trace": [["x", True]]},
        {"arguments": None},
        {"status": None},
        {"action": "allow", "trace": None},
        {"code": "x", "trace": {}},
        {"attempts": "many"},
    ],
)
def test_a_damaged_event_is_one_line(called, tmp_path, change):
    log = tmp_path / "state/traced/log.jsonl"
    event = dict(
        json.loads([line for line in log.read_text().splitlines() if '"tool.call"' in line][-1]),
        **change,
    )
    log.write_text(
        json.dumps(
            {key: value for key, value in event.items() if value is not None}, separators=(",", ":")
        )
        + "\n"
    )
    done = trace(called, tmp_path)
    assert (
        done.returncode in (0, 1)
        and "Traceback" not in done.stderr
        and len(done.stderr.splitlines()) == done.returncode
    ), done.stderr


def test_usage(folder, tmp_path):
    assert trace(folder, tmp_path, "--help").stdout.startswith("usage: clawlite trace [CALL]")
    for args, said in (
        (("1", "a", "b"), 'unexpected "b" - usage: clawlite trace [CALL]'),
        (("a", "b"), "unexpected b"),
        (("--all",), "unknown option --all - usage: clawlite trace [CALL]"),
    ):
        done = trace(folder, tmp_path, *args)
        assert done.returncode == 2 and said in done.stderr
    done = trace(folder, tmp_path, "nothing-here.cbor")
    assert done.returncode == 2 and "nothing-here.cbor" in done.stderr


@pytest.mark.parametrize("verb", ["trace", "audit"])
def test_a_name_of_nothing_is_not_taken_for_what_lies_here(tmp_path, verb):
    make_greenhouse(tmp_path / "greenhouse")
    done = clawlite(verb, "tpyo.yaml", cwd=tmp_path / "greenhouse")
    assert done.returncode == 2 and done.stderr.startswith("clawlite: tpyo.yaml: No such file")
