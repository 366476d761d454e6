"""What MCP servers ask a person during a call (elicitation), put as approvals are."""

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import mcp_agents
import mcp_clients
import pytest
from agents import INITIALIZE, Agent, eventually, linux, tool_call
from bot_server import BotServer

from clawlite.host.builder.build import build_beside
from clawlite.linux.mcp.form_fields import field_of
from clawlite.linux.mcp.question import Question

CITY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def question(message="Which city?", **fields) -> dict:
    """Return the params of a question; *fields* are schemas, required without a default."""
    required = [name for name, schema in fields.items() if "default" not in schema]
    schema = {"type": "object", "properties": fields, "required": required}
    return {"message": message, "requestedSchema": schema}


def asking(tmp_path, *forms, more="", level="none", what=()) -> str:
    """Return the image of an agent whose tool echo asks *forms*, and gives the answers."""
    agent = mcp_agents.write(
        tmp_path, ("asks", *what), level, tools=[mcp_agents.tool("echo", "echo")], more=more
    )
    (tmp_path / "marks/asks").write_text(json.dumps(forms))
    return build_beside(str(agent))


def at_terminal(tmp_path, image: str, *command):
    return Agent(linux(*(command or ("run", image))), tmp_path, terminal=True, env={"TERM": "dumb"})


class Operator:
    """An operator that answers questions: ``call`` returns what it is told first."""

    def __init__(self, tmp_path, image: str, takes=True):
        self.agent = Agent(linux("serve", image, "--stdio"), tmp_path)
        self._takes = takes

    def __enter__(self):
        self.agent.__enter__()
        capabilities = {"tools": {"asks": {}} if self._takes else {}}
        answer = self.agent.call("claw.initialize", dict(INITIALIZE, capabilities=capabilities))
        assert answer["result"]["capabilities"] == capabilities
        return self

    def __exit__(self, *error):
        self.agent.__exit__(*error)

    def call(self, name: str, arguments: dict, number: int = 1) -> dict:
        call = tool_call(name, arguments, number)
        self.id = call["params"]["context"]["request_id"]
        self.agent.line(json.dumps(call))
        return self.agent.message()

    def answer(self, content=None, approves=True) -> dict:
        """Answer the question that waits; return the reply."""
        params = {"request_id": self.id}
        if content is not None:
            params["content"] = content
        method = "claw.tool.approve" if approves else "claw.tool.deny"
        return self.agent.call(method, params, 99)


def text_of(answer: dict) -> str:
    return answer["result"]["content"][0]["text"]


def logged(tmp_path) -> list:
    """Return the events of the agent's log."""
    (path,) = tmp_path.rglob("log.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- at a console


def test_a_person_at_the_console_fills_a_form_in(tmp_path):
    form = question(
        "Where\nto?",
        name={"type": "string", "title": "City", "minLength": 2},
        nights={"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        price={"type": "number"},
        meals={"type": "boolean", "description": "Breakfast"},
        room={"type": "string", "enum": ["s", "d"], "enumNames": ["Single", "Double"]},
        extras={"type": "array", "items": {"type": "string", "enum": ["sea", "quiet"]}},
    )
    image = asking(tmp_path, form)
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("say go")
        agent.expect('The MCP server t asks during the call of echo:\n  "Where\\nto?"\n')
        agent.expect('  1 of 6: "name" (text): "City"\n> ')
        agent.line("")
        agent.expect("Not that: this field has to be filled in.")
        agent.line("B")
        agent.expect("Not that: expected at least 2 characters.")
        agent.line("Bonn")
        agent.expect('2 of 6: "nights" (a whole number; Enter takes 2)\n> ')
        agent.line("10")
        agent.expect("expected at most 9")
        agent.line("many")
        agent.expect("Not that: expected a whole number.")
        agent.line("")
        agent.expect('3 of 6: "price" (a number)\n> ')
        agent.line("12.5")
        agent.expect('4 of 6: "meals" (y or n): "Breakfast"\n> ')
        agent.line("y")
        agent.expect('5 of 6: "room" (one of: 1 "Single", 2 "Double")\n> ')
        agent.line("2")
        agent.expect('(some of, with commas between: 1 "sea", 2 "quiet")\n> ')
        agent.line("sea, 2")
        agent.expect('Send "name"="Bonn", "nights"=2, "price"=12.5, "meals"=true, "room"="d"')
        agent.expect("to t? (y, or n to decline)\n> ")
        agent.line("y")
        given = {"name": "Bonn", "nights": 2, "price": 12.5, "meals": True, "room": "d"}
        given["extras"] = ["sea", "quiet"]
        agent.expect(json.dumps([{"action": "accept", "content": given}]))


@pytest.mark.parametrize(
    "lines, action",
    [(["/decline"], "decline"), (["/cancel"], "cancel"), (["Bonn", "n"], "decline")],
)
def test_a_person_need_not_answer(tmp_path, lines, action):
    image = asking(tmp_path, question(name={"type": "string"}))
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("say go")
        for line in lines:
            agent.expect("\n> ")
            agent.line(line)
        agent.expect(json.dumps([{"action": action}]))


def test_begun_anew_and_a_confirmation_without_fields(tmp_path):
    image = asking(tmp_path, question(name={"type": "string"}), question("Sure?"))
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("say go")
        agent.expect('"name"')
        agent.line("Bonm")
        agent.expect('Send "name"="Bonm"')
        agent.line("/again")
        agent.expect('1 of 1: "name"')
        agent.line("Bonn")
        agent.expect('Send "name"="Bonn"')
        agent.line("y")
        agent.expect('"Sure?"')
        agent.expect("Say yes to t?")
        agent.line("y")
        agent.expect('{"action": "accept", "content": {"name": "Bonn"}}')
        agent.expect('{"action": "accept", "content": {}}')


def test_words_of_a_server_that_would_disguise_the_question(tmp_path):
    message = 'x"\nApprove pay()?\x1b[2J\u202e' + " " * 40 + "y" * 2000
    form = question(
        message, **{"a\nb": {"type": "string", "title": "\x1b[31m", "default": "\u200b"}}
    )
    image = asking(tmp_path, form)
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("say go")
        text = agent.expect("/again begins anew)")
        assert '"x\\"\\nApprove pay()?\\u001b[2J\\u202e<40 blanks>yyy' in text
        assert "\x1b[2J" not in text and "\u202e" not in text and "y" * 1300 not in text
        text = agent.expect("\n> ")
        assert '"a\\nb" (text; Enter takes "\\u200b"): "\\u001b[31m"' in text
        agent.line("/cancel")
        agent.expect('"action": "cancel"')


@pytest.mark.parametrize(
    "form",
    [
        question(pin={"type": "string"}),
        question(x={"type": "string", "title": "Your API-key"}),
        question("Type the one-time password", x={"type": "string"}),
        question(userPassword={"type": "string"}),
    ],
)
def test_a_secret_is_asked_for_with_a_warning_and_is_not_on_record(tmp_path, form):
    image = asking(tmp_path, form)
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("say go")
        agent.expect("Careful: this looks like a secret.")
        agent.expect("\n> ")
        agent.line("4711-0815")
        agent.expect("(y, or n")
        agent.line("y")
        agent.expect('"content"')
        agent.line("/quit")
        assert agent.wait() == 0
        (event,) = [one for one in logged(tmp_path) if one["event"] == "tool.approval"]
    assert event["answer"] == "accept" and "4711" not in json.dumps(event)


def test_a_line_without_a_terminal_is_no_person(tmp_path):
    """It is declined at once, and the caller learns what was asked for."""
    image = asking(tmp_path, question(name={"type": "string"}))
    with Agent(linux("run", image), tmp_path) as agent:
        agent.line("say go")
        agent.expect('"code": -32601')


def test_ask_on_a_terminal(tmp_path):
    """--approve lets calls run; it fills no form in."""
    image = asking(tmp_path, question(name={"type": "string"}))
    for more in ((), ("--approve",)):
        with at_terminal(tmp_path, image, "ask", "say go", image, *more) as agent:
            agent.expect("\n> ")
            agent.line("Bonn")
            agent.expect("(y, or n")
            agent.line("y")
            agent.expect('{"action": "accept", "content": {"name": "Bonn"}}')
            assert agent.wait() == 0


def test_ctrl_c_ends_the_call_that_asks(tmp_path):
    image = asking(tmp_path, question(name={"type": "string"}))
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("say go")
        agent.expect('"name" (text)\n> ')
        agent.send(b"\x03")
        agent.expect("Interrupted")
        eventually(lambda: "notifications/cancelled" in mcp_agents.methods(tmp_path))


# -- at an operator that says that it answers questions


def test_an_operator_answers(tmp_path):
    form = question(
        name={"type": "string"}, nights={"type": "integer", "default": 2}, x={"type": "boolean"}
    )
    form["requestedSchema"]["required"] = ["name"]
    with Operator(tmp_path, asking(tmp_path, form)) as one:
        asked = one.call("echo", {"text": "a"})
        assert asked["method"] == "claw.tool.asks"
        told = asked["params"]
        assert told.pop("timeout_ms") == 300000 and told.pop("request_id") == one.id
        schema = form["requestedSchema"]
        assert told == {
            "server": "t",
            "tool": "echo",
            "message": "Which city?",
            "requestedSchema": schema,
        }
        for content, said in (
            (None, 'content: "name": this field has to be filled in'),
            ([], "content: expected an object"),
            ({"name": 5}, 'content: "name": expected a text'),
            ({"name": "a", "y": 1}, 'content: the form has no field "y"'),
            ({"name": "a", "nights": 2.5}, "expected a whole number"),
            ({"name": "a", "x": "yes"}, "expected true or false"),
        ):
            error = one.answer(content)["error"]
            assert error["code"] == -32602 and said in error["message"]
        assert one.answer({"name": "Bonn"})["result"] == {"acknowledged": True}
        given = {"name": "Bonn", "nights": 2}
        assert json.loads(text_of(one.agent.message())) == [{"action": "accept", "content": given}]
        assert one.answer({"name": "Bonn"})["result"] == {"acknowledged": False}
    event, late = [one for one in logged(tmp_path) if one["event"] == "tool.approval"]
    assert event["answer"] == "accept" and event["given"] == given and event["tool"] == "echo"
    assert late["answer"] == "ignored" and "given" not in late
    assert event["reason"] == 'the MCP server t asks: "Which city?"'


def test_an_operator_says_no(tmp_path):
    with Operator(tmp_path, asking(tmp_path, question(name={"type": "string"}))) as one:
        one.call("echo", {"text": "a"})
        assert one.answer(approves=False)["result"] == {"acknowledged": True}
        assert json.loads(text_of(one.agent.message())) == [{"action": "decline"}]


def test_an_operator_that_does_not_say_so_is_not_asked(tmp_path):
    image = asking(tmp_path, question(name={"type": "string"}))
    with Operator(tmp_path, image, takes=False) as one:
        answer = one.call("echo", {"text": "a"})
        assert json.loads(text_of(answer))[0]["code"] == -32601


def test_a_tool_that_there_is_only_where_a_person_can_be_asked(tmp_path):
    """The server has not changed, and another build would not help."""
    image = asking(tmp_path, question(name={"type": "string"}), what=("shy",))
    with Operator(tmp_path, image, takes=False) as one:
        error = one.call("echo", {"text": "a"})["error"]
        assert "t does not offer its tool echo here, where it can ask no person" in error["message"]
        assert "call it where somebody answers" in error["data"]["hint"]
        assert "any more" not in error["message"] and error["data"]["ran"] is False
    with Operator(tmp_path, image) as one:
        assert one.call("echo", {"text": "a"})["params"]["message"] == "Which city?"


def test_a_server_that_does_not_stop_asking(tmp_path):
    forms = [question("Sure %d?" % number) for number in range(10)]
    with Operator(tmp_path, asking(tmp_path, *forms)) as one:
        assert one.call("echo", {"text": "a"})["params"]["message"] == "Sure 0?"
        for number in range(1, 8):
            one.answer()
            assert one.agent.message()["params"]["message"] == "Sure %d?" % number
        one.answer()
        answers = json.loads(text_of(one.agent.message()))
        assert [each["action"] for each in answers] == ["accept"] * 8 + ["cancel"] * 2


@pytest.mark.parametrize(
    "form",
    [
        {"mode": "url", "url": "https://example.com/a", "elicitationId": "1", "message": "Pay"},
        {"mode": "voice", "message": "Say it"},
        {"message": "x", "requestedSchema": None},
        question(a={"type": "object"}),
        question(a={"type": "array", "items": {"type": "string"}}),
        question(a={"type": "string", "enum": [1, 2]}),
        question(**{"f%d" % number: {"type": "string"} for number in range(21)}),
        [],
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(tmp_path, form):
    with Operator(tmp_path, asking(tmp_path, form)) as one:
        (error,) = json.loads(text_of(one.call("echo", {"text": "a"})))
        assert error["code"] == -32602
        if form and form.get("mode") == "url":
            assert 'to open "https://example.com/a": "Pay"' in error["message"]
            assert "open it yourself if you trust the server" in error["message"]


def test_the_time_of_a_call_stands_still_while_a_person_is_asked(tmp_path):
    agent = mcp_agents.write(tmp_path, ("asks",), tools=[mcp_agents.tool("echo", "echo")])
    claw = agent / "claw.yaml"
    claw.write_text(claw.read_text().replace('"name": "echo"', '"name": "echo", "timeout_ms": 900'))
    (tmp_path / "marks/asks").write_text(json.dumps([question("Sure?")]))
    with Operator(tmp_path, build_beside(str(agent))) as one:
        one.call("echo", {"text": "a"})
        until = time.monotonic() + 1
        eventually(lambda: one.agent.is_serving() and time.monotonic() > until)
        one.answer()
        assert json.loads(text_of(one.agent.message()))[0]["action"] == "accept"


@pytest.mark.parametrize("level", ["none", "process"])
def test_a_server_that_ends_while_a_person_is_asked(tmp_path, level):
    with Operator(tmp_path, asking(tmp_path, question("Sure?"), level=level)) as one:
        one.call("echo", {"text": "a"})
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path("/proc", number, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(mcp_agents.SERVER).encode() in words and b"asks" in words:
                if str(tmp_path / "marks").encode() in words:
                    os.kill(int(number), signal.SIGKILL)
        assert "failed during the call" in text_of(one.agent.message())
        assert one.answer()["result"] == {"acknowledged": False}
        assert one.agent.is_serving()


# -- servers of others


# "sdk1 json" and "sdk1 stateless" wait for an answer to a question that they never send
@pytest.mark.parametrize(
    "published", ["sdk2", "sdk2 json", "sdk2 retry", "sdk1", "sdk1 retry"], indirect=True
)
def test_a_server_of_the_official_sdk_over_http(tmp_path, published):
    url, kind = published
    names = ("ask_within",) if "sdk1" in kind else ("ask_within", "ask")
    with Operator(tmp_path, build_beside(str(mcp_agents.remote(tmp_path, url, names)))) as one:
        for number, name in enumerate(names):
            if name == "ask_within" and "sdk2" in kind:
                continue  # in its era a server asks by its result
            asked = one.call(name.replace("_", "-"), {"text": "a"}, 2 * number + 1)
            assert asked["params"]["message"] == "Which city?"
            one.answer({"name": "Bonn"})
            assert "Bonn" in json.dumps(one.agent.message()["result"])
            one.call(name.replace("_", "-"), {"text": "a"}, 2 * number + 2)
            one.answer(approves=False)
            assert "Bonn" not in json.dumps(one.agent.message())


@pytest.mark.parametrize("sdk, name", [("sdk1", "ask_within"), ("sdk2", "ask")])
def test_a_server_of_the_official_sdk_on_stdio(tmp_path, sdk, name):
    python, *args = mcp_clients.server(sdk, "stdio")
    tools = [
        mcp_agents.tool("ask", name, program=python),
        mcp_agents.tool("echo", "echo", program=python),
    ]
    image = build_beside(str(mcp_agents.write(tmp_path, tools=tools, args=args)))
    with Operator(tmp_path, image) as one:
        assert one.call("ask", {"text": "a"})["params"]["message"] == "Which city?"
        one.answer({"name": "Bonn"})
        assert "Bonn" in text_of(one.agent.message())


def test_server_everything(tmp_path):
    """@modelcontextprotocol/server-everything: each kind of field that there is."""
    program = mcp_clients.PLACE / "npm/node_modules/.bin/mcp-server-everything"
    if not program.exists():
        pytest.skip("no mcp-server-everything from npm: make mcp")
    node = mcp_clients.node()
    tools = [mcp_agents.tool("ask", "trigger-elicitation-request", program=str(node))]
    args = [str(program.resolve()), "stdio"]
    agent = mcp_agents.write(tmp_path, tools=tools, args=args)
    (agent / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\ncall = "ask"\n')
    image = build_beside(str(agent))
    with Operator(tmp_path, image) as one:
        asked = one.call("ask", {})["params"]
        assert {"name", "integer", "titledMultipleSelectEnum"} <= set(
            asked["requestedSchema"]["properties"]
        )
        one.answer({"name": "Ada"})
        text = text_of(one.agent.message())
        assert "provided the requested information" in text
    with Operator(tmp_path, image, takes=False) as one:  # it does not offer this tool then
        answer = one.call("ask", {}, 2)
        assert "where it can ask no person" in answer["error"]["message"], answer
    with at_terminal(tmp_path, image) as agent:
        agent.expect("> ")
        agent.line("hi")
        names = list(asked["requestedSchema"]["properties"])
        for number, name in enumerate(names):
            agent.expect('%d of %d: "%s"' % (number + 1, len(names), name))
            agent.expect("\n> ")
            agent.line("Ada" if name == "name" else "")
        agent.expect('Send "name"="Ada", "firstLine"="It was a dark and stormy night."')
        agent.expect("\n> ")
        agent.line("y")
        agent.expect("provided the requested information")


# -- an admin of a channel


TOKEN = "123456:AAE-sample_token"


def on_telegram(tmp_path, url: str) -> Agent:
    """Return the agent in *tmp_path*, with a channel whose server is at *url*."""
    roles = [{"id": "1", "role": "admin"}, {"id": "7", "role": "user"}]
    bot = {"name": "bot", "type": "telegram", "transport": "polling"}
    bot["auth"] = {"secret_ref": "SECRET"}
    bot["access_control"] = {"mode": "role-based", "roles": roles}
    agent = tmp_path / "agent"
    with (agent / "claw.yaml").open("a") as file:
        file.write("  channels: %s\n" % json.dumps([{"inline": bot}]))
    with (agent / "clawlite.toml").open("a") as file:
        file.write('[telegram]\nbase_url = "%s"\n' % url)
    return Agent(linux("run", build_beside(str(agent))), tmp_path, env={"SECRET": TOKEN})


def test_a_question_to_an_admin_is_withdrawn_when_its_server_ends(tmp_path):
    agent = mcp_agents.write(tmp_path, ("asks", "leaves"), tools=[mcp_agents.tool("echo", "echo")])
    (agent.parent / "marks/asks").write_text(json.dumps([question(name={"type": "string"})]))
    mcp_agents.hold(tmp_path)
    with BotServer(TOKEN) as server, on_telegram(tmp_path, server.url):
        server.message(7, "say go")
        eventually(lambda: said_to(server, 1))
        mcp_agents.go(tmp_path)
        eventually(lambda: len(said_to(server, 1)) > 1)
        assert said_to(server, 1)[1] == (
            "The question of the MCP server t is withdrawn, because its call has ended: "
            '"Which city?"'
        )


def test_an_admin_of_a_channel_answers(tmp_path):
    form = question(name={"type": "string"}, nights={"type": "integer", "default": 2})
    asking(tmp_path, form, question(name={"type": "string"}), question("Sure?"))
    with BotServer(TOKEN) as server:
        with on_telegram(tmp_path, server.url) as agent:
            server.message(7, "say go")
            asked = eventually(lambda: said_to(server, 1))
            assert "The MCP server t asks during the call of echo:" in asked[0]
            assert '"name" (text)' in asked[0] and "Enter takes 2" in asked[0]
            agent.line("/status")
            agent.line("what now")  # a script's line is none of its answers
            agent.expect("READY")
            agent.expect("no rule")
            assert "The MCP server t" not in agent.text()
            number = asked[0].split("/approve ")[1].split()[0]
            assert '%s {"FIELD": VALUE, ...} or /deny %s' % (number, number) in asked[0]
            for text, said in (
                ("Bonn", 'expected the fields as JSON, {"name": value}'),
                ('{"nights": 1}', 'content: "name": this field has to be filled in'),
                ('{"name": "Bad  Ems", "nights": 3}', "Approved."),
            ):
                server.message(1, "/approve %s %s" % (number, text))
                eventually(lambda said=said: said in "\n".join(said_to(server, 1)))
            second = "%d" % (int(number) + 1)  # each question has a number of its own
            eventually(lambda: "/approve %s VALUE or" % second in said_to(server, 1)[-1])
            server.message(1, "/approve %s Bonn am Rhein" % second)
            eventually(lambda: '"Sure?"' in said_to(server, 1)[-1])
            server.message(1, "/deny %d" % (int(number) + 2))
            answer = eventually(
                lambda: [text for text in said_to(server, 7) if text.startswith("[{")]
            )[0]
    assert json.loads(answer) == [
        {"action": "accept", "content": {"name": "Bad  Ems", "nights": 3}},
        {"action": "accept", "content": {"name": "Bonn am Rhein"}},
        {"action": "decline"},
    ]


def said_to(server, chat: int) -> list:
    """Return the texts that the bot has sent to *chat*."""
    return [one["text"] for one in server.sent if one["chat_id"] == str(chat)]


@pytest.mark.parametrize("client", list(mcp_clients.SDKS))
@pytest.mark.parametrize("says", ["accept", "decline", "cancel"])
def test_a_client_of_mcp_serve_is_asked(tmp_path, client, says):
    """MCP, "Elicitation": a server's question goes on to the client whose call it is."""
    image = asking(tmp_path, question(**{"name": {"type": "string"}}))
    said = mcp_clients.sdk(
        client,
        tmp_path,
        [["call", "echo", {"text": "x"}]],
        says,
        content={"name": "Bonn"},
        command=linux("mcp", "serve", image),
    )
    (asked,) = said["asked"]
    assert "The MCP server t asks during the call of echo" in asked and '"Which city?"' in asked
    (result,) = said["results"]
    text = result["content"][0]["text"]
    assert (
        json.loads(text) == [{"action": "accept", "content": {"name": "Bonn"}}]
        if (says == "accept")
        else says in text
    )


def test_what_a_client_of_mcp_serve_gives_is_checked(tmp_path):
    """What does not fit the form is not sent on."""
    image = asking(tmp_path, question(**{"nights": {"type": "integer"}}))
    said = mcp_clients.sdk(
        "sdk2",
        tmp_path,
        [["call", "echo", {"text": "x"}]],
        "accept",
        content={"nights": "many"},
        command=linux("mcp", "serve", image),
    )
    assert len(said["asked"]) == 1 and "many" not in json.dumps(said["results"])


def test_a_client_of_mcp_serve_without_forms(tmp_path):
    image = asking(tmp_path, question(**{"name": {"type": "string"}}))
    step = [["call", "echo", {"text": "x"}]]
    said = mcp_clients.sdk("sdk2", tmp_path, step, command=linux("mcp", "serve", image))
    assert said["asked"] == [] and "accept" not in json.dumps(said["results"])


def test_the_name_that_a_gateway_gives_a_server_moves_no_cursor():
    tool = SimpleNamespace(name="echo", flags=0)
    asks = Question("t\x1b[2J\n", question(), json.loads)
    next(asks.put(tool, {}))
    assert "The MCP server t\\x1b[2J\\n asks" in asks.text(9, "/show")
    assert "\x1b" not in asks.event({"answer": "denied"})["reason"]


def test_a_form_may_have_odd_fields():
    """A schema is a server's, and so a stranger's."""
    for form in ([], {}, 7, None, "no-such"):
        field = field_of("a", {"type": "string", "format": form}, True)
        assert field.text() and field.check("x") == "x"
    field = field_of("n", {"type": "integer", "maximum": 10}, True)
    for wrong in (10**400, float("inf"), float("nan"), "9" * 5000):
        with pytest.raises(ValueError, match="^expected "):
            field.check(wrong)
    with pytest.raises(ValueError, match="^expected "):
        field.read("9" * 400)
    assert field_of("n", {"type": "number"}, True).check(10**400) == 10**400
