"""Servers on loopback that answer like providers of LLMs, as a script says: real HTTP, plain and
TLS.

    with Server([say("Hi."), calls(("water", {"seconds": 3})), FAULTS["html"]], api="anthropic") as
    server:
        ...  server.endpoint, server.requests, server.stalled.wait(5)

A request takes the next step of the script; a step is a dict, or a callable that makes one from the
``Request``.

    text, calls, stop   an answer: in the API's own form, as a stream when the request asks for one
    read, written       tokens that it is said to have used, OpenAI's form alone
    status, headers     when it is not 200; a list of (name, value)
    body                bytes, an object that is sent as JSON, or an iterable of bytes
    stream              list of bytes and ``threading.Event``: chunks, and what is waited for before
                        the next
    stall               "head": nothing is sent; "stream": nothing after the stream's chunks; until
                        the test ends
    end                 "close": the connection ends before the body does, or instead of an answer;
                        "reset": with a reset

tests/host/providers/test_llm_server.py holds it to what the official clients understand.
"""

import datetime
import functools
import http.server
import itertools
import json
import select
import shutil
import socket
import ssl
import struct
import tempfile
import threading
from collections import namedtuple
from pathlib import Path

# what a person is told to do about a provider whose limit is reached
WHEN_SPENT = " Next: raise that limit, or wait until its hour or day is over.\n"
# paths of any API at which a script alone decides: where access tokens come from, and embeddings
TOKENS = "/token"
EMBEDDINGS = "/embeddings"
WAIT_S = 120  # the longest wait: a test that hangs must fail with a message
MODEL = "test-model"
HTML = (
    b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad "
    b"Gateway</h1></body></html>\n"
)
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}

# headers: names in lower case; body: JSON's value, or bytes; raw: the bytes that were sent
Request = namedtuple("Request", "method target headers body raw", defaults=[b""])


def url_of(server) -> str:
    """Return the URL of the requests to *server*, a ``Server`` or (API, endpoint)."""
    api, endpoint = server if isinstance(server, tuple) else (server.api, server.endpoint)
    return endpoint + PATHS[api][3:]


def when_away(server) -> str:
    """Return what a person is told to do about a provider that is away."""
    return " Next: wait, check that the network and %s are up, and send it again.\n" % url_of(
        server
    )


def when_wrong(server) -> str:
    """Return what a person is told to do about a provider that answers wrong."""
    return " Next: check that the provider's protocol is that of %s.\n" % url_of(server)


def when_silent(server) -> str:
    """Return what a person is told to do about a provider whose first word does not come."""
    return (
        " Next: wait longer for the first word of %s: raise [answer] first_byte_ms in "
        "clawlite.toml, or use a smaller model.\n" % url_of(server)
    )


# -- steps


def say(text: str, **more) -> dict:
    return dict(text=text, **more)


def calls(*wanted, **more) -> dict:
    """Return a step that calls tools: each (name, arguments) or (name, arguments, id); arguments
    a dict, or text that is sent as it is.
    """
    return dict(calls=wanted, **more)


def error(status: int, message: str, kind: str = "invalid_request_error", headers=()) -> dict:
    return {
        "status": status,
        "headers": headers,
        "body": {"type": "error", "error": {"type": kind, "message": message}},
    }


def _huge(request: Request):
    """An answer of 50 MB, made as it is sent."""
    start, end = (
        (
            b'{"type":"message","role":"assistant","content":[{"type":"text","text":"',
            b'"}],"stop_reason":"end_turn"}',
        )
        if request.target.endswith("/messages")
        else (
            b'{"choices":[{"index":0,"message":{"role":"assistant","content":"',
            b'"},"finish_reason":"stop"}]}',
        )
    )
    return {"body": itertools.chain([start], itertools.repeat(b"x" * 1048576, 50), [end])}


def _broken_stream(request: Request) -> dict:
    return {"stream": [b'event: message_start\ndata: {"type":\n\n', b"\xff\xfe\n\ndata: }{\n\n"]}


FAULTS = {
    "unauthorized": error(401, "Incorrect API key provided.", "authentication_error"),
    "forbidden": error(403, "Your key may not use this.", "permission_error"),
    "no model": error(404, "The model `nope` does not exist.", "not_found_error"),
    "busy": error(429, "Rate limit reached.", "rate_limit_error"),
    "busy until": error(429, "Rate limit reached.", "rate_limit_error", [("Retry-After", "7")]),
    "failed": error(500, "Internal server error.", "api_error"),
    "overloaded": error(503, "Overloaded.", "overloaded_error"),
    "html": {"headers": [("Content-Type", "text/html")], "body": HTML},
    "html 502": {"status": 502, "headers": [("Content-Type", "text/html")], "body": HTML},
    "empty": {"body": b""},
    "cut json": {"body": b'{"id":"x","choices":[{"message":{"con'},
    "huge": _huge,
    "broken stream": _broken_stream,
    "stall before head": {"stall": "head"},
    "stall in stream": {"text": "Let me think about", "stall": "stream"},
    "close before head": {"end": "close"},
    "close early": {"text": "Let me think about", "end": "close"},
    "reset": {"text": "Let me think about", "end": "reset"},
    "broken arguments": calls(("read_file", '{"path": "notes.txt')),
    "unknown tool": calls(("no_such_tool", {"x": 1})),
    "duplicate ids": calls(
        ("read_file", {"path": "a"}, "same"), ("read_file", {"path": "b"}, "same")
    ),
    "too many calls": calls(*[("read_file", {"path": "%d" % i}) for i in range(17)]),
}


# -- answers in the form of each API


def _pieces(text: str, size: int = 7) -> list:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _raw(arguments) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def openai_answer(step: dict, model: str, streamed: bool, include_usage: bool):
    """Return the whole answer, or the list of a stream's chunks."""
    wanted = step.get("calls", ())
    reason = step.get("stop") or ("tool_calls" if wanted else "stop")
    read, written = step.get("read", 19), step.get("written", 10)
    usage = {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }
    head = {
        "id": "chatcmpl-1",
        "created": 1741569952,
        "model": model,
        "object": "chat.completion" + ".chunk" * streamed,
    }
    made = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": raw}}
        for name, raw, key in wanted
    ]
    if not streamed:
        message = {"role": "assistant", "content": step.get("text"), "refusal": None}
        if made:
            message["tool_calls"] = made
        return dict(
            head,
            choices=[{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            usage=usage,
        )
    deltas = [{"role": "assistant", "content": ""}] + [
        {"content": piece} for piece in _pieces(step.get("text") or "")
    ]
    for index, call in enumerate(made):
        raw = call["function"]["arguments"]
        deltas.append(
            {
                "tool_calls": [
                    dict(
                        call,
                        index=index,
                        function={"name": call["function"]["name"], "arguments": ""},
                    )
                ]
            }
        )
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(raw)
        ]
    chunks = [
        dict(head, choices=[{"index": 0, "delta": delta, "finish_reason": None}])
        for delta in deltas
    ]
    chunks.append(dict(head, choices=[{"index": 0, "delta": {}, "finish_reason": reason}]))
    if include_usage:
        chunks.append(dict(head, choices=[], usage=usage))
    return [b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks] + [
        b"data: [DONE]\n\n"
    ]


def anthropic_answer(step: dict, model: str, streamed: bool, _):
    wanted = step.get("calls", ())
    reason = step.get("stop") or ("tool_use" if wanted else "end_turn")
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 19, "output_tokens": 1},
    }
    if not streamed:
        blocks = [{"type": "text", "text": step["text"]}] if step.get("text") else []
        blocks += [
            {"type": "tool_use", "id": key, "name": name, "input": _loaded(raw)}
            for name, raw, key in wanted
        ]
        return dict(
            message,
            content=blocks,
            stop_reason=reason,
            usage={"input_tokens": 19, "output_tokens": 10},
        )
    events = [{"type": "message_start", "message": message}, {"type": "ping"}]
    parts = (
        [({"type": "text", "text": ""}, "text_delta", "text", step["text"])]
        if step.get("text")
        else []
    )
    parts += [
        (
            {"type": "tool_use", "id": key, "name": name, "input": {}},
            "input_json_delta",
            "partial_json",
            raw,
        )
        for name, raw, key in wanted
    ]
    for index, (block, kind, member, text) in enumerate(parts):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: piece}}
            for piece in _pieces(text)
        ]
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 10},
        }
    )
    events.append({"type": "message_stop"})
    return [
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    ]


def _loaded(raw: str):
    try:
        return json.loads(raw)
    # a whole answer cannot hold broken JSON: it has the wrong type instead
    except ValueError:
        return raw


ANSWERS = {"openai": openai_answer, "anthropic": anthropic_answer}


def problem(api: str, request: Request) -> str:
    """Return what the API itself would refuse in *request*, or ""."""
    body = request.body
    if request.method != "POST" or request.target.partition("?")[0] != PATHS[api]:
        return "no such page: %s %s" % (request.method, request.target)
    if request.headers.get("content-type", "").partition(";")[
        0
    ] != "application/json" or not isinstance(body, dict):
        return "expected a JSON object of type application/json"
    if api == "anthropic" and not (
        "anthropic-version" in request.headers and isinstance(body.get("max_tokens"), int)
    ):
        return "anthropic-version and max_tokens are required"
    if (
        not isinstance(body.get("model"), str)
        or not isinstance(body.get("messages"), list)
        or not body["messages"]
    ):
        return "model and messages are required"
    try:
        return (
            openai_history(body["messages"])
            if api == "openai"
            else anthropic_history(body["messages"])
        )
    except (KeyError, TypeError, ValueError) as wrong:
        return "messages: %r" % wrong


def openai_history(messages: list) -> str:
    waiting = []
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return (
                    "messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'"
                )
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return "tool_call_ids did not have response messages: " + ", ".join(waiting)
        for call in message.get("tool_calls", ()):
            json.loads(call["function"]["arguments"])
            waiting.append(call["id"])
    return "tool_call_ids did not have response messages: " + ", ".join(waiting) if waiting else ""


def anthropic_history(messages: list) -> str:
    waiting, role = [], "assistant"
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == role or message["role"] not in ("user", "assistant"):
            return "messages: roles must alternate between user and assistant"
        if not blocks or any(
            block["type"] == "text" and not block["text"].strip() for block in blocks
        ):
            return "messages: text content blocks must be non-empty"
        role = message["role"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            return (
                "tool_use ids were found without tool_result blocks immediately after, or the "
                "other way round"
            )
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if any(
            not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"
        ):
            return "tool_use.input: Input should be a valid dictionary"
    return "tool_use ids were found without tool_result blocks" if waiting else ""


# -- the servers


@functools.lru_cache(maxsize=None)
def _authority():
    import trustme

    return trustme.CA()


def _context(kind: str) -> ssl.SSLContext:
    """Return the TLS context of a server: its certificate is "good", "expired", "self-signed" or
    for the "wrong host".
    """
    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if kind == "self-signed":
        with tempfile.TemporaryDirectory() as folder:
            own = trustme.CA()
            path = Path(folder, "own.pem")
            path.write_bytes(own.private_key_pem.bytes() + own.cert_pem.bytes())
            context.load_cert_chain(path)
        return context
    day = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    dates = (
        {"not_before": day, "not_after": day + datetime.timedelta(1)} if kind == "expired" else {}
    )
    names = {
        "good": ("localhost", "127.0.0.1"),
        "expired": ("localhost", "127.0.0.1"),
        "wrong host": ("example.test",),
    }[kind]
    _authority().issue_cert(*names, **dates).configure_cert(context)
    return context


class Server(http.server.ThreadingHTTPServer):
    """One server, as a context manager; leaving it ends every connection, and waits for the
    threads.

    script    list of steps, or one callable that makes every step
    tls       False, or the kind of certificate (True: "good"); ``ca_file`` is what a client may
              trust then
    api       "openai" or "anthropic"
    endpoint  URL up to and with /v1; requests: list of ``Request``; stalled: an Event, set when a
              step stalls; gone: another, set when its client hangs up meanwhile
    failed    list of what went wrong in TLS handshakes and in sending, as text
    """

    daemon_threads = False  # server_close() waits for them
    request_queue_size = 16

    models = ()  # what GET /v1/models lists; asked for beside the script

    def __init__(self, script, tls=False, api: str = "openai"):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.api = script, api
        self.requests, self.failed, self._open, self._gates = [], [], set(), []
        self.stalled, self.gone, self.stopping, self.lock = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
            threading.Lock(),
        )
        self.port = self.server_address[1]
        self.root = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)
        self.endpoint = self.root + "/v1"
        self._tls = _context("good" if tls is True else tls) if tls else None

    def __enter__(self):
        self._folder = tempfile.mkdtemp()
        if self._tls:
            self.ca_file = self._folder + "/ca.pem"
            _authority().cert_pem.write_to_path(self.ca_file)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        with self.lock:
            self.stopping.set()
            for gate in self._gates:
                gate.set()
            for connection in self._open:
                _quietly(connection.shutdown, socket.SHUT_RDWR)
        self._thread.join()
        self.server_close()
        shutil.rmtree(self._folder)

    def finish_request(self, request, client_address):
        connection = request
        with self.lock:
            if self.stopping.is_set():
                return
            self._open.add(request)
        try:
            if self._tls:
                connection = self._tls.wrap_socket(request.dup(), server_side=True)
            _Handler(connection, client_address, self)
        except OSError as failure:  # ssl.SSLError is one
            self.failed.append(str(failure))
        finally:
            with self.lock:
                self._open.discard(request)
            if connection is not request:
                _quietly(connection.close)

    def shutdown_request(self, request):
        # A connection to be reset has SO_LINGER of 0 s; shutdown() would send an orderly end first.
        if not struct.unpack("ii", request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))[0]:
            _quietly(request.shutdown, socket.SHUT_WR)
        self.close_request(request)

    def wait(self, gate: threading.Event) -> None:
        """Wait until a test sets *gate*, or the server ends."""
        with self.lock:
            if self.stopping.is_set():
                return
            self._gates.append(gate)
        if not gate.wait(WAIT_S):
            raise OSError("nobody set what a stream waited for")

    def take(self, request: Request) -> dict:
        """Record *request* and return its step."""
        with self.lock:
            number = len(self.requests)
            self.requests.append(request)
        wrong = (
            problem(self.api, request) if not request.target.endswith((TOKENS, EMBEDDINGS)) else ""
        )
        if wrong:
            return error(404 if "no such page" in wrong else 400, wrong)
        if callable(self.script):
            return self.script(request)
        if number >= len(self.script):
            return error(
                500,
                "the script has %d steps, and this is request %d" % (len(self.script), number + 1),
            )
        step = self.script[number]
        return step(request) if callable(step) else step


def _quietly(function, *arguments) -> None:
    try:
        function(*arguments)
    except OSError:
        pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = WAIT_S

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(
            self.command,
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            _value(body),
            body,
        )
        if request.method == "GET" and request.target.endswith("/models"):
            listed = {
                "body": {"object": "list", "data": [{"id": name} for name in self.server.models]}
            }
            return self._answer(
                listed if self.server.models else error(404, "no such page"), request
            )
        step = self.server.take(request)
        if step.get("stall") == "head":
            self._stall()
        else:
            self._answer(step, request)

    do_GET = do_PUT = do_POST

    def _answer(self, step: dict, request: Request):
        if not {"text", "calls", "stream", "body"} & set(step) and "end" in step:
            return self._end(step)
        kind, body, stream = "application/json", step.get("body", b""), step.get("stream")
        if "text" in step or "calls" in step:
            streamed = bool(request.body.get("stream"))
            wanted = [
                (
                    call[0],
                    _raw(call[1]),
                    call[2] if len(call) > 2 else "call_%d_%d" % (len(self.server.requests), index),
                )
                for index, call in enumerate(step.get("calls", ()))
            ]
            made = ANSWERS[self.server.api](
                dict(step, calls=wanted),
                request.body["model"],
                streamed,
                (request.body.get("stream_options") or {}).get("include_usage"),
            )
            stream, body = (made, b"") if streamed else (None, made)
        if stream is not None:
            kind = "text/event-stream"
            body = (
                stream[: len(stream) // 2]
                if ("end" in step or "stall" in step) and "stream" not in step
                else stream
            )
        elif isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self._send(step, kind, body)

    def _send(self, step: dict, kind: str, body) -> None:
        headers = dict({"Content-Type": kind}, **dict(step.get("headers", ())))
        self.send_response(step.get("status", 200))
        whole = isinstance(body, bytes)
        headers.update(
            {"Content-Length": str(len(body))} if whole else {"Transfer-Encoding": "chunked"}
        )
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in (
            [body[: len(body) // 2] if "end" in step or "stall" in step else body]
            if whole
            else body
        ):
            if isinstance(piece, threading.Event):
                self.server.wait(piece)
            elif piece:
                self.wfile.write(piece if whole else b"%x\r\n%s\r\n" % (len(piece), piece))
        if "stall" in step:
            self._stall()
        elif "end" in step:
            self._end(step)
        elif not whole:
            self.wfile.write(b"0\r\n\r\n")

    def _stall(self):
        self.server.stalled.set()
        while not self.server.stopping.is_set():
            readable = select.select([self.connection], [], [], 0.02)[0]
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self.server.gone.set()
                break
        self.close_connection = True

    def _end(self, step: dict):
        self.close_connection = True
        if step["end"] == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _value(body: bytes):
    try:
        return json.loads(body)
    except ValueError:
        return body
