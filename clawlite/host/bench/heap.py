"""The smallest heap of a board's turn with a remote provider: it streams a call of one tool, then
12 KB of text.

The server is this process' own: what is measured is no time.
"""

import json
import socketserver
import threading

from clawlite.host.bench.agent import write_files
from clawlite.host.bench.micropython import STEPS, Board
from clawlite.host.bench.run import build

TEXT = "The garden is green. " * 600
_ARGUMENTS = '{"where":"bed 2"}'
_CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: board, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You keep a garden.", autonomy: autonomous } }
  providers:
    - inline: { name: remote, protocol: %s, endpoint: "http://127.0.0.1:%d/v1", model: m, streaming: true,
                auth: { type: bearer, secret_ref: BOARD_KEY } }
  sandbox: { inline: { level: none } }
  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }] } }]
"""  # noqa: E501
_TOOLS = '''def look(where: str) -> dict:
    """Look somewhere."""
    return {"where": where, "seen": 3}
'''


def chunk(delta: dict, reason: str | None = None) -> dict:
    """Return one event of an OpenAI-compatible server."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def _openai(text: str = TEXT) -> tuple:
    """Return (events of the call, events of *text*) as an OpenAI-compatible server streams them."""

    call = {
        "tool_calls": [
            {
                "index": 0,
                "id": "call_1",
                "type": "function",
                "function": {"name": "look", "arguments": _ARGUMENTS},
            }
        ]
    }
    return [chunk(call), chunk({}, "tool_calls")], [
        chunk({"content": part}) for part in _parts(text)
    ] + [chunk({}, "stop")]


def _anthropic(text: str = TEXT) -> tuple:
    """Return the same as the Messages API streams it."""

    def answer(block, deltas, reason):
        yield {
            "type": "message_start",
            "message": {
                "id": "m1",
                "role": "assistant",
                "model": "m",
                "content": [],
                "usage": {"input_tokens": 9},
            },
        }
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 9},
        }
        yield {"type": "message_stop"}

    call = answer(
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
        [{"type": "input_json_delta", "partial_json": _ARGUMENTS}],
        "tool_use",
    )
    said = answer(
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": part} for part in _parts(text)],
        "end_turn",
    )
    return list(call), list(said)


def _parts(text: str) -> list:
    # of the size that models send
    return [text[at : at + 12] for at in range(0, len(text), 12)]


APIS = (
    ("OpenAI-compatible", "openai-compatible", _openai),
    ("Anthropic", "anthropic-native", _anthropic),
)


class Server(socketserver.ThreadingTCPServer):
    """Answers, in a thread of its own until it is closed, with the call, and with the text when a
    request's last message is the call's result.

    context  ssl.SSLContext of a server that speaks TLS; None: plain http
    """

    daemon_threads = True
    _is_served = False  # a port that cannot be had closes it before

    def __init__(self, call: list, text: list, context=None):
        super().__init__(("127.0.0.1", 0), _Connection)
        self.context = context
        self.answers = [
            b"".join(
                b"event: %s\ndata: %s\n\n"
                % (event.get("type", "message").encode(), json.dumps(event).encode())
                for event in events
            )
            for events in (call, text)
        ]
        self._is_served = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self):
        if self._is_served:
            self.shutdown()
        super().server_close()


class _Connection(socketserver.StreamRequestHandler):
    def setup(self):
        if self.server.context:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self):
        size = 0
        for line in iter(self.rfile.readline, b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        body = self.rfile.read(size)
        answer = self.server.answers[b"seen" in body[body.rfind(b'"role"') :]]
        try:
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: "
                b"close\r\n\r\n" + answer
            )
        except OSError:  # the heap was too small: whoever asked has left
            pass


def project(folder: str, protocol: str, port: int, ca_file: str = "") -> None:
    """Write an agent with one tool and a provider on *port* of this machine into *folder*.

    ca_file  of the authority that the provider's certificate is held to; "": plain http
    """
    claw, settings = _CLAW % (protocol, port), ""
    if ca_file:
        claw = claw.replace("http://127.0.0.1", "https://localhost")
        settings = f"[tls]\nca = {json.dumps([ca_file])}\n"
    write_files(folder, {"claw.yaml": claw, "tools.py": _TOOLS, "clawlite.toml": settings})


def turns(bench):
    """Yield a row for each API."""
    board = Board(bench)
    for name, protocol, events in APIS:
        with Server(*events()) as server:
            folder = bench.make(protocol)
            project(folder, protocol, server.server_address[1])
            heap = board.smallest(
                [board.start(), build(folder)],
                TEXT.strip().encode(),
                b"how is it?\n",
                BOARD_KEY="key",
            )
        yield board.row(
            f"smallest heap for a turn, {name}",
            "KiB",
            [heap],
            f"streamed over a socket, one tool call, an answer of {len(TEXT)} bytes; {STEPS}",
        )
