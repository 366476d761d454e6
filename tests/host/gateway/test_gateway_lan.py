"""Devices of a gateway on the LAN: tokens, many at once, broken connections, and whatever a
stranger may send.
"""

import asyncio
import contextlib
import json
import os
import sqlite3
import stat
import threading
from contextlib import closing

import mcp_agents
import pytest
import trustme
from gateways import KEY, Peer, project
from lan_boards import mediated
from llm_server import FAULTS, Server, calls, say

from clawlite.core.base.errors import ClawError
from clawlite.host.gateway import device, http
from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway import store as gateway_store
from clawlite.host.gateway.images import Images
from clawlite.host.gateway.store import MAX_DIALECTS, Dialects, Store
from clawlite.host.proxy import acceptor


class Gateway:
    """``async with Gateway(folder) as it``: a gateway on loopback, for peers."""

    def __init__(self, folder, **tls):
        self._folder, self._tls = folder, tls
        self.notes = []

    async def __aenter__(self):
        images = Images([str(self._folder)], self.notes.append)
        self.digest = next(iter(images._found))
        store = await Store.open(os.path.join(gateways.folder(), "gateway.db"), self.notes.append)
        self.it = gateways.Gateway(images, store, lambda agent, name: KEY, self.notes.append)
        self.address = await self.it.listen("127.0.0.1:0", **self._tls)
        return self

    async def __aexit__(self, *_):
        await self.it.close()

    def peer(self, name: str, **more) -> Peer:
        return Peer(name, gateways.make_token(name), more.pop("image", self.digest), **more)


def run(make, folder, **tls):
    """Run the coroutine function *make* with a gateway of *folder*."""

    async def inside():
        async with Gateway(folder, **tls) as gateway:
            async with asyncio.timeout(60):
                return await make(gateway)

    return asyncio.run(inside())


@pytest.mark.parametrize(
    "protocol, api", [("openai-compatible", "openai"), ("anthropic-native", "anthropic")]
)
@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_conversation_with_a_call(tmp_path, protocol, api, stream):
    async def talk(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        answer = await peer.end(peer.begin("how is it?"))
        assert answer["result"] == {
            "stop": "tools",
            "calls": [
                [
                    "call_0",
                    "look",
                    '{"where": "bed 2"}' if stream == "true" else '{"where":"bed 2"}',
                ]
            ],
        } or json.loads(answer["result"]["calls"][0][2]) == {"where": "bed 2"}, answer
        id, name, raw = answer["result"]["calls"][0]
        peer.note("message", id="r2", role="user", text="how is it?")
        peer.note("message", id="r2", role="assistant", text="")
        peer.note("message", id="r2", call=[id, name], text=raw[:5])
        peer.note("message", id="r2", text=raw[5:])
        peer.note("message", id="r2", role="tool", text='{"seen":3}', of=id, failed=False)
        peer.send(
            {
                "jsonrpc": "2.0",
                "id": "r2",
                "method": "claw.gateway.provider",
                "params": {"provider": "remote", "max_tokens": 0, "seen": 0},
            }
        )
        assert (await peer.end("r2"))["result"] == {"stop": "stop"} and peer.texts[
            "r2"
        ] == "All is well.\n"
        assert KEY.encode() not in peer.seen

    with Server([calls(("look", {"where": "bed 2"})), say("All is well.")], api=api) as server:
        project(tmp_path / "p", server.endpoint, protocol=protocol, stream=stream)
        run(talk, tmp_path / "p")
    assert "seen" in json.dumps(server.requests[1].body)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_call_that_is_text_is_a_call_for_the_device_where_the_settings_let_it(tmp_path, allowed):
    text = '<tool_call>{"name": "look", "arguments": {"where": "bed 2"}}</tool_call>'

    async def talk(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        id = peer.begin("how is it?")
        result = (await peer.end(id))["result"]
        if allowed:
            assert result == {"stop": "tools", "calls": [["", "look", '{"where":"bed 2"}']]}
            assert not peer.texts.get(id)
        else:
            assert result == {"stop": "stop"} and peer.texts[id] == text + "\n"

    with Server([say(text)]) as server:
        more = '[dialect.remote]\ntext_calls = "run"\n' if allowed else ""
        project(tmp_path / "p", server.endpoint, gateway=more)
        run(talk, tmp_path / "p")


SIGNED = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}


def _gemini(request):
    """Answer as Gemini 3 does: a call without its signature is refused."""
    messages = request.body["messages"]
    for message in messages:
        for call in message.get("tool_calls", ()):
            if "extra_content" not in call:
                said = "Function call is missing a thought_signature in functionCall parts."
                return {"status": 400, "body": [{"error": {"code": 400, "message": said}}]}
    if messages[-1]["role"] == "tool":
        return say("All is well.")
    function = {"name": "look", "arguments": '{"where":"bed 2"}'}
    call = {"id": "", "type": "function", "function": function, **SIGNED}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"body": {"choices": [{"message": message, "finish_reason": "tool_calls"}]}}


def test_what_only_the_server_understands_is_kept_for_a_device(tmp_path):
    async def talk(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        answer = await peer.end(peer.begin("how is it?"))
        ((id, name, raw),) = answer["result"]["calls"]
        assert id == "" and "signature" not in json.dumps(answer)
        for round in ("r2", "r3"):  # also after the device was away
            peer.note("message", id=round, role="user", text="how is it?")
            peer.note("message", id=round, role="assistant", text="")
            peer.note("message", id=round, call=["local-1", name], text=raw)
            peer.note("message", id=round, role="tool", text='{"seen":3}', of="local-1")
            peer.send(
                {
                    "jsonrpc": "2.0",
                    "id": round,
                    "method": "claw.gateway.provider",
                    "params": {"provider": "remote", "max_tokens": 0, "seen": 0},
                }
            )
            assert (await peer.end(round))["result"] == {"stop": "stop"}
            peer = await gateway.peer("shed", boot="00c0ffe%s" % round[1]).connect(gateway.address)

    with Server([_gemini] * 3) as server:
        project(tmp_path / "p", server.endpoint, stream="false")
        run(talk, tmp_path / "p")
        for request in server.requests[1:]:
            (call,) = request.body["messages"][-2]["tool_calls"]
            assert call["extra_content"] == SIGNED["extra_content"]


def test_what_a_server_refused_is_known_to_all_devices_and_after_a_restart(tmp_path):
    def old(request):
        if "max_tokens" not in request.body:
            return say("Hi.")
        said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return {"status": 400, "body": {"error": {"message": said, "code": "unsupported"}}}

    async def ask(gateway):
        for name in ("shed", "barn"):
            peer = await gateway.peer(name).connect(gateway.address)
            assert (await peer.end(peer.begin("hello")))["result"] == {"stop": "stop"}

    with Server([old] * 5) as server:
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")
        assert len(server.requests) == 3
        run(ask, tmp_path / "p")
        assert len(server.requests) == 5
    with closing(sqlite3.connect(os.path.join(gateways.folder(), "gateway.db"))) as db:
        ((place, _, changes),) = db.execute("SELECT * FROM dialects").fetchall()
    assert place.endswith("/v1/chat/completions test-model")
    assert json.loads(changes) == [["max_tokens", "max_completion_tokens"]]


def test_what_servers_refuse_is_forgotten_in_time_and_bounded():
    now, rows = [1000000], []
    known = Dialects(keep=lambda *row: rows.append(row[:3]), now_s=lambda: now[0])
    for number in range(MAX_DIALECTS + 5):
        known.learn("place %d" % number, [["stream_options", ""]])
    again = Dialects([*rows[5:], ("bad", now[0], "{"), ("worse", None, "[]")], None, lambda: now[0])
    for each in (known, again):
        assert each.of("place 4") == [] and each.of("place 5") == [["stream_options", ""]]
        assert each.of("bad") == each.of("worse") == each.of("none") == []
    now[0] += 31 * 86400
    assert known.of("place 60") == []


def test_a_request_that_is_none_is_answered(tmp_path):
    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        for method, id in (
            ("claw.gateway.later", "r1"),
            ("claw.gateway.provider", 7),
            ("claw.gateway.provider", "x" * (device.MAX_ID + 1)),
        ):
            peer.send({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
            answer = await peer.end(id)
            assert answer["error"]["code"] == -32601 and method in answer["error"]["message"]
        answer = await peer.end(peer.begin("hello"))
        assert answer["result"]["stop"] == "stop"

    with Server([say("Hi.")]) as server:
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")


def test_a_hundred_devices_at_once(tmp_path):
    async def all_of_them(gateway):
        peers = await asyncio.gather(
            *[gateway.peer("device-%d" % number).connect(gateway.address) for number in range(100)]
        )
        answers = await asyncio.gather(
            *[peer.end(peer.begin("I am " + peer.name)) for peer in peers]
        )
        assert all(answer["result"]["stop"] == "stop" for answer in answers)
        for peer in peers:
            assert (
                list(peer.texts.values()) == ["You are I am %s. " % peer.name * 20 + "\n"]
                and KEY.encode() not in peer.seen
            )
        return gateway.it

    def answer(request):
        return say("You are %s. " % request.body["messages"][-1]["content"] * 20)

    with Server(answer) as server:
        project(tmp_path / "p", server.endpoint)
        run(all_of_them, tmp_path / "p")
    assert len(server.requests) == 100


def test_a_connection_that_breaks_loses_nothing_and_asks_nothing_twice(tmp_path):
    go_on = threading.Event()

    def deltas(*texts):
        return [
            b"data: "
            + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()
            + b"\n"
            b"\n"
            for text in texts
        ]

    async def talk(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        id = peer.begin("count")
        first = await peer.read()
        assert first["params"] == {"id": id, "text": "One, "}
        peer.close()
        go_on.set()
        again = await Peer("shed", peer._token, gateway.digest).connect(gateway.address)
        again.begin("count", id, seen=1)
        assert (await again.end(id))["result"] == {"stop": "stop"} and again.texts == {id: "two.\n"}
        again.begin("count", id, seen=1)  # the answer did not arrive, say
        assert (await again.end(id))["result"] == {"stop": "stop"} and again.texts == {
            id: "two.\ntwo.\n"
        }
        again.begin("count", id, seen=99)
        other = await Peer("shed", peer._token, gateway.digest, boot="another1").connect(
            gateway.address
        )
        # the board was reset: nobody knows that request any more
        other.begin("count", id, seen=1)
        message = (await other.end(id))["error"]["message"]
        assert message.endswith("no longer knows this request - send it again")

    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    with Server([{"stream": [*deltas("One, "), go_on, *deltas("two."), end]}]) as server:
        project(tmp_path / "p", server.endpoint)
        run(talk, tmp_path / "p")
    assert len(server.requests) == 1


def test_who_has_no_token_gets_nothing(tmp_path):
    async def knock(gateway):
        right = gateways.make_token("shed")
        for name, token in (
            ("shed", "wrong"),
            ("shed", ""),
            ("nobody", right),
            ("../shed", right),
            (7, right),
            ("shed~", right),
        ):
            with pytest.raises(AssertionError, match="hung up"):
                await Peer(name, token, gateway.digest).connect(gateway.address)
        reader, writer = await asyncio.open_connection(*gateway.address.split(":"))
        writer.write(b"\x1e[1]\n\x1e" + b"[" * 60000 + b"\n")
        await reader.readline()
        assert await reader.read() == b""
        await Peer("shed", right, gateway.digest).connect(gateway.address)
        newer = gateways.make_token("shed")
        with pytest.raises(AssertionError, match="hung up"):
            await Peer("shed", right, gateway.digest).connect(gateway.address)
        await Peer("shed", newer, gateway.digest).connect(gateway.address)

    project(tmp_path / "p", "http://127.0.0.1:9/v1")
    run(knock, tmp_path / "p")
    path = os.path.join(gateways.folder(), "tokens", "shed")
    assert (
        stat.S_IMODE(os.stat(path).st_mode) == 0o600
        and stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    )
    for name in ("", ".x", "a/b", "x" * 64, "a b"):
        with pytest.raises(ClawError, match="no name of a device"):
            gateways.make_token(name)
    assert len(gateways.make_token("x" * 63)) == 64


@pytest.mark.parametrize("limit", ["MAX_STRANGERS", "MAX_BESIDE"])
def test_of_strangers_there_are_not_too_many_and_the_oldest_goes(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(acceptor, limit, 2)

    async def knock(gateway):
        three = []
        for _ in range(3):
            three.append(await asyncio.open_connection(*gateway.address.split(":")))
            assert b"auth" in await three[-1][0].readline()
        with contextlib.suppress(ConnectionResetError):
            assert await three[0][0].read() == b""
        assert len(gateway.it._listener.strangers) == 2
        assert not three[1][0].at_eof() and not three[2][0].at_eof()

    project(tmp_path / "p", "http://127.0.0.1:9/v1")
    run(knock, tmp_path / "p")


def test_what_a_device_may_not_ask(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "MAX_ASKED", 1000)
    stall = {"text": "Let me think about", "stall": "stream"}

    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)

        async def refused(*words, **named) -> str:
            return (await peer.end(peer.begin(*words, **named)))["error"]["message"]

        assert "the image has no such provider" in await refused("hello", provider="rules")
        assert "the image has no such provider" in await refused("hello", provider=["remote"])
        # two pieces of 64 bytes more
        assert "at most 1000 bytes" in await refused("x" * 873)
        peer.send({"jsonrpc": "2.0", "id": "empty", "method": "claw.gateway.provider", "params": 7})
        assert "a conversation" in (await peer.end("empty"))["error"]["message"]
        for bad in (
            b"{",
            b"[]",
            b"7",
            b'{"method":7}',
            b'{"jsonrpc":"2.0","method":"claw.gateway.message","params":{"id":1,"text":2}}',
            b'{"method":"claw.gateway.message","params":{"id":"z","text":"first"}}',
            b'{"method":"claw.gateway.cancel"}',
            b'{"method":"claw.gateway.cancel","params":{"id":[]}}',
            b'{"method":"claw.gateway.provider","id":7}',
            b'{"id":"hello"}',
            b'{"method":"claw.gateway.message","params":{"id":"z","text":"","call":[1,2]}}',
            b"\xff",
            b'{"id":"hello","result":{"boot":1}}',
        ):
            peer.send(bad)
        for id in ("i" * 65, 7, None, []):  # None: there is nobody to answer
            peer.send(
                {
                    "jsonrpc": "2.0",
                    "id": id,
                    "method": "claw.gateway.provider",
                    "params": {"provider": "remote"},
                }
            )
        for id in (7, "i" * 65, 7, []):
            answer = await peer.read()
            assert answer["id"] == id and answer["error"]["code"] == -32601
        running = [peer.begin("wait") for _ in range(device.RUNNING)]
        begun = set()
        while len(begun) < len(running):  # each has heard the first of its answer
            begun.add((await peer.read())["params"]["id"])
        assert "4 requests of this device are under way" in await refused("one too many")
        peer.note("cancel", id=running[0])
        assert (await peer.end(peer.begin("x" * 872)))["result"] == {"stop": "stop"}
        other = await gateway.peer("hut", image="0" * 64).connect(gateway.address)
        assert (
            "this device runs image 000000000000 of garden"
            in (await other.end(other.begin("hello")))["error"]["message"]
        )

    with Server([stall] * 4 + [say("Fine.")]) as server:
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")
    assert len(server.requests) == 5


def test_answers_that_are_done_are_kept_for_a_while(tmp_path):
    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        ids = [peer.begin("hello")]
        await peer.end(ids[0])
        for _ in range(device.KEPT):
            ids.append(peer.begin("hello"))
            await peer.end(ids[-1])
        peer.begin("hello", ids[1], seen=1)  # the last eight are there
        assert (await peer.end(ids[1]))["result"]
        peer.begin("hello", ids[0], seen=1)
        assert "no longer knows this request" in (await peer.end(ids[0]))["error"]["message"]

    with Server(lambda request: say("Fine.")) as server:
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")
    assert len(server.requests) == device.KEPT + 1


def test_tls(tmp_path):
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "cert.pem"
    )

    async def talk(gateway):
        import ssl

        context = ssl.create_default_context()
        authority.configure_trust(context)
        peer = await gateway.peer("shed").connect(gateway.address, ssl=context)
        assert (await peer.end(peer.begin("hello")))["result"]

    with Server([say("Fine.")]) as server:
        project(tmp_path / "p", server.endpoint)
        run(talk, tmp_path / "p", certificate=str(tmp_path / "cert.pem"))


@pytest.mark.parametrize(
    "address, said",
    [
        ("7420", "expected ADDRESS:PORT"),
        ("127.0.0.1:x", "expected ADDRESS:PORT"),
        ("127.0.0.1:70000", "70000"),
    ],
)
def test_an_address_that_is_none(tmp_path, address, said):
    async def listen(gateway):
        with pytest.raises(ClawError, match=said):
            await gateway.it.listen(address)

    project(tmp_path / "p", "http://127.0.0.1:9/v1")
    run(listen, tmp_path / "p")


def test_projects_are_found_by_what_they_compile_to(tmp_path):
    notes, now = [], [0]
    image = project(tmp_path / "all/one", "http://127.0.0.1:9/v1", name="one")
    project(tmp_path / "all/two", "http://127.0.0.1:9/v1", name="two")
    (tmp_path / "all/three").mkdir()
    (tmp_path / "all/three/claw.yaml").write_text("nonsense")
    os.remove(tmp_path / "all/two/claw.cbor")
    images = Images([str(tmp_path / "all")], notes.append, lambda: now[0])
    assert images.agents() == ["one", "two"] and len(notes) == 1 and "three" in notes[0]
    assert Images([image], notes.append).agents() == ["one"]
    os.rename(tmp_path / "all/one", tmp_path / "later")
    other = Images([str(tmp_path / "all")], notes.append, lambda: now[0])
    (digest,) = set(images._found) - set(other._found)
    assert other.find(digest) is None
    os.rename(tmp_path / "later", tmp_path / "all/one")
    assert other.find(digest) is None  # looked for a moment ago
    now[0] = 5
    assert other.find(digest).agent.name == "one"
    with pytest.raises(ClawError, match="does not exist"):
        Images([str(tmp_path / "none")], notes.append)


@pytest.mark.parametrize(
    "fault",
    [
        "unauthorized",
        "no model",
        "failed",
        "html",
        "empty",
        "cut json",
        "broken stream",
        "close early",
        "close before head",
        "reset",
    ],
)
def test_a_failure_is_one_sentence_without_a_key(tmp_path, fault):
    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        error = (await peer.end(peer.begin("hello")))["error"]
        assert (
            error["code"] == -32020
            and error["message"].startswith("provider remote: ")
            and "(tried " in error["message"]
        )
        for secret in (KEY, "Bearer", "127.0.0.1", "gateway.db"):
            assert secret.encode() not in peer.seen
        # the device's sentence, and for whoever runs the gateway the step that names the server
        assert len(gateway.notes) == 2
        assert error["message"].partition(" - ")[0] in gateway.notes[1]
        assert error["message"].endswith(" - the output of clawlite gateway says what to do")
        assert (
            " - " in gateway.notes[1] and server.endpoint.rpartition("/v1")[0] in gateway.notes[1]
        )

    with Server([FAULTS[fault]] * 2) as server:
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")


@pytest.mark.parametrize(
    "kind, said",
    [
        ("good", ""),
        ("expired", "certificate of 127.0.0.1"),
        ("wrong host", "certificate of 127.0.0.1"),
    ],
)
def test_a_provider_behind_tls(tmp_path, monkeypatch, kind, said):
    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        answer = await peer.end(peer.begin("hello"))
        assert (
            (said in answer["error"]["message"] and "(tried 1 of 2)" in answer["error"]["message"])
            if said
            else answer["result"] == {"stop": "stop"}
        )

    with Server([say("Fine.")], tls=kind) as server:
        monkeypatch.setenv("SSL_CERT_FILE", server.ca_file)
        http.context.cache_clear()
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")
    http.context.cache_clear()


def test_a_provider_that_nobody_is(tmp_path):
    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        error = (await peer.end(peer.begin("hello")))["error"]["message"]
        assert (
            "no connection to 127.0.0.1: connection refused" in error and "(tried 2 of 2)" in error
        )

    with Server([]) as server:
        project(tmp_path / "p", server.endpoint)
    run(ask, tmp_path / "p")


def test_a_store_that_cannot_be_written_is_told_once(tmp_path):
    async def ask(gateway):
        await gateway.it.store._db.execute("PRAGMA query_only = 1")
        peer = await gateway.peer("shed").connect(gateway.address)
        for _ in range(2):
            assert (await peer.end(peer.begin("hello")))["result"] == {"stop": "stop"}
        # still counted
        assert (
            "tokens_per_day is 150" in (await peer.end(peer.begin("x" * 400)))["error"]["message"]
        )
        assert sum("gateway.db cannot be written" in note for note in gateway.notes) == 1

    with Server(lambda request: say("Fine.")) as server:
        project(tmp_path / "p", server.endpoint, limits="limits: { tokens_per_day: 150 }, ")
        run(ask, tmp_path / "p")


def test_history_and_audit_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(gateway_store, "KEPT_ROWS", 5)
    monkeypatch.setattr(gateway_store, "_EACH", 1)

    async def fill(gateway):
        store = gateway.it.store
        for number in range(9):
            statement = "INSERT INTO audit (time_s, event) VALUES (?, ?)"
            await store._write([(statement, [(number, "x")])])
        rows = await store._db.execute_fetchall("SELECT time_s FROM audit ORDER BY id")
        assert [row[0] for row in rows] == [4, 5, 6, 7, 8]

    project(tmp_path / "p", "http://127.0.0.1:9/v1")
    run(fill, tmp_path / "p")


@pytest.mark.parametrize("size, fits", [(8191, True), (8192, True), (8193, False)])
def test_calls_that_a_device_has_no_room_for(tmp_path, size, fits):
    arguments = {
        "where": "x"
        * (
            size
            - len(
                '{"jsonrpc":"2.0","id":"00c0ffee-1","result":{"stop":"tools","calls":[["call_0_0","look","{\\"where\\": '  # noqa: E501
                '\\"\\"}"]]}}'
            )
        )
    }

    async def ask(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        answer = await peer.end(peer.begin("hello"))
        if fits:
            assert (
                len(peer.seen.splitlines()[-1]) == size + 1
                and json.loads(answer["result"]["calls"][0][2]) == arguments
            )
        else:
            assert (
                answer["error"]["message"]
                == "the answer's tool calls take 8193 bytes, the device 8192 - ask for less at "
                "once, or use another model"
            )

    with Server([calls(("look", arguments))]) as server:
        project(tmp_path / "p", server.endpoint)
        run(ask, tmp_path / "p")


def test_a_device_that_does_not_read_is_let_go(tmp_path):
    async def flood(gateway):
        peer = await gateway.peer("shed").connect(gateway.address)
        await peer.end(peer.begin("hello", provider="none"))  # it is there
        link = gateway.it._listener.peers["shed"]
        for _ in range(2000):  # more than the kernel holds
            link.send(b"1" * 65536)
            if link._transport.is_closing():
                break
        assert link._transport.is_closing()
        while gateway.it.device("shed").is_up:
            await asyncio.sleep(0)

    project(tmp_path / "p", "http://127.0.0.1:9/v1")
    run(flood, tmp_path / "p")


def test_who_says_nothing_is_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr(acceptor, "STRANGER_S", 0.01)

    async def knock(gateway):
        reader, _ = await asyncio.open_connection(*gateway.address.split(":"))
        assert b"auth" in await reader.readline() and await reader.read() == b""

    project(tmp_path / "p", "http://127.0.0.1:9/v1")
    run(knock, tmp_path / "p")


def test_a_device_that_stays_away(tmp_path, monkeypatch, wire):
    """Its call is cancelled at the server; if it comes back all the same, it is told so."""
    tools = [mcp_agents.tool(name, name) for name in ("echo", "sleep")]
    agent = mcp_agents.write(tmp_path, level="board", tools=tools)
    mediated(agent, wire)
    monkeypatch.setattr(device, "AWAY_S", 0.01)

    async def talk(gateway):
        gateway.it.servers._programs.uncontained = {"t"}
        peer = await gateway.peer("shed").connect(gateway.address)
        peer.note("message", id="1", role="tool", text='{"text":"a"}')
        ask = {"jsonrpc": "2.0", "id": "1", "method": "claw.gateway.tool"}
        peer.send({**ask, "params": {"tool": "sleep", "seen": 0}})
        while "tools/call" not in mcp_agents.methods(tmp_path):
            await asyncio.sleep(0.01)
        peer.close()
        while "notifications/cancelled" not in mcp_agents.methods(tmp_path):
            await asyncio.sleep(0.01)
        again = await gateway.peer("shed").connect(gateway.address)
        again.send({**ask, "params": {"tool": "sleep", "seen": 0, "again": True}})
        error = (await again.end("1"))["error"]
        assert "the call was cancelled, because shed was away for 0.01 s" in error["message"]

    run(talk, agent)


def test_a_token_that_cannot_be_kept_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", "/dev/null")
    with pytest.raises(ClawError, match=r"/dev/null/.gateway/tokens/shed: Not a directory") as told:
        gateways.make_token("shed")
    assert told.value.hint == "set $CLAWLITE_STATE to a folder that this user may write to"
