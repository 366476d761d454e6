"""An MCP server over Streamable HTTP for tests that sends what nobody asked for
(tests/helpers/hostile_mcp.py); it runs in the process of the test.

    with HostileRemote(seed, breaks, is_stateless) as server:
        server.url, server.hostile
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../core"))
from hostile_mcp import Hostile  # noqa: E402
from line_wire import Dice  # noqa: E402

HEADERS = (
    ("Mcp-Session-Id", "s-1"),
    ("MCP-Protocol-Version", "1999-01-01"),
    ("Retry-After", "-1"),
    ("Location", "/elsewhere"),
    ("WWW-Authenticate", 'Bearer resource_metadata="http://127.0.0.1:1/"'),
    ("Set-Cookie", "a=b"),
    ("X-None", "\x7f"),
)


class HostileRemote:
    def __init__(self, seed: int, breaks: str = "", is_stateless: bool = True):
        self.hostile, self._dice = Hostile(seed, breaks), Dice(seed)
        self.hostile.is_stateless, self.hostile.asks = is_stateless, False
        self._lock, self._gone = threading.Lock(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer._answer(self, json.loads(body))

            def do_GET(self):
                outer._end(self, 405)

            do_DELETE = do_GET

        class Server(ThreadingHTTPServer):
            daemon_threads = False

            def handle_error(self, request, client):
                pass  # who asked has gone

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/mcp" % self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self._gone.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # -- in the server's threads

    def _answer(self, one, message: dict):
        with self._lock:
            replies = self.hostile.replies(message)
            headers = [each for each in HEADERS if self._dice.below(4) == 0]
            is_stream = self._dice.below(4) > 0
        if "id" not in message or "method" not in message:
            self._end(one, 202)
            return
        if not is_stream and len(replies) == 1:
            self._end(one, 200, json.dumps(replies[0]).encode(), headers)
            return
        one.send_response(200)
        for header in headers:
            one.send_header(*header)
        one.send_header("Content-Type", "text/event-stream")
        one.end_headers()
        one.close_connection = True
        for reply in replies:
            one.wfile.write(b"id: 1\nretry: 5\ndata: %s\n\n" % json.dumps(reply).encode())
            one.wfile.flush()
        if message["method"] == "subscriptions/listen":
            self._gone.wait()

    def _end(self, one, status: int, body: bytes = b"", headers=()):
        one.send_response(status)
        for header in headers:
            one.send_header(*header)
        one.send_header("Content-Type", "application/json")
        one.send_header("Content-Length", str(len(body)))
        one.end_headers()
        one.wfile.write(body)
