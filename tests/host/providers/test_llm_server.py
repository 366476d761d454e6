"""The scripted servers are what they claim: the official clients understand them, and each fault
is the fault it is called.
"""

import http.client
import json
import socket
import ssl
import threading
import urllib.parse

import pytest
from later import Later
from llm_server import FAULTS, HTML, MODEL, PATHS, Server, calls, error, say

from clawlite.core.base.errors import ProviderError
from clawlite.core.net import http1
from clawlite.core.providers import anthropic as anthropic_codec
from clawlite.core.providers import openai as openai_codec
from clawlite.linux.io import jsontext

anthropic, openai = Later("anthropic"), Later("openai")
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}
ASK = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


def openai_client(server):
    return openai.OpenAI(base_url=server.endpoint, api_key="key", max_retries=0)


def anthropic_client(server):
    return anthropic.Anthropic(base_url=server.root, api_key="key", max_retries=0)


def post(server, body: dict, streamed: bool = False, context=None, path: str = None):
    """Return (status, headers, body bytes) as the standard library sees them."""
    connection = (
        http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context)
        if context
        else http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    )
    try:
        connection.request(
            "POST",
            path or PATHS[server.api],
            json.dumps(dict(body, stream=streamed)),
            {
                "Content-Type": "application/json",
                "anthropic-version": "2023-06-01",
                "X-Seen": "yes",
            },
        )
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


# -- the official clients


def test_openai_whole_with_tools():
    with Server(
        [calls(("read_file", {"path": "a"}), ("read_file", {"path": "b"})), say("Both are empty.")]
    ) as server:
        with openai_client(server) as client:
            tools = [{"type": "function", "function": {"name": "read_file", "parameters": TOOL}}]
            messages = [{"role": "user", "content": "Read them"}]
            answer = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
            choice = answer.choices[0]
            assert choice.finish_reason == "tool_calls" and [
                json.loads(c.function.arguments) for c in choice.message.tool_calls
            ] == [{"path": "a"}, {"path": "b"}]
            messages.append(choice.message.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": c.id, "content": ""}
                for c in choice.message.tool_calls
            ]
            answer = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        assert (
            answer.choices[0].message.content == "Both are empty."
            and answer.usage.prompt_tokens == 19
        )
        assert [len(r.body["messages"]) for r in server.requests] == [1, 4]
        assert (
            server.requests[0].headers["authorization"] == "Bearer key"
            and server.requests[0].target == "/v1/chat/completions"
        )


def test_openai_streamed_with_tools():
    with Server(
        [
            say("The soil is dry. \U0001f331"),
            calls(("read_file", {"path": "a"}), ("stop", {}), text="Let me look."),
        ]
    ) as server:
        with openai_client(server) as client:
            ask = {
                "model": MODEL,
                "messages": ASK["messages"],
                "stream": True,
                "stream_options": {"include_usage": True},
            }
            chunks = list(client.chat.completions.create(**ask))
            assert (
                "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
                == "The soil is dry. \U0001f331"
            )
            assert (
                chunks[-2].choices[0].finish_reason == "stop"
                and chunks[-1].usage.completion_tokens == 10
            )
            made = {}
            for chunk in client.chat.completions.create(**ask):
                for call in chunk.choices[0].delta.tool_calls or () if chunk.choices else ():
                    entry = made.setdefault(call.index, ["", "", ""])
                    for at, piece in enumerate(
                        (call.id, call.function.name, call.function.arguments)
                    ):
                        entry[at] += piece or ""
            assert made == {
                0: ["call_2_0", "read_file", '{"path": "a"}'],
                1: ["call_2_1", "stop", "{}"],
            }
            with pytest.raises(openai.InternalServerError, match="the script has 2 steps"):
                client.chat.completions.create(**ask)


def test_anthropic_whole_with_tools():
    with Server(
        [calls(("read_file", {"path": "a"}), text="Let me look."), say("It is empty.")],
        api="anthropic",
    ) as server:
        with anthropic_client(server) as client:
            tools = [{"name": "read_file", "input_schema": TOOL}]
            messages = [{"role": "user", "content": "Read it"}]
            answer = client.messages.create(
                model=MODEL, max_tokens=100, messages=messages, tools=tools
            )
            text, call = answer.content
            assert (answer.stop_reason, text.text, call.name, call.input) == (
                "tool_use",
                "Let me look.",
                "read_file",
                {"path": "a"},
            )
            messages += [
                {"role": "assistant", "content": answer.content},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": call.id, "content": ""}],
                },
            ]
            answer = client.messages.create(
                model=MODEL, max_tokens=100, messages=messages, tools=tools
            )
        assert answer.content[0].text == "It is empty." and answer.usage.output_tokens == 10
        # which header holds the key depends on the client's version
        headers = server.requests[1].headers
        assert headers["anthropic-version"] and "key" in (
            headers.get("x-api-key"),
            headers.get("authorization", "")[7:],
        )


def test_anthropic_streamed_with_tools():
    with Server(
        [
            say("The soil is dry. \U0001f331"),
            calls(("read_file", {"path": "a"}), ("stop", {}), text="Let me look."),
        ],
        api="anthropic",
    ) as server:
        with anthropic_client(server) as client:
            with client.messages.stream(**ASK) as stream:
                assert "".join(stream.text_stream) == "The soil is dry. \U0001f331"
                assert stream.get_final_message().usage.output_tokens == 10
            with client.messages.stream(**ASK) as stream:
                message = stream.get_final_message()
            assert message.stop_reason == "tool_use"
            assert [block.input for block in message.content[1:]] == [
                {"path": "a"},
                {},
            ] and message.content[0].text == "Let me look."


@pytest.mark.parametrize(
    "name, openai_error, anthropic_error",
    [
        ("unauthorized", "AuthenticationError", "AuthenticationError"),
        ("forbidden", "PermissionDeniedError", "PermissionDeniedError"),
        ("no model", "NotFoundError", "NotFoundError"),
        ("busy", "RateLimitError", "RateLimitError"),
        ("failed", "InternalServerError", "InternalServerError"),
        ("close before head", "APIConnectionError", "APIConnectionError"),
        ("reset", "APIConnectionError", "APIConnectionError"),
    ],
)
def test_clients_tell_the_faults_apart(name, openai_error, anthropic_error):
    with (
        Server([FAULTS[name]]) as server,
        openai_client(server) as client,
        pytest.raises(getattr(openai, openai_error)) as caught,
    ):
        client.chat.completions.create(model=MODEL, messages=ASK["messages"])
    assert "body" not in FAULTS[name] or FAULTS[name]["body"]["error"]["message"] in str(
        caught.value
    )
    with (
        Server([FAULTS[name]], api="anthropic") as server,
        anthropic_client(server) as client,
        pytest.raises(getattr(anthropic, anthropic_error)),
    ):
        client.messages.create(**ASK)


# -- the faults, as the standard library sees them


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_faults_that_are_whole_answers(api):
    with Server(
        [
            FAULTS[name]
            for name in ("busy until", "overloaded", "html", "html 502", "empty", "cut json")
        ],
        api=api,
    ) as server:
        status, headers, body = post(server, ASK)
        assert (status, headers["Retry-After"], json.loads(body)["error"]["message"]) == (
            429,
            "7",
            "Rate limit reached.",
        )
        assert post(server, ASK)[0] == 503
        for wanted in (200, 502):
            status, headers, body = post(server, ASK)
            assert (status, headers["Content-Type"], body) == (wanted, "text/html", HTML)
        assert post(server, ASK)[::2] == (200, b"")
        with pytest.raises(ValueError):
            json.loads(post(server, ASK)[2])
        assert (
            len(server.requests) == 6
            and server.requests[0].headers["x-seen"] == "yes"
            and server.requests[0].body == dict(ASK, stream=False)
        )
        assert (
            json.loads(post(server, ASK)[2])["error"]["message"]
            == "the script has 6 steps, and this is request 7"
        )


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_faults_of_connections(api):
    with Server(
        [FAULTS[name] for name in ("close early", "reset", "close before head", "close early")],
        api=api,
    ) as server:
        with pytest.raises(http.client.IncompleteRead):
            post(server, ASK)
        with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
            post(server, ASK, True)
        with pytest.raises(http.client.RemoteDisconnected):
            post(server, ASK)
        with pytest.raises(http.client.IncompleteRead) as cut:
            post(server, ASK, True)
        assert b"think" not in cut.value.partial or b"about" not in cut.value.partial


def test_a_reset_is_a_reset():
    with (
        Server([FAULTS["reset"]]) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as connection,
    ):
        body = json.dumps(ASK).encode()
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: "
            b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        with pytest.raises(ConnectionResetError):
            while connection.recv(65536):
                pass


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "name, streamed",
    [("stall before head", False), ("stall in stream", True), ("stall in stream", False)],
)
def test_stalls_end_with_the_server(api, name, streamed):
    with Server([FAULTS[name]], api=api) as server:
        failed = []
        thread = threading.Thread(
            target=lambda: failed.append(pytest.raises(Exception, post, server, ASK, streamed))
        )
        thread.start()
        assert server.stalled.wait(60)
    thread.join(60)
    assert failed and not thread.is_alive()


def test_streams_wait_for_events():
    gate = threading.Event()
    with Server([{"stream": [b"data: 1\n\n", gate, b"data: 2\n\n"]}]) as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            body = json.dumps(ASK).encode()
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: "
                b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            seen = b""
            while b"data: 1" not in seen:
                seen += connection.recv(1000)
            assert b"data: 2" not in seen
            gate.set()
            while not seen.endswith(b"0\r\n\r\n"):
                seen += connection.recv(1000)
            assert b"data: 2" in seen


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_fifty_megabytes(api):
    with Server([FAULTS["huge"]], api=api) as server:
        status, headers, body = post(server, ASK)
    assert status == 200 and len(body) > 50 << 20 and json.loads(body)


@pytest.mark.parametrize(
    "api, broken", [("openai", '{"path": "notes.txt'), ("anthropic", '{"path": "notes.txt')]
)
def test_faults_of_calls(api, broken):
    names = ("broken arguments", "unknown tool", "duplicate ids", "too many calls", "broken stream")
    with Server([FAULTS[name] for name in names], api=api) as server:
        bodies = [post(server, ASK, True)[2] for _ in names]
    pieces = [
        json.loads(line[6:])
        for line in bodies[0].decode().splitlines()
        if line.startswith("data: {")
    ]
    if api == "openai":
        raw = "".join(
            c["function"]["arguments"]
            for p in pieces
            if p["choices"]
            for c in p["choices"][0]["delta"].get("tool_calls", ())
        )
    else:
        raw = "".join(
            p["delta"]["partial_json"] for p in pieces if p["type"] == "content_block_delta"
        )
    assert raw == broken and b"no_such_tool" in bodies[1]
    assert (
        bodies[2].count(b'"same"') == 2
        and bodies[3].count(b'"read_file"') == 17
        and b"\xff" in bodies[4]
    )


def test_a_callable_makes_every_step():
    with Server(
        lambda request: calls(("read_file", {"path": "round %d" % len(request.body["messages"])}))
    ) as server:
        for _ in range(3):
            assert b"round 1" in post(server, ASK)[2]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "api, messages, words",
    [
        ("openai", [{"role": "tool", "tool_call_id": "x", "content": ""}], "role 'tool'"),
        (
            "openai",
            [
                {"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]},
                {"role": "user", "content": ""},
            ],
            "did not have",
        ),
        (
            "openai",
            [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{"}}]}],
            "messages: ",
        ),
        (
            "anthropic",
            [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
            "alternate",
        ),
        ("anthropic", [{"role": "user", "content": [{"type": "text", "text": " "}]}], "non-empty"),
        (
            "anthropic",
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}],
            "tool_use ids",
        ),
        ("anthropic", [], "required"),
    ],
)
def test_what_the_apis_refuse(api, messages, words):
    with Server([], api=api) as server:
        status, _, body = post(server, dict(ASK, messages=messages))
        assert status == 400 and words in json.loads(body)["error"]["message"]
        assert post(server, ASK, path="/v1/nope")[0] == 404


# -- the project's own codecs, over real sockets


def ask(server, streamed: bool):
    """Return (status, text, answer or None) as the core's codecs see it; raises
    ``ProviderError``.
    """
    codec = {"openai": openai_codec, "anthropic": anthropic_codec}[server.api].Codec(
        jsontext.loads, jsontext.dumps
    )
    body = json.dumps(dict(ASK, stream=streamed)).encode()
    head = http1.request(
        "POST",
        PATHS[server.api],
        "127.0.0.1",
        [("Content-Type", "application/json"), ("anthropic-version", "2023-06-01")],
        len(body),
    )
    response, stream, text, kept, status = http1.Response(), codec.stream(), "", b"", 0
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(head + body)
        while True:
            data = connection.recv(1000)
            response.feed(data) if data else response.at_end()
            event = response.next_event()
            while event is not None:
                if event[0] == "head":
                    status = event[1]
                elif event[0] == "end":
                    return (
                        status,
                        codec.error(status, kept) if status != 200 else text,
                        None if status != 200 else stream.at_end(),
                    )
                elif status == 200:
                    stream.feed(event[1])
                    told = stream.next_event()
                    while told is not None:
                        text += told[1] if told[0] == "text" else ""
                        told = stream.next_event()
                else:
                    kept += event[1]
                event = response.next_event()


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize("streamed", [False, True])
def test_own_codecs(api, streamed):
    steps = [
        say("Hi \U0001f331"),
        calls(("read_file", {"path": "a"}), ("stop", {}), text="Look."),
        FAULTS["unknown tool"],
        FAULTS["no model"],
        FAULTS["html 502"],
    ]
    with Server(steps, api=api) as server:
        status, text, answer = ask(server, streamed)
        assert (text or answer.text, answer.stop, answer.calls, answer.model) == (
            "Hi \U0001f331",
            "stop",
            [],
            MODEL,
        )
        # it was not asked to tell
        assert answer.input_tokens == (None if api == "openai" and streamed else 19)
        status, text, answer = ask(server, streamed)
        assert (text or answer.text, answer.stop) == ("Look.", "tools") and [
            call[1:3] for call in answer.calls
        ] == [("read_file", {"path": "a"}), ("stop", {})]
        assert ask(server, streamed)[2].calls[0][1] == "no_such_tool"
        assert ask(server, streamed)[1] == "HTTP 404: The model `nope` does not exist."
        assert ask(server, streamed)[1] == "HTTP 502: a page of HTML 502 Bad Gateway"


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "name, streamed, words",
    [
        ("html", False, "HTML"),
        ("html", True, "HTML"),
        ("empty", False, "nothing"),
        ("empty", True, "nothing"),
        ("cut json", False, "broken JSON"),
        ("cut json", True, "broken JSON"),
        ("broken stream", True, "broken JSON"),
        ("close before head", False, "before an answer came"),
        ("close early", False, "in the middle"),
        ("close early", True, "in the middle"),
        ("too many calls", True, "more than 16"),
    ],
)
def test_own_codecs_refuse_faults(api, name, streamed, words):
    with Server([FAULTS[name]], api=api) as server, pytest.raises(ProviderError) as caught:
        ask(server, streamed)
    assert words in caught.value.message


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_own_codecs_and_broken_arguments(api):
    with Server([FAULTS["broken arguments"]], api=api) as server:
        assert ask(server, True)[2].calls == [
            ("call_1_0", "read_file", None, '{"path": "notes.txt')
        ]


# -- TLS


@pytest.mark.parametrize(
    "kind, words",
    [
        ("good", None),
        ("expired", "expired"),
        ("self-signed", "self-signed"),
        ("wrong host", "IP address mismatch"),
    ],
)
def test_certificates(kind, words):
    with Server([say("Hi.")], tls=kind) as server:
        context = ssl.create_default_context(cafile=server.ca_file)
        assert urllib.parse.urlsplit(server.endpoint).scheme == "https"
        if words is None:
            assert b"Hi." in post(server, ASK, context=context)[2]
        else:
            with pytest.raises(ssl.SSLCertVerificationError, match=words):
                post(server, ASK, context=context)
            assert server.requests == []
        with pytest.raises(ssl.SSLCertVerificationError):
            # who does not know the authority
            post(server, ASK, context=ssl.create_default_context())


def test_clients_over_tls(monkeypatch):
    with Server([say("Hi.", headers=[("X-Request-Id", "r1")])], tls=True) as server:
        monkeypatch.setenv("SSL_CERT_FILE", server.ca_file)
        with openai_client(server) as client:
            assert (
                client.chat.completions.create(model=MODEL, messages=ASK["messages"])
                .choices[0]
                .message.content
                == "Hi."
            )


def test_a_peer_that_speaks_no_tls_or_says_nothing():
    with Server([], tls=True) as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while connection.recv(100):
                pass
        silent = socket.create_connection(("127.0.0.1", server.port), 10)
    silent.close()
    assert server.failed and error(500, "x")["status"] == 500
