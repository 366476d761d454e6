"""An MCP server over Streamable HTTP for tests, which does one thing wrong; it runs in the process
of the test.

    with Remote("redirect", to=URL) as server:
        server.url, server.asked    [(verb, path, headers, message or None), ...]

WHAT it does wrong:

answer status       NUMBER: that status to a call            html      a page, with 400
redirect  to TO (307), whatever is asked        moved     its path has moved, on itself (307)
silent    it answers no call                              neither   it speaks neither era
cut       its answer to a call ends in the middle         lost      its stream ends before it
flood     events without end, in answer to a call         huge      a result of 50 MB
stranger  it answers a call under another id              expired   it forgets its session, once
down      it closes each connection, while ``is_down``    new       it speaks the newer era
changed   another description, once ``changed`` is set
deaf      it never answers the end of a session
nostream  its tools change, and a GET is 404, as where only POST has a route
old       it speaks HTTP+SSE, the transport of 2024-11-05; closed: no POST and no GET are taken;
          mute: no POST, and a GET is never answered; page: no POST, with 403
forgets   it begins a session, and does not know it in the next request
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Remote:
    def __init__(self, *what, to: str = ""):
        self.what, self.to, self.asked = what, to, []
        self.is_down = self.changed = False
        self.sessions, self.expired = [], False
        self.gone = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.answer(self, "POST", json.loads(body))

            def do_GET(self):
                outer.answer(self, "GET", None)

            def do_DELETE(self):
                outer.answer(self, "DELETE", None)

        class Server(ThreadingHTTPServer):
            daemon_threads = False

            def handle_error(self, request, client):
                pass  # who asked has gone

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = "http://127.0.0.1:%d/mcp" % self.port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self.gone.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def methods(self) -> list:
        return [message["method"] for _, _, _, message in self.asked if message]

    # -- answers, in the server's threads

    def answer(self, one, verb: str, message):
        self.asked.append((verb, one.path, dict(one.headers.items()), message))
        if self.is_down:
            one.close_connection = True
        elif verb == "POST" and {"old", "closed", "mute", "page"} & set(self.what):
            self.say(one, 403 if "page" in self.what else 405)
        elif verb == "GET" and "mute" in self.what:
            self.gone.wait()
        elif verb == "GET" and "old" in self.what:
            one.send_response(200)
            one.send_header("Content-Type", "text/event-stream")
            one.end_headers()
            one.close_connection = True
            one.wfile.write(b"event: endpoint\ndata: /messages?session_id=1\n\n")
        elif "redirect" in self.what:
            self.say(one, 307, b"", [("Location", self.to)])
        elif "moved" in self.what and one.path == "/mcp":
            self.say(one, 307, b"", [("Location", "/mcp/")])
        elif "forgets" in self.what and "Mcp-Session-Id" in one.headers:
            self.say(one, 404)
        elif verb == "GET" and "nostream" in self.what:
            self.say(one, 404)
        elif verb == "DELETE" and "deaf" in self.what:
            self.gone.wait()
        elif verb != "POST":
            self.say(one, 405)
        elif "id" not in message:
            self.say(one, 202)
        else:
            self.request(one, message)

    def request(self, one, message: dict):
        method, headers = message["method"], []
        result = error = None
        if method == "server/discover" and "new" in self.what:
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        elif method == "initialize" and "neither" not in self.what:
            self.sessions.append("session-%d" % len(self.sessions))
            headers = [("Mcp-Session-Id", self.sessions[-1])]
            offered = {"tools": {"listChanged": "nostream" in self.what}}
            result = {"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": {}}
        elif method in ("tools/list", "tools/call"):
            if "new" not in self.what and one.headers["Mcp-Session-Id"] != self.sessions[-1]:
                self.say(one, 400)
                return
            result = self.listed()
            if method == "tools/call":
                result = self.called(one, message)
        else:
            error = {"code": -32601, "message": "not found"}
        if result is None and error is None:
            return
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        answer["result" if error is None else "error"] = result if error is None else error
        self.say(one, 200, json.dumps(answer).encode(), headers)

    def listed(self) -> dict:
        about = "Give a text back." + (" And more." if self.changed else "")
        named = dict(SCHEMA["properties"]["text"])
        schema = {**SCHEMA, "properties": {"text": named}}
        if "new" in self.what:
            named["x-mcp-header"] = "Text"
        return {"tools": [{"name": "echo", "description": about, "inputSchema": schema}]}

    def called(self, one, message: dict):
        """Return a result, or None when all was said."""
        text = message["params"]["arguments"]["text"]
        what = [
            name for name in self.what if name not in ("new", "moved", "changed", "down", "deaf")
        ]
        if "expired" in what and not self.expired:
            self.expired = True
            self.say(one, 404)
            return None
        if what and what[0].isdigit():
            self.say(one, int(what[0]))
            return None
        if "html" in what:
            self.say(one, 400, b"<html>Bad gateway</html>", [], "text/html")
            return None
        if "silent" in what:
            self.gone.wait()
            return None
        if "cut" in what or "lost" in what or "flood" in what:
            self.stream(one, message, what[0])
            return None
        if "huge" in what:
            text = "x" * 50_000_000
        if "stranger" in what:
            answer = {"jsonrpc": "2.0", "id": 4711, "result": {"content": []}}
            self.say(one, 200, json.dumps(answer).encode())
            return None
        return {"content": [{"type": "text", "text": text}]}

    def stream(self, one, message: dict, what: str):
        one.send_response(200)
        one.send_header("Content-Type", "text/event-stream")
        if what == "cut":
            one.send_header("Content-Length", "1000")
        one.end_headers()
        one.close_connection = True
        said = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}
        event = b"event: message\ndata: " + json.dumps(said).encode() + b"\n\n"
        one.wfile.write(event)
        while what == "flood" and not self.gone.is_set():
            one.wfile.write(event * 100)

    def say(self, one, status: int, body: bytes = b"", headers=(), kind="application/json"):
        one.send_response(status)
        for name, value in headers:
            one.send_header(name, value)
        one.send_header("Content-Type", kind)
        one.send_header("Content-Length", str(len(body)))
        one.end_headers()
        one.wfile.write(body)
