"""A Bot API server on loopback: updates that a test gives, and all that a bot asks of it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class BotServer:
    """``with BotServer(token) as server``.

    sent    parameters of each sendMessage that was taken, in order; asked: [(method, parameters)]
            of all
    faults  answers that come before all others: [(method, status, body)]
    """

    def __init__(self, token: str):
        self.token, self.sent, self.asked, self.faults, self._updates = token, [], [], [], []
        self._changed, self._closing = threading.Condition(), False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                params = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, body = outer._answer(self.path, params)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self._server.server_address[1]

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def message(self, chat: int, text: str = None, **more):
        """A person writes."""
        with self._changed:
            message = dict(
                {"message_id": 1, "chat": {"id": chat, "type": "private"}},
                **({"text": text} if text is not None else {}),
                **more,
            )
            self._updates.append({"update_id": 100 + len(self._updates), "message": message})
            self._changed.notify_all()

    def _answer(self, path: str, params: dict) -> tuple:
        method = path.removeprefix("/bot%s/" % self.token)
        with self._changed:
            self.asked.append((method, params))
            for fault in self.faults:
                if fault[0] == method:
                    self.faults.remove(fault)
                    return fault[1:]
            if "/" in method:
                return 401, {"ok": False, "error_code": 401, "description": "Unauthorized"}
            if method == "getUpdates":
                self._changed.wait_for(lambda: self._closing or self._since(params["offset"]), 5)
                return 200, {"ok": True, "result": self._since(params["offset"])}
            if method == "sendMessage":
                self.sent.append(params)
            return 200, {"ok": True, "result": True}

    def _since(self, offset: int) -> list:
        return [update for update in self._updates if update["update_id"] >= offset]
