"""What MCP servers ask a person during calls that a gateway makes for a device on Linux
(docs/gateway.md, ``claw.gateway.asks``): the device's person answers, as for a server of its own.
"""

import asyncio
import json
import os
import subprocess
from contextlib import contextmanager

import mcp_agents
import mcp_clients
import pytest
from agents import INITIALIZE, Agent, eventually, tool_call
from gateways import gateway, says
from lan_boards import linux_shed, mediated, token
from mcp_calls import Calls, image_of, message, run

from clawlite.core.base.effect import ASKS_PERSON
from clawlite.core.base.errors import ParseError
from clawlite.host.gateway import mcp_servers
from clawlite.host.gateway.service_calls import MAX_DEPTH, MAX_INTEGER, Caller, ToolJob
from clawlite.host.image import image_reader
from clawlite.linux.io.jsontext import loads
from clawlite.linux.net.gateway_client import _MAX_ANSWER, GatewayCalls

FORM = {
    "message": "Which city?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}


def asking(tmp_path, *forms, how=()):
    """Write an agent whose tool echo asks *forms*, and gives the answers; return its folder."""
    tools = [mcp_agents.tool("echo", "echo")]
    agent = mcp_agents.write(tmp_path, ("asks", *how), "board", tools=tools)
    (tmp_path / "marks/asks").write_text(json.dumps(forms))
    return agent


def data(shed: Agent) -> str:
    return shed.message()["result"]["content"][0]["text"].replace('\\"', '"')


def test_the_person_at_the_device_answers(tmp_path, state, port, wire):
    """Two questions in one call, which goes on after a declined one, too."""
    image = mediated(asking(tmp_path, FORM, FORM), wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "run", image, terminal=True, env={"TERM": "dumb"}) as shed:
            shed.expect("> ")
            shed.line("say go")
            shed.expect('The MCP server t asks during the call of echo:\n  "Which city?"\n')
            shed.expect("\n> ")
            shed.line("Bonn")
            shed.expect("to t? (y, or n to decline)\n> ")
            shed.line("y")
            shed.expect('1 of 1: "name"')
            shed.expect("\n> ")
            shed.line("/decline")
            shed.expect('{\\"action\\": \\"accept\\", \\"content\\": {\\"name\\": \\"Bonn\\"}}')
            shed.expect('{\\"action\\": \\"decline\\"}')
    assert mcp_agents.methods(tmp_path).count("tools/call") == 1
    assert wire.seen.count(b'"claw.gateway.asks"') == 2


@pytest.mark.parametrize("sdk, name", [("sdk1", "ask_within"), ("sdk2", "ask")])
def test_an_operator_answers_a_server_of_the_official_sdk(tmp_path, state, port, wire, sdk, name):
    """Both eras.  While the question waits, another call has the connection."""
    python, *args = mcp_clients.server(sdk, "stdio")
    tools = [mcp_agents.tool(*both, program=python) for both in (("echo", "echo"), ("ask", name))]
    image = mediated(mcp_agents.write(tmp_path, level="board", tools=tools, args=args), wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}", "--uncontained", "t") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "serve", image, "--stdio") as shed:
            shed.call("claw.initialize", dict(INITIALIZE, capabilities={"tools": {"asks": {}}}))
            asks = tool_call("ask", {"text": "a"}, 1)
            shed.line(json.dumps(asks))
            asked = shed.message()
            assert asked["method"] == "claw.tool.asks"
            assert asked["params"]["message"] == "Which city?"
            shed.line(json.dumps(tool_call("echo", {"text": "meanwhile"}, 2)))
            assert "meanwhile" in data(shed)
            answer = {"request_id": asks["params"]["context"]["request_id"]}
            shed.call("claw.tool.approve", {**answer, "content": {"name": "Bonn"}}, 99)
            assert "Bonn" in data(shed)


def test_a_device_where_nobody_can_be_asked(tmp_path, state, port, wire):
    """It is as before: the server learns so, and no record of a question is sent."""
    image = mediated(asking(tmp_path, FORM), wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "run", image) as shed:
            shed.line("say go")
            shed.expect('"ok":')
    assert b'"asks"' not in wire.seen and b"claw.gateway.asks" not in wire.seen


@pytest.fixture
def leaving(tmp_path, wire):
    """The image of an agent whose server ends in a question, once it is let ``go``."""
    agent = asking(tmp_path, FORM, how=["leaves"])
    mcp_agents.hold(tmp_path)
    return mediated(agent, wire)


def test_a_question_is_withdrawn_when_its_server_ends(tmp_path, state, port, leaving):
    """What the person types next is a command, and no answer."""
    with gateway(tmp_path, leaving, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        words = "run", leaving
        with linux_shed(tmp_path, state, *words, terminal=True, env={"TERM": "dumb"}) as shed:
            shed.expect("> ")
            shed.line("say go")
            shed.expect('1 of 1: "name"')
            mcp_agents.go(tmp_path)
            shed.expect(WITHDRAWN)
            shed.expect("the MCP server t failed during the call: it ended")
            shed.expect("> ")
            shed.line("/status")
            shed.expect("READY")


def test_a_question_of_a_client_is_withdrawn_when_its_server_ends(tmp_path, state, port, leaving):
    with gateway(tmp_path, leaving, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "mcp", "serve", leaving) as shed:
            shed.call("initialize", CLIENT, 0)
            shed.line(rpc("tools/call", {"name": "echo", "arguments": {"text": "a"}}, id=1))
            asked = shed.message()
            assert asked["method"] == "elicitation/create"
            mcp_agents.go(tmp_path)
            note = shed.message()
            assert note["method"] == "notifications/cancelled", note
            assert note["params"]["requestId"] == asked["id"]
            assert "failed during the call: it ended" in str(shed.message()["result"])


def test_a_gateway_that_is_started_anew_while_a_person_thinks(tmp_path, state, port, wire):
    """It does not know the call any more, and makes no second one."""
    image = mediated(asking(tmp_path, FORM), wire)
    words = tmp_path, image, "--listen", f"127.0.0.1:{port}"
    with gateway(*words) as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "run", image, terminal=True, env={"TERM": "dumb"}) as shed:
            shed.expect("> ")
            shed.line("say go")
            shed.expect('1 of 1: "name"')
            running.signal(2)
            assert running.wait() == 130
            with gateway(*words) as another:
                assert says(another, "listens on")
                shed.expect(WITHDRAWN)
                shed.expect("the gateway was restarted and no longer knows this request")
    assert mcp_agents.methods(tmp_path).count("tools/call") == 1


WITHDRAWN = (
    'The question of the MCP server t is withdrawn, because its call has ended: "Which city?"'
)


class Person(Caller):
    """Somebody who can be asked, and says *answer*, or nothing: None."""

    asks = True

    def __init__(self, answer):
        self.answer, self.asked, self.servers, self.limits = answer, 0, None, []
        self.waiting = 0  # questions of one call at once, at most

    async def ask(self, server: str, params) -> tuple:
        self.asked += 1
        calls = [one for known, _ in self.servers.values() for one in known.calls.values()]
        self.limits += [one.limit.when() for one in calls]
        self.waiting = max(self.waiting, *[len(one.asking) for one in calls])
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer


CANCEL = {"action": "cancel"}
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "t", "version": "1"},
}


@pytest.mark.parametrize(
    "answer, told", [((CANCEL, ""), "cancel"), ((None, "no"), "decline"), (None, "decline")]
)
def test_what_the_server_is_told_of_no_answer(tmp_path, monkeypatch, answer, told):
    """The time of the call stands still while a person is asked."""
    image, person = image_of(asking(tmp_path, FORM)), Person(answer)
    if answer is None:
        monkeypatch.setattr(mcp_servers, "ASK_S", 0.01)

    async def work():
        async with Calls(image, caller=person) as call:
            person.servers = call.servers._servers
            result = await call()
        assert json.loads(result["data"]) == [{"action": told}]
        assert person.limits == [None]

    run(work())


def test_an_input_that_is_required_and_not_given_ends_the_call(tmp_path):
    """2026-07-28: a result that wants input, by the official SDK."""
    _, *args = mcp_clients.server("sdk2", "stdio")
    tools = [mcp_agents.tool(name, name) for name in ("echo", "ask")]
    image = image_of(mcp_agents.write(tmp_path, level="board", tools=tools, args=args))
    person = Person((None, "nobody is there"))

    async def work():
        async with Calls(image, ("t",), caller=person) as call:
            person.servers = call.servers._servers
            said = message(await call("ask"), "failed")
        assert "Which city?" in said and said.endswith(" - during the call nobody is there"), said

    run(work())


@pytest.mark.parametrize("sdk, name", [("sdk1", "ask_within"), ("sdk2", "ask")])
def test_a_server_at_a_url_asks_a_person(tmp_path, sdk, name):
    """The official SDK over Streamable HTTP, in both eras."""
    words = mcp_clients.server(sdk)
    person = Person(({"action": "accept", "content": {"name": "Bonn"}}, ""))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            url = "http://127.0.0.1:%d/mcp" % int(process.stdout.readline())
            image = image_of(mcp_agents.remote(tmp_path, url, (name,)))

            async def work():
                async with Calls(image, caller=person) as call:
                    person.servers = call.servers._servers
                    result = await call(name, text="a")
                assert "Bonn" in str(result["data"]), result

            run(work())
        finally:
            process.kill()
    assert person.limits == [None]


def test_more_questions_than_a_person_is_asked(tmp_path):
    image, person = image_of(asking(tmp_path, *[FORM] * 9)), Person((CANCEL, ""))

    async def work():
        async with Calls(image, caller=person) as call:
            person.servers = call.servers._servers
            result = await call()
        assert json.loads(result["data"]) == [CANCEL] * 8 + [{"action": "decline"}]

    run(work())
    assert person.asked == 8


def test_many_questions_at_once_do_not_pile_up(tmp_path):
    """All but the first 8 are refused before a person has answered the first."""
    image, person = image_of(asking(tmp_path, *[FORM] * 100, how=["hasty"])), Person((CANCEL, ""))

    async def work():
        async with Calls(image, caller=person) as call:
            person.servers = call.servers._servers
            result = await call()
        assert json.loads(result["data"]) == [CANCEL] * 8 + [{"action": "decline"}] * 92

    run(work())
    assert (person.asked, person.waiting) == (8, 8)


def nested(levels: int):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "most, more", [(nested(MAX_DEPTH - 3), nested(MAX_DEPTH - 2)), (1 - MAX_INTEGER, -MAX_INTEGER)]
)
def test_a_form_that_a_device_cannot_decode_is_not_sent(most, more):
    """The device would end the connection, and get the same record at the next one."""

    async def work():
        job = ToolJob("1", {"tool": "echo", "asks": True}, lambda: None, None, 65536)
        assert await job.ask("t", {"message": more}) == (
            None,
            "its form is nested too deep, or has a number that is too long",
        )
        assert job.records == []
        task = asyncio.create_task(job.ask("t", {"message": most}))
        await asyncio.sleep(0)
        sent = json.loads(job.records[0])
        assert loads(job.records[0]) == sent
        sent["params"]["params"]["message"] = more
        with pytest.raises(ParseError):
            loads(json.dumps(sent).encode())
        task.cancel()

    asyncio.run(work())


def test_progress_that_a_device_cannot_decode_is_not_sent():
    told = []

    async def work():
        job = ToolJob("1", {"tool": "echo", "watches": True}, lambda: None, told.append, 65536)
        job.report((MAX_INTEGER, None, ""))
        job.report((1, -MAX_INTEGER, ""))
        assert told == []
        job.report((MAX_INTEGER - 1, 1 - MAX_INTEGER, ""))

    asyncio.run(work())
    assert loads(json.dumps(told[0]).encode())["params"]["progress"] == MAX_INTEGER - 1


def test_calls_that_are_given_up_do_not_count_at_the_gateway(tmp_path, state, port, wire):
    """A device has 4 calls at once; those whose client cancelled them make room for a fifth."""
    python, *args = mcp_clients.server("sdk1", "stdio")
    both = ("echo", "echo"), ("ask", "ask_within")
    tools = [mcp_agents.tool(*each, program=python) for each in both]
    image = mediated(mcp_agents.write(tmp_path, level="board", tools=tools, args=args), wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}", "--uncontained", "t") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "mcp", "serve", image) as shed:
            shed.call("initialize", CLIENT, 0)
            for number in range(1, 6):
                params = {"name": "ask", "arguments": {"text": "a"}}
                shed.line(rpc("tools/call", params, id=number))
                asked = shed.message()
                assert asked.get("method") == "elicitation/create", asked
                if number < 5:
                    shed.line(rpc("notifications/cancelled", {"requestId": number}))
            answer = {"action": "accept", "content": {"name": "Bonn"}}
            shed.line(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}))
            assert "Bonn" in str(shed.message()["result"])
    assert wire.seen.count(b"claw.gateway.cancel") == 4


class Seam:
    """An agent whose person can be asked, and does not watch."""

    asks = staticmethod(lambda task: True)
    watches = staticmethod(lambda task: False)


@contextmanager
def asked(tmp_path, port, wire, now):
    """The calls of a device, of which number 1 asks a person; *now*: [ms]."""
    image, done, wake = mediated(asking(tmp_path, FORM), wire), [], os.pipe()
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        secret, codecs = token(tmp_path), (loads, json.dumps)
        clock, secret_of, put = lambda: now[0], lambda: secret, lambda *about: about
        opened = image_reader.open_image(image)
        calls = GatewayCalls(opened, wake[1], clock, secret_of, codecs, Seam, put)
        calls.start(1, "echo", {"text": "a"}, 1000)
        eventually(lambda: done.extend(calls.poll()) or done, 30)
        assert done == [(1, (ASKS_PERSON, (1, "t", FORM)))]
        yield calls
    for fd in wake:
        os.close(fd)


def ended(calls) -> dict:
    """Return the result of the call, which says what the server was told."""
    done = []
    eventually(lambda: done.extend(calls.poll()) or done, 30)
    [(_, (_, result))] = done
    return result


def test_the_time_stands_still_while_a_person_thinks(tmp_path, port, wire):
    now = [0]
    with asked(tmp_path, port, wire, now) as calls:
        now[0] += 100000
        assert calls.poll() == [] and calls.deadline() is None
        calls.resume(1, (True, CANCEL), now[0])
        assert calls.deadline() == 103000  # what it had, and its share for the gateway
        assert json.loads(ended(calls)["data"]) == [CANCEL]


@pytest.mark.parametrize("more, action", [(0, "accept"), (1, "decline")])
def test_an_answer_that_no_record_holds(tmp_path, port, wire, more, action):
    """The gateway would drop it, and wait for it until 6 minutes are over."""
    answer = {"action": "accept", "content": {"name": ""}}
    answer["content"]["name"] = "x" * (_MAX_ANSWER - len(json.dumps(answer)) + more)
    with asked(tmp_path, port, wire, [0]) as calls:
        calls.resume(1, (True, answer), 0)
        assert str(ended(calls)).count(action) == 1


def rpc(method: str, params: dict, **more) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})
