"""``clawlite mcp serve``: the agent's tools for MCP clients that are not ours, through the one
pipeline (CKP 0.3.0 Tool, "MCP Compatibility"; clawft, "MCP Tools").
"""

import json

import mcp_clients
import mcp_offer
import pytest
from agents import Agent, eventually, linux

from clawlite.core.image.image import Image
from clawlite.host.builder.build import build_beside
from clawlite.host.image import image_reader
from clawlite.protocols.mcp.tool_definitions import SCHEMAS, definitions


@pytest.fixture(params=sorted(mcp_clients.SDKS))
def client(request):
    return request.param


CANCELS = ["sdk2", "sdk2-handshake"]  # sdk1 tells no server that it gives up


@pytest.fixture
def image(tmp_path, monkeypatch):
    monkeypatch.setenv("POURED", str(tmp_path / "poured"))
    return mcp_offer.build(tmp_path)


def asked(client: str, image: str, tmp_path, steps: list, **more) -> dict:
    return mcp_clients.sdk(client, tmp_path, steps, command=linux("mcp", "serve", image), **more)


def text_of(result: dict) -> str:
    return result["content"][0]["text"]


def test_tools_are_those_of_the_image(client, image, tmp_path):
    tools = asked(client, image, tmp_path, [["list"]])["results"][0]["tools"]
    named = {tool["name"]: tool for tool in tools}
    assert list(named) == ["join", "pour", "wait", "fail", "skill__toast"]
    assert named["join"]["inputSchema"] == mcp_offer.SCHEMA
    assert named["join"]["outputSchema"] == mcp_offer.TEXT
    assert named["join"]["annotations"] == {"readOnlyHint": True}
    assert named["pour"]["annotations"] == {"destructiveHint": True}, "nothing is made looser"


RICH = {
    "type": "object",
    "description": "Where to pour",
    "properties": {
        "bed": {"type": "string", "pattern": "^[a-z]{1,9}$", "description": "the bed's name, é"},
        "times": {
            "type": "array",
            "items": {"type": "integer", "title": "hour"},
            "examples": [[6]],
        },
        "deep": {"$ref": "#/$defs/deep"},
    },
    "patternProperties": {"^x-": {"type": "string", "format": "date"}},
    "required": ["bed"],
    "$defs": {"deep": {"type": "object", "properties": {"of": {"$ref": "#/$defs/deep"}}}},
}
GIVES = {"type": "object", "properties": {"text": {"type": "string", "description": "said"}}}
PLAIN = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
REMOTE = {
    "protocol": "openai-compatible",
    "endpoint": "http://127.0.0.1:9/v1",
    "model": "m",
    "auth": {"type": "none"},
}


def offered(tmp_path, what: dict) -> tuple:
    """Return (image, {name: definition as clients see it}) of an agent with rich schemas."""
    tools = [
        mcp_offer._tool("rich", "Rich", RICH, annotations=mcp_offer.READS, output_schema=GIVES),
        mcp_offer._tool("plain", "Plain", PLAIN, annotations=mcp_offer.READS),
        mcp_offer._tool("denied", "Nobody may call it", RICH, annotations=mcp_offer.READS),
    ]
    rules = [
        {"id": "no", "action": "deny", "scope": "tool", "match": {"name": "denied"}},
        *mcp_offer.RULES,
    ]
    claw = mcp_offer.manifest(rules)
    claw["spec"].update(tools=tools, providers=[{"inline": what}], skills=[])
    (tmp_path / "claw.yaml").write_text(json.dumps(claw))
    (tmp_path / "tools.py").write_text(CODE)
    (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    image = image_reader.open_image(build_beside(str(tmp_path)))
    return image, {one["name"]: one for one in definitions(image, json.JSONDecoder().raw_decode)}


CODE = '''\
def rich(bed: str, times: list | None = None, deep: dict | None = None) -> dict:
    """Rich."""
    return {}


def plain(n: int) -> dict:
    """Plain."""
    return {}


def denied(bed: str, times: list | None = None, deep: dict | None = None) -> dict:
    """Nobody may call it."""
    return {}
'''


@pytest.mark.parametrize("is_remote", [False, True])
def test_schemas_are_offered_as_they_were_written(tmp_path, is_remote):
    """Descriptions and patterns, whatever the provider.  The image has no schema twice."""
    builtin = mcp_offer.manifest([])["spec"]["providers"][0]["inline"]
    image, named = offered(tmp_path, REMOTE if is_remote else builtin)
    assert {named[name]["inputSchema"] == RICH for name in ("rich", "denied")} == {True}
    assert named["rich"]["outputSchema"] == GIVES and named["plain"]["inputSchema"] == PLAIN
    has = {name: (bool(given), bool(gives)) for name, given, gives in image.section(SCHEMAS)}
    assert has == {"rich": (not is_remote, True), "denied": (True, False)}, "no model is shown it"


def test_a_board_holds_nothing_of_them(tmp_path):
    offered(tmp_path, mcp_offer.manifest([])["spec"]["providers"][0]["inline"])
    data = (tmp_path / "claw.cbor").read_bytes()
    held = [
        Image(lambda at, length: data[at : at + length], len(data), keep).sections()
        for keep in (0, 1)
    ]
    assert SCHEMAS not in held[0] and held[1] == [*held[0], SCHEMAS]


def test_what_the_check_program_says_is_not_written_twice(image):
    assert SCHEMAS not in image_reader.open_image(image).sections()


def test_calls(client, image, tmp_path):
    """5.4: arguments are checked first; a tool that failed is a result, an unknown one an error."""
    steps = [
        ["call", "join", {"words": ["a", "b"], "how": "up"}],
        ["call", "join", {"words": "a"}],
        ["call", "fail", {}],
        ["call", "nothing", {}],
    ]
    good, bad, failed, unknown = asked(client, image, tmp_path, steps)["results"]
    assert good["structuredContent"] == {"text": "A B"} and text_of(good) == '{"text":"A B"}'
    assert bad["isError"] and bad["_meta"]["clawlite/error"]["code"] == -32602
    assert "at arguments.words: expected an array" in text_of(bad)
    assert failed["isError"] and "the pipe is dry" in text_of(failed)
    assert unknown["error"]["code"] == -32602 and "unknown tool" in unknown["error"]["message"]
    calls = mcp_offer.events(tmp_path)
    assert [call["caller"] for call in calls] == ["mcp"] * 4
    assert [call["status"] for call in calls] == ["ok", "refused", "error", "refused"]


def test_a_person_is_asked_by_the_client(client, image, tmp_path):
    """5.8: require-approval; the client's person decides, and it runs once."""
    said = asked(client, image, tmp_path, [["call", "pour", {"litres": 3}]], says="accept")
    assert text_of(said["results"][0]) == "poured 3"
    assert len(said["asked"]) == 1 and "Approve pour(litres=3)?" in said["asked"][0]
    assert "it does not flow back" in said["asked"][0]
    assert (tmp_path / "poured").read_text() == "poured 3\n"
    assert mcp_offer.events(tmp_path)[0]["approval"] == "approved"
    if client != "sdk2":  # of the stateless era, where the result itself says that it waits
        assert said["progress"] == ["waiting for a person's approval", "approved"]


@pytest.mark.parametrize("says", ["decline", "cancel", None])
def test_nothing_but_a_yes_lets_it_run(client, image, tmp_path, says):
    said = asked(client, image, tmp_path, [["call", "pour", {"litres": 3}]], says=says)
    result = said["results"][0]
    assert result["isError"] and result["_meta"]["clawlite/error"]["code"] == -32013
    assert not (tmp_path / "poured").exists()
    if says is None:
        assert "use a client that offers elicitation" in text_of(result)


@pytest.mark.parametrize("client", CANCELS)
def test_a_call_that_is_cancelled_ends(client, image, tmp_path):
    mark = tmp_path / "mark"
    steps = [["cancel", "wait", {"mark": str(mark)}], ["call", "join", {"words": []}]]
    said = asked(client, image, tmp_path, steps, mark=str(mark))
    assert text_of(said["results"][1]) == '{"text":""}', "it goes on"
    assert mark.read_text() == "began ended"


def test_a_skill_is_a_prompt(client, image, tmp_path):
    steps = [["prompts"], ["prompt", "skill__toast", {"whom": "Ada"}], ["prompt", "join", {}]]
    prompts, messages, other = asked(client, image, tmp_path, steps)["results"]
    assert [one["name"] for one in prompts["prompts"]] == ["skill__toast"]
    assert prompts["prompts"][0]["arguments"] == [{"name": "whom", "required": False}]
    text = messages["messages"][0]["content"]["text"]
    assert "Join the words of a toast." in text and '{"whom":"Ada"}' in text
    assert other["error"]["code"] == -32602


def test_many_tools_come_in_pages(tmp_path):
    """A policy that denies a tool is told when it is called."""
    image = mcp_offer.build(tmp_path, extra=120)
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        agent.send(line(1, "initialize", HELLO))
        assert agent.message()["result"]["serverInfo"] == {"name": "offered", "version": "1.2.3"}
        agent.send(line(2, "tools/list", {}))
        first = agent.message()["result"]
        agent.send(line(3, "tools/list", {"cursor": first["nextCursor"]}))
        second = agent.message()["result"]
        names = [tool["name"] for tool in first["tools"] + second["tools"]]
        assert len(names) == len(set(names)) == 125 and "nextCursor" not in second
        for wrong in ("x", "\xb2", "9" * 5000, "-1", 50):  # the second is a digit to isdigit
            agent.send(line(4, "tools/list", {"cursor": wrong}))
            assert agent.message()["error"]["code"] == -32602
        agent.send(line(5, "tools/call", {"name": "t0"}))
        assert agent.message()["result"]["_meta"]["clawlite/error"]["code"] == -32011


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def line(id, method: str, params: dict) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def pour(id, **more) -> bytes:
    params = {"name": "pour", "arguments": {"litres": 1}, "_meta": META, **more}
    return line(id, "tools/call", params)


def test_a_retry_runs_once_and_belongs_to_its_call(image, tmp_path):
    """The state of an input-required result is good for one answer to the same call."""
    yes = {"approval": {"action": "accept", "content": {"approve": True}}}
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        agent.send(pour(1))
        state = agent.message()["result"]["requestState"]
        more = {"requestState": state, "inputResponses": yes}
        agent.send(pour(2, arguments={"litres": 9}, **more))
        assert "belongs to another call" in agent.message()["error"]["message"]
        agent.send(pour(3, **more))
        assert text_of(agent.message()["result"]) == "poured 1"
        agent.send(pour(4, **more))
        assert "no call waits under it" in agent.message()["error"]["message"]
        agent.send(pour(5))
        state = agent.message()["result"]["requestState"]
        agent.send(pour(6, requestState=state, inputResponses={}))
        assert agent.message()["result"]["_meta"]["clawlite/error"]["code"] == -32013
    assert (tmp_path / "poured").read_text() == "poured 1\n"


def test_all_of_a_call_stands_in_its_question(tmp_path):
    """5.8: a client has no command that shows the rest."""
    rules = [dict(mcp_offer.RULES[0], match={"name": "wait"}), mcp_offer.RULES[-1]]
    image = mcp_offer.build(tmp_path, rules)
    hello = dict(HELLO, capabilities={"elicitation": {}})
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        agent.send(line(1, "initialize", hello))
        agent.message()
        mark = "x" * 3000 + "; rm -rf /" + "y" * 3000
        agent.send(line(2, "tools/call", {"name": "wait", "arguments": {"mark": mark}}))
        said = agent.message()["params"]["message"]
        assert 'Approve wait(mark="%s")?' % mark in said


def test_a_secret_leaves_neither_in_a_question_nor_in_an_error(tmp_path):
    """5.7, secret scanning: what a client's person reads is looked at as a channel's messages are,
    before the call may run at all.
    """
    rules = [dict(mcp_offer.RULES[0], match={"name": "join"}), mcp_offer.RULES[-1]]
    scanning = {"enabled": True, "scope": "output"}
    image = mcp_offer.build(tmp_path, rules, secret_scanning=scanning)
    token = "abcdefgh12345XYZ"
    hello = dict(HELLO, capabilities={"elicitation": {}})
    with Agent(linux("mcp", "serve", image), tmp_path, env={"SOME_TOKEN": token}) as agent:
        agent.send(line(1, "initialize", hello))
        agent.message()
        agent.send(line(2, "tools/call", {"name": "join", "arguments": {"words": [token]}}))
        asked = agent.message()
        assert asked["method"] == "elicitation/create"
        assert "Approve join(" in asked["params"]["message"]
        assert "[REDACTED: known]" in asked["params"]["message"]
        approve = asked["params"]["requestedSchema"]["properties"]
        assert approve == {"approve": {"type": "boolean", "title": "Let it run?"}}
        no = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        agent.send(json.dumps(no).encode() + b"\n")
        assert agent.message()["result"]["_meta"]["clawlite/error"]["code"] == -32013
        wrong = {"words": [], "how": token}
        agent.send(line(3, "tools/call", {"name": "join", "arguments": wrong}))
        assert agent.message()["result"]["_meta"]["clawlite/error"]["code"] == -32602
        wrong = {"words": [], token: 1}
        agent.send(line(4, "tools/call", {"name": "join", "arguments": wrong}))
        refused = agent.message()["result"]
        assert refused["_meta"]["clawlite/error"]["code"] == -32602
        assert "[REDACTED: known]" in text_of(refused)
        assert token not in agent.text()


@pytest.mark.parametrize(
    "sent, code, said",
    [
        (b"{", -32700, "JSON byte 1"),
        (b"[]", -32600, "one JSON-RPC 2.0 message"),
        (line(1, "tools/list", {}), -32600, "expected initialize first"),
        (line(1, "tools/list", {"_meta": {list(META)[0]: "1999-01-01"}}), -32022, "1999-01-01"),
        (line(1, "tools/list", {"_meta": {list(META)[0]: "2026-07-28"}}), -32602, "Capabilities"),
        (line(1, "resources/list", {"_meta": META}), -32601, "does not offer resources/list"),
        (line(None, "tools/list", {"_meta": META}), -32600, "a string or an integer"),
        (line(1, "tools/call", {"name": 5, "_meta": META}), -32602, "name, a string"),
        (line(1, "initialize", {"protocolVersion": 5}), -32602, "protocolVersion"),
    ],
)
def test_what_is_wrong_is_one_error(image, tmp_path, sent, code, said):
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        agent.send(sent.rstrip(b"\n") + b"\n")
        error = agent.message()["error"]
        assert error["code"] == code and said in error["message"]
        agent.send(line(9, "ping", {}))
        assert agent.message() == {"jsonrpc": "2.0", "id": 9, "result": {}}


def test_answers_to_nothing_do_nothing(image, tmp_path):
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        for one in ({"id": 7, "result": {}}, {"method": "notifications/cancelled", "params": {}}):
            agent.send(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n")
        agent.send(line(9, "ping", {}))
        assert agent.message()["id"] == 9


def test_the_end_of_input_ends_it_and_what_runs(image, tmp_path):
    mark = tmp_path / "mark"
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        params = {"name": "wait", "arguments": {"mark": str(mark)}, "_meta": META}
        agent.send(line(1, "tools/call", params))
        eventually(lambda: mark.exists() and mark.read_text() == "began")
        agent.end()
        assert agent.wait() == 0
    assert mark.read_text() == "began ended"


def test_the_inspector(image, tmp_path):
    words = ["--cli", *linux("mcp", "serve", image), "--method"]
    done = mcp_clients.npm("mcp-inspector", [*words, "tools/list"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["tools"]) == 5
    words += ["tools/call", "--tool-name", "join", "--tool-arg", 'words=["a","b"]']
    done = mcp_clients.npm("mcp-inspector", words, tmp_path)
    assert text_of(json.loads(done.stdout)) == '{"text":"a b"}', done.stderr
