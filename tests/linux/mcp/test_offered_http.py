"""``clawlite mcp serve --http``: the agent's tools over Streamable HTTP (CKP 0.3.0 Tool, "MCP
Compatibility"; clawft, "MCP Tools").
"""

import contextlib
import http.client
import json
import re
import signal
import socket
import threading

import mcp_agents
import mcp_clients
import mcp_offer
import pytest
from agents import Agent, eventually, linux

from clawlite.host.builder.build import build_beside
from clawlite.host.gateway import gateway as gateways

TOKEN = "token-0123456789"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "t", "version": "1"},
}
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Offered:
    """An agent that serves MCP over HTTP; *port* is where.

    image  of another agent than that of mcp_offer.py
    """

    def __init__(self, tmp_path, rules=mcp_offer.RULES, address="0", image=None, **env):
        image = image or mcp_offer.build(tmp_path, rules)
        env = {"MCP_TOKEN": TOKEN, "POURED": str(tmp_path / "poured"), **env}
        env = {name: value for name, value in env.items() if value is not None}
        self.agent = Agent(linux("mcp", "serve", image, "--http", address), tmp_path, env=env)
        self.agent.end()  # nothing on stdin ends it
        try:
            eventually(lambda: "/mcp" in self.agent.errors())
        except BaseException:
            self.agent.__exit__(None, None, None)
            raise
        self.port = int(re.search(r":(\d+)/mcp", self.agent.errors())[1])
        self.url = "http://127.0.0.1:%d/mcp" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.agent.signal(signal.SIGTERM)
            assert self.agent.wait() == 128 + signal.SIGTERM
        finally:
            self.agent.__exit__(None, None, None)

    def ask(self, body, method="POST", path="/mcp", **headers) -> tuple:
        """Return (status, headers, body) of one request; a header of None is left out."""
        connection, answer = self.open(body, method, path, **headers)
        with connection:
            return answer.status, answer.headers, answer.read()

    def open(self, body, method="POST", path="/mcp", **headers):
        connection = _Connection("127.0.0.1", self.port, timeout=60)
        given = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
        given.update({name.replace("_", "-"): value for name, value in headers.items()})
        given = {name: value for name, value in given.items() if value is not None}
        data = json.dumps(body) if isinstance(body, dict) else body
        connection.request(method, path, data, given)
        return connection, connection.getresponse()

    def result(self, id, method: str, params: dict, **headers) -> dict:
        return json.loads(self.ask(message(id, method, params), **headers)[2])

    def session(self, capabilities=None) -> str:
        hello = dict(HELLO, capabilities=capabilities or {})
        status, headers, _ = self.ask(message(1, "initialize", hello))
        assert status == 200
        return headers["Mcp-Session-Id"]


class _Connection(http.client.HTTPConnection):
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def message(id, method: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def stateless(id, method: str, params: dict) -> tuple:
    """Return (body, headers) of a request of the newer era."""
    headers = {"MCP_Protocol_Version": VERSION, "Mcp_Method": method}
    if "name" in params:
        headers["Mcp_Name"] = params["name"]
    return message(id, method, dict(params, _meta=META)), headers


def text_of(result: dict) -> str:
    return result["content"][0]["text"]


@pytest.fixture(params=sorted(mcp_clients.SDKS))
def client(request):
    return request.param


def asked(client: str, offered, tmp_path, steps: list, **more) -> dict:
    return mcp_clients.sdk(client, tmp_path, steps, url=offered.url, token=TOKEN, **more)


def test_calls_of_the_official_clients(client, tmp_path):
    steps = [
        ["list"],
        ["call", "join", {"words": ["a", "b"], "how": "up"}],
        ["call", "join", {"words": "a"}],
        ["call", "nothing", {}],
        ["prompt", "skill__toast", {"whom": "Ada"}],
    ]
    with Offered(tmp_path) as offered:
        listed, good, bad, unknown, prompt = asked(client, offered, tmp_path, steps)["results"]
    assert [tool["name"] for tool in listed["tools"]][:2] == ["join", "pour"]
    assert good["structuredContent"] == {"text": "A B"}
    assert bad["isError"] and bad["_meta"]["clawlite/error"]["code"] == -32602
    assert unknown["error"]["code"] == -32602
    assert "Join the words of a toast." in prompt["messages"][0]["content"]["text"]
    assert [call["caller"] for call in mcp_offer.events(tmp_path)] == ["mcp"] * 4


@pytest.mark.parametrize("says", ["accept", "decline", None])
def test_a_person_of_the_client_approves(client, tmp_path, says):
    with Offered(tmp_path) as offered:
        steps = [["call", "pour", {"litres": 3}]]
        said = asked(client, offered, tmp_path, steps, says=says)
    result = said["results"][0]
    assert result["isError"] == (says != "accept")
    assert (tmp_path / "poured").exists() == (says == "accept")
    assert len(said["asked"]) == (says is not None)


@pytest.mark.parametrize("says", ["accept", "decline", "cancel", None])
def test_a_person_of_the_client_is_asked_what_an_mcp_server_asks(client, tmp_path, says):
    """MCP, "Elicitation", in both eras: the form goes on to the client, and what it gives goes to
    the server; a client without forms makes the server hear at once that nobody answers."""
    image = mcp_agents.build(tmp_path, ["asks"])
    form = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    params = {"message": "Where to?", "requestedSchema": form}
    (tmp_path / "marks/asks").write_text(json.dumps([params]))
    with Offered(tmp_path, image=image) as offered:
        steps = [["call", "echo", {"text": "x"}]]
        said = asked(client, offered, tmp_path, steps, says=says, content={"city": "Bonn"})
    text = text_of(said["results"][0])
    if says is None:
        assert said["asked"] == [] and "accept" not in text
        return
    (question,) = said["asked"]
    assert "The MCP server t asks during the call of echo" in question
    assert '"Where to?"' in question
    gives = {"action": "accept", "content": {"city": "Bonn"}}
    assert json.loads(text) == [gives] if says == "accept" else says in text


def test_one_clients_answer_is_none_to_anothers_question(tmp_path):
    """Two sessions of the handshake era: an answer counts in the session that was asked alone."""
    image = mcp_agents.build(tmp_path, ["asks"])
    form = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    params = {"message": "Where to?", "requestedSchema": form}
    (tmp_path / "marks/asks").write_text(json.dumps([params]))
    with Offered(tmp_path, image=image) as offered:
        mine, other = (offered.session({"elicitation": {}}) for _ in range(2))
        call = message(7, "tools/call", {"name": "echo", "arguments": {"text": "x"}})
        connection, answer = offered.open(call, Mcp_Session_Id=mine)
        with connection:
            question = event_of(answer)
            for session, city in ((other, "Rome"), (mine, "Bonn")):
                result = {"action": "accept", "content": {"city": city}}
                reply = {"jsonrpc": "2.0", "id": question["id"], "result": result}
                offered.ask(reply, Mcp_Session_Id=session)
            text = text_of(event_of(answer)["result"])
    assert json.loads(text) == [{"action": "accept", "content": {"city": "Bonn"}}]


def event_of(answer) -> dict:
    """Return the message of the next event of a stream."""
    while not (line := answer.readline()).startswith(b"data: {"):
        assert line, "the stream has ended"
    return json.loads(line[6:])


@pytest.mark.parametrize("client", ["sdk2", "sdk2-handshake"])
def test_a_call_that_is_cancelled_ends(client, tmp_path):
    mark = tmp_path / "mark"
    steps = [["cancel", "wait", {"mark": str(mark)}], ["call", "join", {"words": []}]]
    with Offered(tmp_path) as offered:
        asked(client, offered, tmp_path, steps, mark=str(mark))
        eventually(lambda: mark.read_text() == "began ended")


def test_the_request_of_a_cancelled_call_ends(tmp_path):
    """More than one address may have connections (32): none of them stays open."""
    with Offered(tmp_path) as offered:
        session = {"Mcp_Session_Id": offered.session()}
        for at in range(40):
            mark = tmp_path / ("mark%d" % at)
            call = message(at, "tools/call", {"name": "wait", "arguments": {"mark": str(mark)}})
            found = []
            waiting = threading.Thread(
                target=lambda call=call, found=found: found.append(offered.ask(call, **session))
            )
            waiting.start()
            eventually(lambda mark=mark: mark.exists() and mark.read_text() == "began")
            gone = {"method": "notifications/cancelled", "params": {"requestId": at}}
            assert offered.ask({"jsonrpc": "2.0", **gone}, **session)[0] == 202
            waiting.join(60)
            status, headers, body = found[0]
            assert (status, headers["Content-Type"], body) == (200, "text/event-stream", b"")
            eventually(lambda mark=mark: mark.read_text() == "began ended")


def test_a_client_of_the_newer_era_that_goes_cancels_its_call(tmp_path):
    """One of the older era only goes: its call goes on."""
    marks = [tmp_path / "newer", tmp_path / "older"]
    with Offered(tmp_path) as offered:
        session = offered.session()
        body, headers = stateless(1, "tools/call", {"name": "wait"})
        body["params"]["arguments"] = {"mark": str(marks[0])}
        older = message(1, "tools/call", {"name": "wait", "arguments": {"mark": str(marks[1])}})
        for one, named in ((body, headers), (older, {"Mcp_Session_Id": session})):
            data = json.dumps(one).encode()
            head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" % TOKEN
            head += "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(data)
            head += "".join("%s: %s\r\n" % (n.replace("_", "-"), v) for n, v in named.items())
            with socket.create_connection(("127.0.0.1", offered.port)) as connection:
                connection.sendall(head.encode() + b"\r\n" + data)
                mark = marks[one is older]
                eventually(lambda mark=mark: mark.exists() and mark.read_text() == "began")
        eventually(lambda: marks[0].read_text() == "began ended")
        assert marks[1].read_text() == "began"


def test_a_question_comes_before_the_answer_on_one_stream(tmp_path):
    with Offered(tmp_path) as offered:
        session = {"Mcp_Session_Id": offered.session({"elicitation": {}})}
        call = message(2, "tools/call", {"name": "pour", "arguments": {"litres": 1}})
        connection, answer = offered.open(call, **session)
        with connection:
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert answer.readline() == b"event: message\n"
            question = json.loads(answer.readline()[6:])
            assert question["method"] == "elicitation/create"
            yes = {"action": "accept", "content": {"approve": True}}
            said = {"jsonrpc": "2.0", "id": question["id"], "result": yes}
            assert offered.ask(said, **session)[::2] == (202, b"")
            rest = answer.read().split(b"data: ")[1]
        assert text_of(json.loads(rest)["result"]) == "poured 1"


def test_sessions_are_apart_and_end(tmp_path):
    with Offered(tmp_path) as offered:
        first, second = offered.session(), offered.session()
        assert first != second
        call = message(7, "tools/call", {"name": "join", "arguments": {"words": ["a"]}})
        for session in (first, second):
            assert "result" in offered.result(*list(call.values())[1:], Mcp_Session_Id=session)
        assert offered.ask(None, "DELETE", Mcp_Session_Id=first)[0] == 200
        status, _, body = offered.ask(call, Mcp_Session_Id=first)
        assert status == 404 and b"send initialize again" in body
        assert offered.ask(None, "DELETE", Mcp_Session_Id=first)[0] == 404
        assert offered.ask(call, Mcp_Session_Id=second)[0] == 200
        assert offered.ask(call)[0] == 400
        for _ in range(64):
            offered.session()
        assert offered.ask(call, Mcp_Session_Id=second)[0] == 404, "silent for longest"


def test_the_end_of_a_session_ends_its_calls(tmp_path):
    mark = tmp_path / "mark"
    with Offered(tmp_path) as offered:
        session = {"Mcp_Session_Id": offered.session()}
        call = message(2, "tools/call", {"name": "wait", "arguments": {"mark": str(mark)}})
        found = []
        waiting = threading.Thread(target=lambda: found.append(offered.ask(call, **session)))
        waiting.start()
        eventually(lambda: mark.exists() and mark.read_text() == "began")
        assert offered.ask(None, "DELETE", **session)[0] == 200
        eventually(lambda: mark.read_text() == "began ended")
        waiting.join(60)
    assert found[0][0] == 404 and b"send initialize again" in found[0][2]


def test_the_end_of_a_session_ends_a_question(tmp_path):
    with Offered(tmp_path) as offered:
        session = {"Mcp_Session_Id": offered.session({"elicitation": {}})}
        call = message(2, "tools/call", {"name": "pour", "arguments": {"litres": 1}})
        connection, answer = offered.open(call, **session)
        with connection:
            assert answer.readline() == b"event: message\n"
            assert b"elicitation/create" in answer.readline()
            assert offered.ask(None, "DELETE", **session)[0] == 200
            assert answer.read() == b"\n", "the stream ends, and nothing else is in it"


@pytest.mark.parametrize(
    "headers, method, path, status",
    [
        ({"Authorization": None}, "POST", "/mcp", 401),
        ({"Authorization": "Bearer token"}, "POST", "/mcp", 401),
        ({"Host": "evil.example.com"}, "POST", "/mcp", 403),
        ({"Host": "127.0.0.1.example.com:80"}, "POST", "/mcp", 403),
        ({"Origin": "https://evil.example.com"}, "POST", "/mcp", 403),
        ({"Origin": "null"}, "POST", "/mcp", 403),
        ({"Origin": "http://localhost:3000"}, "POST", "/mcp", 400),
        ({"Content_Type": "text/plain"}, "POST", "/mcp", 415),
        ({}, "GET", "/mcp", 405),
        ({}, "POST", "/", 404),
        ({"MCP_Protocol_Version": "1999-01-01"}, "POST", "/mcp", 400),
        ({"Mcp_Session_Id": "none"}, "POST", "/mcp", 404),
    ],
)
def test_who_and_what_is_refused(tmp_path, headers, method, path, status):
    with Offered(tmp_path) as offered:
        got, fields, body = offered.ask(message(1, "tools/list", {}), method, path, **headers)
        assert got == status and b"error" in body
        assert (fields["WWW-Authenticate"] == "Bearer") == (status == 401)


@pytest.mark.parametrize("body", [b"{", b"[]", b"5", b'{"jsonrpc":"2.0"}', b"\xff"])
def test_a_body_that_is_none(tmp_path, body):
    with Offered(tmp_path) as offered:
        status, _, said = offered.ask(body)
        assert status == 400 and json.loads(said)["error"]["code"] in (-32700, -32600)
        assert offered.session()


def test_a_body_that_is_too_large(tmp_path):
    with Offered(tmp_path) as offered:
        assert offered.ask(None, Content_Length="4194305")[0] == 413


def test_a_method_that_is_no_text_is_refused_and_others_are_answered(tmp_path):
    body, headers = stateless(1, "tools/list", {})
    with Offered(tmp_path) as offered:
        for method in (["x"], {"a": 1}, 7, None):
            wrong = {**body, "method": method}
            status, _, said = offered.ask(wrong, **headers)
            assert status == 400 and json.loads(said)["error"]["code"] == -32600
        assert offered.ask(body, **headers)[0] == 200
        assert "Traceback" not in offered.agent.errors()


@pytest.mark.parametrize(
    "change",
    [{"Mcp_Method": "tools/list"}, {"Mcp_Name": "fail"}, {"Mcp_Name": None}]
    + [{"MCP_Protocol_Version": None}, {"Mcp_Param_Words": "a"}],
)
def test_headers_say_what_the_body_says(tmp_path, change):
    body, headers = stateless(1, "tools/call", {"name": "join", "arguments": {"words": ["a"]}})
    with Offered(tmp_path) as offered:
        assert offered.ask(body, **headers)[0] == 200
        status, _, said = offered.ask(body, **dict(headers, **change))
        assert status == 400 and json.loads(said)["error"]["code"] == -32020


def test_statuses_of_the_newer_era(tmp_path):
    with Offered(tmp_path) as offered:
        body, headers = stateless(1, "resources/list", {})
        status, _, said = offered.ask(body, **headers)
        assert status == 404 and json.loads(said)["error"]["code"] == -32601
        body["params"]["_meta"] = dict(META, **{list(META)[0]: "1999-01-01"})
        status, _, said = offered.ask(body, **dict(headers, MCP_Protocol_Version="1999-01-01"))
        assert status == 400 and json.loads(said)["error"]["code"] == -32022


def test_many_at_once(tmp_path):
    found = []
    with Offered(tmp_path) as offered:
        body, headers = stateless(1, "tools/call", {"name": "join"})

        def call(word: str):
            own = json.loads(json.dumps(body))
            own["params"]["arguments"] = {"words": [word]}
            result = json.loads(offered.ask(own, **headers)[2])["result"]
            found.append(result["structuredContent"]["text"] == word)

        threads = [threading.Thread(target=call, args=("w%d" % at,)) for at in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert found == [True] * 20, "one id of many clients"


@pytest.mark.parametrize("address", ["0.0.0.0:80", "192.168.1.4:80", "x", "127.0.0.1:99999", ""])
def test_other_addresses(tmp_path, address):
    with Agent(linux("mcp", "serve", "--http", address), tmp_path) as agent:
        assert agent.wait() == 2
        said = "127.0.0.1" if address else "expected [ADDRESS:]PORT"
        assert "--http" in agent.errors() and said in agent.errors()


def test_a_token_that_is_missing(tmp_path):
    with Agent(linux("mcp", "serve", mcp_offer.build(tmp_path), "--http", "0"), tmp_path) as agent:
        assert agent.wait() == 2
        assert "MCP_TOKEN" in agent.errors()


def _connected(offered, head: str) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", offered.port), 60)
    found.sendall(head.replace("\n", "\r\n").encode())
    return found


def test_a_strangers_body_is_not_read(tmp_path):
    """Who has no token is answered before its body has come, and nothing of it is kept."""
    head = "POST /mcp HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
    head += "Content-Length: 4000000\nAuthorization: Bearer %s\n\n"
    with Offered(tmp_path) as offered:
        before = _memory_kb(offered)
        strangers = [_connected(offered, head % "wrong") for _ in range(64)]
        for one in strangers:
            with contextlib.suppress(ConnectionError):  # it has closed already
                one.sendall(b" " * 3900000)
        for one in strangers:
            assert one.recv(100).startswith(b"HTTP/1.1 401 ")
            one.close()
        assert _memory_kb(offered) - before < 32768
        with _connected(offered, head % TOKEN) as good:
            good.settimeout(0.2)
            with pytest.raises(TimeoutError):  # its body is waited for
                good.recv(100)


def _memory_kb(offered) -> int:
    """Return the most memory that the agent has ever had."""
    with open("/proc/%d/status" % offered.agent.process.pid) as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1])


@pytest.mark.parametrize("own", [None, TOKEN])
def test_a_token_of_the_gateway_opens_the_door_that_it_names(tmp_path, own):
    """docs/gateway.md: ``--for mcp``; what opens other doors, and the bare secret, do not."""
    state = tmp_path / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAWLITE_STATE", str(state))
        good = "claude:" + gateways.make_token("claude", ["a2a", "mcp"])
        other = "phone:" + gateways.make_token("phone", ["device", "proxy", "a2a"])
    (state / ".gateway/tokens/old").write_text("0" * 64)
    bad = [other, "old:" + "0" * 64, good[:-1], good.partition(":")[2], "claude", "", ":", "..:x"]
    with Offered(tmp_path, CLAWLITE_STATE=str(state), MCP_TOKEN=own) as offered:
        hello = message(1, "initialize", HELLO)
        for bearer in bad:
            assert offered.ask(hello, Authorization="Bearer " + bearer)[0] == 401, bearer
        for bearer in (good, own or good):
            assert offered.ask(hello, Authorization="bearer " + bearer)[0] == 200


def test_an_address_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = linux("mcp", "serve", mcp_offer.build(tmp_path), "--http")
        words.append("127.0.0.1:%d" % taken.getsockname()[1])
        with Agent(words, tmp_path, env={"MCP_TOKEN": TOKEN}) as agent:
            assert agent.wait() == 2
            assert "nothing can listen on 127.0.0.1" in agent.errors()


class Forwarder(threading.Thread):
    """A port that passes connections on with the token, for programs that cannot send one.

    theirs, ours  what such a program calls a tool or a prompt, and what the agent does; names of
                  one length, so that a body keeps its own
    """

    def __init__(self, port: int, theirs: str = "", ours: str = ""):
        super().__init__(daemon=True)
        self._to, self._threads = port, []
        assert len(theirs) == len(ours)
        self._theirs, self._ours = theirs.encode(), ours.encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(one,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, one):
        with one, socket.create_connection(("127.0.0.1", self._to)) as other:
            data = one.recv(65536)
            first, end, rest = data.partition(b"\r\n")
            if end:
                rest = rest.replace(self._theirs, self._ours)
                other.sendall(first + b"\r\nAuthorization: Bearer %s\r\n" % TOKEN.encode() + rest)
            names = (self._ours, self._theirs)
            back = threading.Thread(target=self._copy, args=(other, one, *names), daemon=True)
            back.start()
            self._copy(one, other, self._theirs, self._ours)
            back.join(60)

    def _copy(self, one, other, name: bytes, becomes: bytes):
        try:
            while data := one.recv(65536):
                other.sendall(data.replace(name, becomes))
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(60)
        self.join(60)


SCENARIOS = ["server-initialize", "ping", "tools-list", "prompts-list", "dns-rebinding-protection"]
SCENARIOS += ["server-sse-multiple-streams"]
STATUS = ["active", "inactive", "pending"]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": STATUS, "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
NAMES = {"username": {"type": "string"}, "email": {"type": "string"}}
# scenario -> what it calls, the tool of mcp_server.py behind the agent that does it, and the
# fields for which that server asks
CALLED = {
    "tools-call-simple-text": ("test_simple_text", "where", None),
    "tools-call-error": ("test_error_handling", "fail", None),
    "tools-call-elicitation": ("test_elicitation", "echo", NAMES),
    "elicitation-sep1034-defaults": ("test_elicitation_sep1034_defaults", "echo", DEFAULTS),
    "elicitation-sep1330-enums": ("test_elicitation_sep1330_enums", "echo", CHOICES),
}
PROMPT = "prompts-get-simple"
NO_RESOURCES = "the agent's tools and skills are offered, and no resources"
NO_LOG = "the agent's log goes to no client"
TEXT_ALONE = "a tool's result is text or JSON: other content is a line that names it"
NOT_OFFERED = {  # scenarios of the suite for servers that are not supported, and why
    **dict.fromkeys(
        ["resources-list", "resources-read-text", "resources-read-binary"]
        + ["resources-templates-read", "resources-subscribe", "resources-unsubscribe"],
        NO_RESOURCES,
    ),
    **dict.fromkeys(["logging-set-level", "tools-call-with-logging"], NO_LOG),
    **dict.fromkeys(
        ["tools-call-image", "tools-call-audio", "tools-call-embedded-resource"]
        + ["tools-call-mixed-content"],
        TEXT_ALONE,
    ),
    **dict.fromkeys(
        ["prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"],
        "a prompt is the instruction of a skill: text, into which nothing is put",
    ),
    "completion-complete": "arguments are not completed",
    "tools-call-with-progress": "progress is told four times a second at most, and the suite wants "
    "three words within 100 ms (test_progress.py has it)",
    "tools-call-sampling": "a client's model is not asked: the agent has its own",
    "json-schema-2020-12": "a schema is made from what the image checks, without $defs",
    "server-sse-polling": "no stream is closed before its answer: the suite checks nothing",
}


def conforms(tmp_path, scenario: str, offered, *names):
    forwarder = Forwarder(offered.port, *names)
    try:
        url = "http://127.0.0.1:%d/mcp" % forwarder.port
        words = ["server", "--url", url, "--scenario", scenario]
        done = mcp_clients.npm("conformance", words, tmp_path)
    finally:
        forwarder.close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", done.stdout), done.stdout


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite(tmp_path, scenario):
    """@modelcontextprotocol/conformance: an agent as the server."""
    with Offered(tmp_path) as offered:
        conforms(tmp_path, scenario, offered)


@pytest.mark.parametrize("scenario", CALLED)
def test_the_conformance_suite_calls_a_tool(tmp_path, scenario):
    """Its names have underscores, which no Tool document may have: they are changed on the way."""
    name, theirs, fields = CALLED[scenario]
    tool = mcp_agents.tool(name.replace("_", "-"), theirs)
    tool["inline"]["input_schema"] = {"type": "object"}
    agent = mcp_agents.write(tmp_path, ["asks"] if fields else [], tools=[tool])
    (agent / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "hi"\n')
    if fields:
        form = {"type": "object", "properties": fields}
        asks = [{"message": "Fill it in.", "requestedSchema": form}]
        (tmp_path / "marks/asks").write_text(json.dumps(asks))
    with Offered(tmp_path, image=build_beside(str(agent))) as offered:
        conforms(tmp_path, scenario, offered, name, name.replace("_", "-"))
    assert mcp_agents.methods(tmp_path).count("answer") == bool(fields)


def test_the_conformance_suite_gets_a_prompt(tmp_path):
    mcp_offer.build(tmp_path)
    claw = tmp_path / "agent/claw.json"
    claw.write_text(claw.read_text().replace('"toast"', '"test-prompt"'))
    with Offered(tmp_path, image=build_beside(str(claw.parent))) as offered:
        conforms(tmp_path, PROMPT, offered, "test_simple_prompt", "skill__test-prompt")


def test_each_scenario_of_the_suite_is_run_or_there_is_a_reason(tmp_path):
    listed = mcp_clients.npm("conformance", ["list"], tmp_path).stdout.partition("Client scenarios")
    names = [line.split()[1] for line in listed[0].splitlines() if line.strip().startswith("- ")]
    assert sorted(names) == sorted([*SCENARIOS, *CALLED, PROMPT, *NOT_OFFERED])


def test_the_inspector(tmp_path):
    with Offered(tmp_path) as offered:
        words = ["--cli", offered.url, "--transport", "http"]
        words += ["--header", "Authorization: Bearer " + TOKEN, "--method"]
        done = mcp_clients.npm("mcp-inspector", [*words, "tools/list"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["tools"]) == 5
        words += ["tools/call", "--tool-name", "join", "--tool-arg", 'words=["a","b"]']
        done = mcp_clients.npm("mcp-inspector", words, tmp_path)
        assert text_of(json.loads(done.stdout)) == '{"text":"a b"}', done.stderr
