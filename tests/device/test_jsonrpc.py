"""JSON-RPC 2.0 over real processes (CKP 0.2.0, 9.1): whatever comes in, each line out is JSON-RPC,
each request is answered once.

``serve --stdio`` on Linux and what a board boots, each one process for all examples: what one
leaves behind, the next one meets."""

import json

import pytest
from agents import INITIALIZE, Agent, board, linux, make_bench
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
IDS = st.one_of(
    TEXT,
    st.integers(-(10**38), 10**38),
    st.floats(allow_nan=False, allow_infinity=False),
    st.none(),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=8,
)
METHODS = st.one_of(
    st.sampled_from(
        [
            "claw.status",
            "claw.initialize",
            "claw.initialized",
            "claw.heartbeat",
            "claw.tool.call",
            "claw.tool.approve",
            "claw.tool.deny",
            "claw.memory.query",
            "claw.swarm.report",
            "rpc.discover",
            "",
        ]
    ),
    TEXT,
)
CONTEXT = st.fixed_dictionaries(
    {},
    optional={
        "request_id": st.uuids().map(str) | VALUES,
        "identity": VALUES,
        "policy": VALUES,
        "sandbox": VALUES,
    },
)
PARAMS = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["quick", "pins", "odd", "nothing"]) | VALUES,
            "arguments": st.just({}) | VALUES,
            "context": CONTEXT | VALUES,
            "request_id": st.uuids().map(str) | VALUES,
            "protocolVersion": st.just("0.3.0") | VALUES,
            "manifest": VALUES,
            "capabilities": VALUES,
        },
    ),
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2.0, None]),
        "id": IDS | VALUES,
        "method": METHODS | VALUES,
        "params": PARAMS,
        "result": VALUES,
        "error": VALUES,
        "more": VALUES,
    },
)
REQUESTS = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": IDS, "method": METHODS},
    optional={"params": PARAMS, "more": VALUES},
)
FENCE = "fence \u2603"


@pytest.fixture(scope="module", params=["linux", "micropython"])
def serving(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("jsonrpc")
    words, env = linux("serve", make_bench(folder), "--stdio"), {}
    if request.param == "micropython":
        request.getfixturevalue("micropython")
        words, env = board(folder / "claw.cbor", "--stdio")
    with Agent(words, folder / "home", env=dict(env, MARKS=folder)) as agent:
        agent.initialize()
        agent.limit = 8192 if env else 1048576
        yield agent
        assert agent.errors() == ""


def answers(agent, lines: bytes) -> list:
    """Send *lines*; return all that comes until the fence behind them is answered, each checked
    to be JSON-RPC 2.0.
    """
    fence = json.dumps({"jsonrpc": "2.0", "id": FENCE, "method": "claw.status"}).encode()
    agent.send(lines + b"\n" + fence + b"\n")
    found = []
    while True:
        message = agent.message()
        for one in message if isinstance(message, list) else [message]:
            check(one)
        if isinstance(message, dict) and message.get("id") == FENCE:
            assert message["result"]["state"] == "READY"
            return found
        found.append(message)


def check(one):
    """Assert that *one* is a response object of JSON-RPC 2.0, section 5."""
    assert isinstance(one, dict) and one["jsonrpc"] == "2.0"
    assert set(one) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert one["id"] is None or type(one["id"]) in (str, int, float)
    if "error" in one:
        assert (
            type(one["error"]["code"]) is int
            and type(one["error"]["message"]) is str
            and one["error"]["message"]
        )
        assert set(one["error"]) <= {"code", "message", "data"}


def is_answered(message) -> bool:
    """Return whether JSON-RPC 2.0 and docs/adr/0006 want an answer to the parsed *message*."""
    if not isinstance(message, dict):
        return True
    if "method" not in message and ("result" in message or "error" in message):
        return False
    return not (
        "id" not in message
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
    )


def id_of(message):
    id = message.get("id") if isinstance(message, dict) else None
    return id if id is None or type(id) in (str, int, float) else None


def same(one, other) -> bool:
    """Return whether two ids are the same JSON value: 1 and 1.0 are the same number, "1" is
    another thing.
    """
    return one == other and isinstance(one, str) == isinstance(other, str)


def test_9_1_a_request_that_only_names_the_clock_is_answered(serving):
    """A board takes notifications of the time from whoever holds its line."""
    for message in (
        {"jsonrpc": "2.0", "id": None, "method": "claw.clock"},
        {"jsonrpc": "2.0", "id": 1, "method": "claw.tool.call", "params": ["claw.clock"]},
    ):
        (answer,) = answers(serving, json.dumps(message).encode())
        assert same(answer["id"], message["id"]) and "error" in answer


@SETTINGS
@given(message=REQUESTS)
def test_9_1_each_request_is_answered_once_with_its_id(serving, message):
    (answer,) = answers(serving, json.dumps(message).encode())
    assert same(answer["id"], message["id"])


@SETTINGS
@given(message=MESSAGES | VALUES.filter(lambda value: not isinstance(value, list)))
def test_9_1_any_message(serving, message):
    found = answers(serving, json.dumps(message, ensure_ascii=False).encode())
    assert len(found) == is_answered(message)
    assert all(same(answer["id"], id_of(message)) for answer in found)


@SETTINGS
@given(batch=st.lists(st.one_of(MESSAGES, REQUESTS, VALUES), max_size=70))
def test_9_1_any_batch(serving, batch):
    line = json.dumps(batch).encode()
    found = answers(serving, line)
    wanted = [id_of(message) for message in batch if is_answered(message)]
    if not batch or len(batch) > 64 or len(line) > serving.limit:
        assert len(found) == 1 and found[0]["error"]["code"] == -32600 and found[0]["id"] is None
    elif not wanted:
        assert found == []
    else:
        got = [answer["id"] for answer in found[0]]
        assert len(found) == 1 and sorted(map(repr, got)) == sorted(map(repr, wanted))


@SETTINGS
@given(
    lines=st.lists(
        st.one_of(
            st.binary(max_size=60),
            REQUESTS.map(lambda message: json.dumps(message).encode()),
            st.sampled_from(
                [
                    b"",
                    b"\r",
                    b"\x1e",
                    b"[",
                    b'{"id":',
                    b"\xed\xa0\x80",
                    b'"\\ud800"',
                    b"null",
                    b"NaN",
                ]
            ),
        ),
        max_size=8,
    ),
    ends=st.sampled_from([b"\n", b"\r\n"]),
)
def test_9_1_any_bytes(serving, lines, ends):
    lines = [line.replace(b"\n", b"") for line in lines]
    found = answers(serving, ends.join(lines))
    assert len(found) <= len(lines)


@SETTINGS
@given(message=REQUESTS, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_9_1_in_any_portions(serving, message, cuts):
    """What arrives cut into pieces is what arrives whole."""
    line, at = json.dumps(message).encode(), 0
    for cut in sorted(cuts):
        serving.send(line[at:cut])
        at = max(at, min(cut, len(line)))
    (answer,) = answers(serving, line[at:])
    assert same(answer["id"], message["id"])


def test_9_1_lines_may_end_in_cr_lf(serving):
    serving.send(b'{"jsonrpc":"2.0","id":1,"method":"claw.status"}\r\n')
    assert serving.message()["id"] == 1  # at its own end, not at the next one's


def test_9_3_1_nothing_but_the_handshake_before_it(tmp_path):
    with Agent(
        linux("serve", make_bench(tmp_path), "--stdio"), tmp_path / "home", env={"MARKS": tmp_path}
    ) as agent:
        for method in (
            "claw.status",
            "claw.shutdown",
            "claw.tool.call",
            "claw.tool.approve",
            "claw.memory.query",
            "nope",
            "claw.initialized",
        ):
            assert agent.call(method)["error"]["code"] == -32600
        agent.send(
            b'{"jsonrpc":"2.0","method":"claw.initialized"}\n'
            b'{"jsonrpc":"2.0","method":"claw.shutdown"}\n'
        )
        agent.call("claw.initialize", INITIALIZE)
        assert agent.is_serving()
