"""The server of MCP without I/O, and the schemas that it makes from check programs."""

from clawlite.core.base.errors import ClawError
from clawlite.protocols.mcp.mcp_server import MAX_PAUSED, MCPServer
from clawlite.protocols.mcp.tool_definitions import schema_of

STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


class Offer:
    """Remembers what it is asked for."""

    def __init__(self):
        self.begun, self.answers, self.cancelled = [], [], []

    def tools(self):
        return [{"name": "t"}]

    def prompts(self):
        return []

    def begin(self, call):
        if call.name == "broken":
            raise ClawError("not now")
        self.begun.append(call)

    def answer(self, call, approved, reason):
        self.answers.append((call, approved))

    def cancel(self, call):
        self.cancelled.append(call)


def server(is_shared=False):
    offer, sent = Offer(), []
    states = ["s%d" % number for number in range(200)]
    made = MCPServer(
        offer,
        {"name": "a", "version": "1"},
        lambda message, origin: sent.append((message, origin)),
        lambda: states.pop(),
        is_shared=is_shared,
    )
    return made, offer, sent


def request(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id, name="t", **more):
    return request(id, "tools/call", name=name, arguments={}, _meta=STATELESS, **more)


def test_clients_of_a_stateless_transport_may_use_the_same_ids():
    one, offer, sent = server(is_shared=True)
    one.take(call(1), "a")
    one.take(call(1), "b")
    one.take(call(1), "b")
    assert len(offer.begun) == 2 and sent[-1][0]["error"]["code"] == -32600
    one.drop("a")
    assert offer.cancelled == [offer.begun[0]]
    one.finish(offer.begun[1], {"content": []}, None)
    assert sent[-1] == (
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "resultType": "complete"}},
        "b",
    )


def test_an_id_under_way_is_taken_and_free_again_after_an_error():
    one, offer, sent = server()
    one.take(call(1, "broken"))
    assert sent[-1][0]["error"]["message"] == "not now"
    one.take(call(1))
    one.take(call(1))
    assert sent[-1][0]["error"]["message"] == "id: a request with 1 is under way"
    assert len(offer.begun) == 1


def test_calls_that_wait_for_a_retry_are_bounded():
    one, offer, sent = server()
    for number in range(MAX_PAUSED + 1):
        one.take(call(number))
        one.ask(offer.begun[-1], "May it?")
    assert offer.answers == [(offer.begun[-1], False)]
    one.finish(offer.begun[0], {"content": []}, None)  # its time was over: room for another
    one.take(call(900))
    one.ask(offer.begun[-1], "May it?")
    assert sent[-1][0]["result"]["resultType"] == "input_required"
    one.close()
    assert len(offer.cancelled) == MAX_PAUSED + 1


def test_an_answer_belongs_to_one_question():
    one, offer, sent = server()
    hello = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {"url": {}}}}
    one.take(request(0, "initialize", **hello))
    one.take(request(1, "tools/call", name="t", arguments={}))
    one.ask(offer.begun[0], "May it?")
    assert offer.answers == [(offer.begun[0], False)], "it shows addresses alone, no forms"
    one, offer, sent = server()
    one.take(request(0, "initialize", protocolVersion="1", capabilities={"elicitation": {}}))
    assert sent[-1][0]["result"]["protocolVersion"] == "2025-11-25"
    one.take(request(1, "tools/call", name="t", arguments={}))
    one.ask(offer.begun[0], "May it?")
    question = sent[-1][0]
    yes = {"action": "accept", "content": {"approve": True}}
    for id in (question["id"] + 1, question["id"], question["id"]):
        one.take({"jsonrpc": "2.0", "id": id, "result": yes})
    assert offer.answers == [(offer.begun[0], True)]


def test_only_a_plain_yes_is_one():
    for said in (
        None,
        {"action": "accept"},
        {"action": "accept", "content": {"approve": "true"}},
        {"action": "accept", "content": {"approve": 1}},
        {"action": "decline", "content": {"approve": True}},
    ):
        one, offer, sent = server()
        one.take(call(1))
        one.ask(offer.begun[0], "May it?")
        state = sent[-1][0]["result"]["requestState"]
        one.take(call(2, requestState=state, inputResponses={"approval": said}))
        assert offer.answers == [(offer.begun[0], False)], said


def test_schemas_are_made_from_check_programs():
    assert schema_of(127) == {} and schema_of(0) == {"not": {}}
    assert schema_of(12) == {"type": "number"} and schema_of(4) == {"type": "integer"}
    assert schema_of(1 | 64) == {"type": ["string", "null"]}
    program = [16, 0, [1, 0, 0, "a", [4, 13, 1, 14, 9], "b", [32, 5, [1], 7, 1]], 4, 2]
    assert schema_of(program) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "maximum": 9},
            "b": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        },
        "required": ["a"],
        "additionalProperties": False,
        "maxProperties": 2,
    }
    tree = [None, [16, 0, [0, 127, 0, "next", -1]]]
    assert schema_of(tree)["$defs"]["d1"]["properties"] == {"next": {"$ref": "#/$defs/d1"}}
    assert schema_of([127, 20, [1, 4], 20, [1, 2]]) == {
        "anyOf": [{"type": "string"}, {"type": "integer"}],
        "allOf": [{"anyOf": [{"type": "string"}, {"type": "boolean"}]}],
    }
    assert schema_of([8, 17, [5, 1], 22, 1])["multipleOf"] == 0.5
