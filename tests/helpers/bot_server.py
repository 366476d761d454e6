"""A Bot API server on loopback: updates that a test gives, and all that a bot asks of it.

It does what the Bot API says of getUpdates: an update is sent until it is confirmed by a higher
offset, and a confirmed one is gone for good; without an offset the earliest unconfirmed ones come.
What it sends and what it takes are held to the types of aiogram (tests/linux/channels/
test_bot_types.py).
"""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME, TOKEN = "garden_bot", "123456:AAE-sample_token"
MOST = 4096  # UTF-16 units of a message
NEEDED = {
    "getMe": (),
    "getUpdates": (),
    "sendMessage": ("chat_id", "text"),
    "sendChatAction": ("chat_id", "action"),
    "setMessageReaction": ("chat_id", "message_id"),
    "answerCallbackQuery": ("callback_query_id",),
    "editMessageText": ("chat_id", "message_id", "text"),
}


class BotServer:
    """``with BotServer(token) as server``.

    sent    parameters of each sendMessage that was taken, in order; asked: [(method, parameters)]
            of all but getMe
    given   all updates that were sent to the bot
    faults  answers that come before all others: [(method, status, body)]
    moved   {old id of a group: its new one}
    """

    def __init__(self, token: str):
        self.token, self.sent, self.asked, self.faults, self._updates = token, [], [], [], []
        self.given, self.moved, self._next = [], {}, 100
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
                with contextlib.suppress(OSError):  # a bot that has ended reads nothing
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

    def message(self, chat: int, text: str = None, person: int = None, **more):
        """Somebody writes: in a private chat, or *person* in the group *chat*."""
        person = chat if person is None else person
        message = {
            "message_id": self._next - 99,
            "date": int(time.time()),
            "from": {"id": person, "is_bot": False, "first_name": "A"},
            "chat": {"id": chat, "type": "private", "first_name": "A"}
            if chat > 0
            else {"id": chat, "type": "supergroup", "title": "Garden"},
        }
        if text is not None:
            message["text"] = text
        self.update(message={**message, **more})

    def tap(self, person: int, button: str, at: int = -1, data: str = None):
        """*person* touches the *button* below the message ``sent[at]``; *data*: what a forged
        client sends in its place.
        """
        below = self.sent[at]
        rows = below["reply_markup"]["inline_keyboard"] if data is None else ()
        found = [one["callback_data"] for row in rows for one in row if one["text"] == button]
        chat = int(below["chat_id"])
        self.update(
            callback_query={
                "id": "%d" % (5000 + self._next),
                "from": {"id": person, "is_bot": False, "first_name": "A"},
                "chat_instance": "77",
                "data": data if data is not None else found[0],
                "message": _message(1001 + (at % len(self.sent)), chat, below["text"]),
            }
        )

    def notices(self) -> list:
        """Return the texts of the answers to taps, in order."""
        return [params.get("text") for name, params in self.asked if name == "answerCallbackQuery"]

    def edits(self) -> list:
        """Return (chat, text) of the messages that were changed, in order."""
        return [
            (params["chat_id"], params["text"])
            for name, params in self.asked
            if name == "editMessageText"
        ]

    def update(self, number: int = None, **what):
        """Something happens; *number*: the id of its update, and the next one follows it."""
        with self._changed:
            self._next = self._next if number is None else number
            self._updates.append({"update_id": self._next, **what})
            self._next += 1
            self._changed.notify_all()

    def _answer(self, path: str, params: dict) -> tuple:
        method = path.removeprefix("/bot%s/" % self.token)
        with self._changed:
            if method != "getMe":
                self.asked.append((method, params))
            for fault in self.faults:
                if fault[0] == method:
                    self.faults.remove(fault)
                    return fault[1:]
            if "/" in method:
                return _refused(401, "Unauthorized")
            if method not in NEEDED:
                return _refused(404, "Not Found")
            missing = [name for name in NEEDED[method] if name not in params]
            if missing:
                return _refused(400, "Bad Request: %s is missing" % missing[0])
            return getattr(self, "_" + method.lower())(params)

    @staticmethod
    def _getme(params: dict) -> tuple:
        bot = {"id": 123456, "is_bot": True, "first_name": "Garden", "username": NAME}
        return 200, {"ok": True, "result": bot}

    def _getupdates(self, params: dict) -> tuple:
        offset, kinds = params.get("offset", 0), params.get("allowed_updates")
        self._updates = [one for one in self._updates if one["update_id"] >= offset]
        wanted = lambda: [
            one for one in self._updates if not kinds or any(kind in one for kind in kinds)
        ][: params.get("limit", 100)]
        self._changed.wait_for(lambda: self._closing or wanted(), min(5, params.get("timeout", 0)))
        self.given += wanted()
        return 200, {"ok": True, "result": wanted()}

    def _sendmessage(self, params: dict) -> tuple:
        chat = int(params["chat_id"])
        if chat in self.moved:
            status, body = _refused(
                400, "Bad Request: group chat was upgraded to a supergroup chat"
            )
            return status, {**body, "parameters": {"migrate_to_chat_id": self.moved[chat]}}
        if not params["text"].strip():
            return _refused(400, "Bad Request: message text is empty")
        if len(params["text"].encode("utf-16-le")) // 2 > MOST:
            return _refused(400, "Bad Request: message is too long")
        self.sent.append(params)
        message = _message(1000 + len(self.sent), chat, params["text"])
        return 200, {"ok": True, "result": message}

    @staticmethod
    def _editmessagetext(params: dict) -> tuple:
        message = _message(params["message_id"], int(params["chat_id"]), params["text"])
        return 200, {"ok": True, "result": message}

    @staticmethod
    def _sendchataction(params: dict) -> tuple:
        return 200, {"ok": True, "result": True}

    _setmessagereaction = _answercallbackquery = _sendchataction


def _message(number: int, chat: int, text: str) -> dict:
    return {
        "message_id": number,
        "date": int(time.time()),
        "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup"},
        "text": text,
    }


def _refused(status: int, description: str) -> tuple:
    return status, {"ok": False, "error_code": status, "description": description}
