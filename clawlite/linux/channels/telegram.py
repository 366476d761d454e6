"""Channels of type telegram: long polling of the Bot API (CKP 0.2.0, 5.3; docs/channels.md).

1. One request at a time asks for updates.  The answers of turns are sent at the same time, in order
   for each chat.
2. The offset is saved before any update is acted on.  So no message is answered twice after a
   restart, but a message whose turn was under way gets no answer.
3. The token is in the path of each request and nowhere else: no error and no log contains it.
4. Actors are ids of chats.  With ``threads``, a message in a topic of a group is answered in that
   topic.
5. ``read_receipts``: the Bot API has none, so a message that was accepted gets a reaction.
"""

from collections import deque

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.net.http1 import EVENT_DATA, EVENT_KIND, EVENT_STATUS, Response, request
from clawlite.linux.channels.access import RECEIPTS, THREADS, TYPING
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.net.connections import Connections
from clawlite.linux.secrets.secrets import resolve, stores

POLL_S = 50  # after this time Telegram answers although there are no updates
SILENCE_MS = 70000  # after this time without an answer, the request is sent again
CONNECT_MS = 10000
MOST = 4096  # UTF-16 units of a message (Bot API, sendMessage)
MAX_BODY = 1 << 20
MAX_WAITING = 1000  # messages that wait to be sent
MAX_UPDATES = 100
SEEN = "\U0001f440"  # two eyes, one of the reactions that a bot may give
TYPING_MS = 5000  # a typing indicator lasts so long (Bot API, sendChatAction)
_PAUSES_MS = (1000, 2000, 5000, 15000, 60000)
_TRIES = 4


class PendingRequest:
    """One request under way: its method, its parameters, and the part of the answer received."""

    def __init__(self, method: str, params: dict, due_ms: int, tries: int = 0):
        self.method, self.params, self.due_ms, self.tries = method, params, due_ms, tries
        self.response, self.status, self.body = Response(), 0, b""


class Telegram:
    """One bot.

    channel  ``channel.Channel``;  own  [scheme, host, port, path, name of the secret] of the image
    Raises ``ClawError`` when the token is missing.
    """

    def __init__(self, channel, own: list):
        self._channel = channel
        *self._where, path, name = own
        token = resolve(name, stores(channel.agent.image.agent.name))
        if not all("!" <= c <= "~" and c not in "/?#%" for c in token):
            raise ClawError(
                "secret %s is not a bot token" % name,
                "store the token that BotFather gave you: clawlite secrets set %s" % name,
            )
        if channel.agent.image.guard is not None:
            channel.agent.image.guard.learn(token)
        self._path = "%s/bot%s/" % (path, token)
        self._connections = Connections(channel.wake)
        self._under_way = {}  # key -> PendingRequest
        self._last = 0
        self._out = deque()  # (parameters, how often it was sent) of messages to be sent
        self._seen = deque(maxlen=MAX_WAITING)  # parameters of reactions to be sent
        self._typing = {}  # chat, or (chat, topic) -> monotonic ms of its next typing indicator
        self._ask_ms = self._send_ms = 0  # earliest time of the next request
        self._failures = 0
        offset = channel.state.data.get("offset")
        self._offset = offset if isinstance(offset, int) else 0

    # -- the loop

    def poll(self):
        """Read answers, and send the requests that are due."""
        for key, kind, data in self._connections.poll():
            asked = self._under_way.get(key)
            if asked is None:
                continue
            try:
                ended = self._received(asked, kind, data)
            except (ProviderError, ClawError) as e:
                ended = e
            if ended:
                self._connections.close(key)
                del self._under_way[key]
                self._answered(asked, None if ended is True else ended)
        now = self._channel.now_ms()
        for key, asked in list(self._under_way.items()):
            if now >= asked.due_ms:
                self._connections.close(key)
                del self._under_way[key]
                self._answered(
                    asked,
                    ProviderError(
                        "it said nothing for %d s" % (SILENCE_MS // 1000),
                        "check that the network is up; the agent asks again by itself",
                    ),
                )
        if now >= self._ask_ms and not self._is_under_way("getUpdates"):
            self._ask(
                "getUpdates",
                {
                    "offset": self._offset,
                    "timeout": POLL_S,
                    "limit": MAX_UPDATES,
                    "allowed_updates": ["message"],
                },
            )
        if self._out and now >= self._send_ms and not self._is_under_way("sendMessage"):
            params, tries = self._out.popleft()
            self._ask("sendMessage", params, tries + 1)
        if self._seen and not self._is_under_way("setMessageReaction"):
            self._ask("setMessageReaction", self._seen.popleft())
        for to, at in self._typing.items():
            if now >= at and not self._is_under_way("sendChatAction"):
                self._typing[to] = now + TYPING_MS
                self._ask("sendChatAction", dict(address_parameters(to), action="typing"))
                break

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do."""
        times = [asked.due_ms for asked in self._under_way.values()]
        if not self._is_under_way("getUpdates"):
            times.append(self._ask_ms)
        if self._out and not self._is_under_way("sendMessage"):
            times.append(self._send_ms)
        if self._seen and not self._is_under_way("setMessageReaction"):
            times.append(0)
        if self._typing and not self._is_under_way("sendChatAction"):
            times.append(min(self._typing.values()))
        return min(times)

    def close(self):
        self._connections.close_all()

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Send *text* to *to*, in parts when it is long.  *to*: the id of a chat, or (id, topic in
        it).
        """
        if final:
            self._typing.pop(to, None)
        if self.send(to, text):
            self._channel.log("dropped", actor=address_parameters(to)["chat_id"])

    def send(self, to, text: str) -> str:
        """Queue *text*, in parts when it is long; return "", or why not all of it can be sent."""
        for part in split_message(text):
            if len(self._out) >= MAX_WAITING:
                return "%d messages wait already" % MAX_WAITING
            self._out.append((dict(address_parameters(to), text=part), 0))
        return ""

    @staticmethod
    def recipient(name: str):
        """Return None: all names here are ids of actors."""

    # -- requests

    def _is_under_way(self, method: str) -> bool:
        return any(asked.method == method for asked in self._under_way.values())

    def _ask(self, method: str, params: dict, tries: int = 0):
        scheme, host, port = self._where
        body = dumps(params).encode()
        named = "[%s]" % host if ":" in host else host
        if port != (443 if scheme == "https" else 80):
            named += ":%d" % port
        head = request(
            "POST", self._path + method, named, [("Content-Type", "application/json")], len(body)
        )
        self._last += 1
        self._under_way[self._last] = PendingRequest(
            method, params, self._channel.now_ms() + SILENCE_MS, tries
        )
        self._connections.open(self._last, scheme, host, port, [head, body], CONNECT_MS)

    @staticmethod
    def _received(asked: PendingRequest, kind: str, data):
        """Handle an event of a connection; return True when the answer is complete.  Raises
        ``ProviderError``.
        """
        if kind == "error":
            raise ProviderError(data)
        if kind == "end":
            asked.response.at_end()
        else:
            asked.response.feed(data)
        event = asked.response.next_event()
        while event:
            if event[EVENT_KIND] == "head":
                asked.status = event[EVENT_STATUS]
            elif event[EVENT_KIND] == "data":
                asked.body += event[EVENT_DATA]
                if len(asked.body) > MAX_BODY:
                    raise ProviderError("the answer is longer than %d bytes" % MAX_BODY)
            else:
                return True
            event = asked.response.next_event()
        return False

    def _answered(self, asked: PendingRequest, error):
        now, said = self._channel.now_ms(), None
        if error is None:
            try:
                said = loads(asked.body)
            except ClawError:
                error = ProviderError(
                    "HTTP %d: no JSON came" % asked.status, "check base_url in clawlite.toml"
                )
        if error is None and (not isinstance(said, dict) or said.get("ok") is not True):
            error = ProviderError(
                "HTTP %d: %s"
                % (
                    asked.status,
                    str(said.get("description") if isinstance(said, dict) else said)[:200],
                )
            )
        if error is None:
            self._failures = 0
            if asked.method == "getUpdates":
                self._ask_ms = now
                self._updates(said.get("result"))
            return
        pause = self._pause(said)
        if asked.method == "getUpdates":
            if not self._failures:
                self._channel.trouble("Telegram: " + error.message, error.hint or _next_step(asked))
            self._failures += 1
            self._ask_ms = now + pause
        elif asked.method == "sendMessage":
            self._send_ms = now + pause
            if (
                asked.status == 429 or asked.status >= 500 or not asked.status
            ) and asked.tries < _TRIES:
                self._again(asked)
            # 403, for example: the person has blocked the bot, so another try would not help
            else:
                self._channel.log(
                    "dropped", actor=str(asked.params["chat_id"]), reason=error.message
                )

    def _again(self, asked: PendingRequest):
        """Queue a failed message again, before all others.  Drop it when no answer came at all."""
        if not asked.status:  # it may have arrived: a second copy would be worse than none
            self._channel.log(
                "dropped", actor=str(asked.params["chat_id"]), reason="the connection failed"
            )
            return
        self._out.appendleft((asked.params, asked.tries))

    def _pause(self, said) -> int:
        """Return how many ms to wait after a failure: the time that Telegram asks for, else a pause
        that grows with each failure.
        """
        parameters = said.get("parameters") if isinstance(said, dict) else None
        after = parameters.get("retry_after") if isinstance(parameters, dict) else None
        if isinstance(after, int) and 0 < after <= 3600:
            return after * 1000
        return _PAUSES_MS[min(self._failures, len(_PAUSES_MS) - 1)]

    def _updates(self, updates):
        """Act on each update once.  The offset is saved first."""
        taken = []
        for update in updates[:MAX_UPDATES] if isinstance(updates, list) else ():
            number = update.get("update_id") if isinstance(update, dict) else None
            if isinstance(number, int) and number >= self._offset:
                self._offset = number + 1
                taken.append(update.get("message"))
        if not taken:
            return
        self._channel.state.data["offset"] = self._offset
        if not self._channel.keep(True):
            # the offset is not saved: a restart would answer these again, so they get no answer
            return
        for message in taken:
            self._message(message)

    def _message(self, message):
        chat = message.get("chat") if isinstance(message, dict) else None
        if not isinstance(chat, dict) or not isinstance(chat.get("id"), int):
            return
        actor, text = str(chat["id"]), message.get("text")
        if not isinstance(text, str):
            if self._channel.access.role(actor) is not None:
                self.reply(actor, "I can only read text.")
            return
        thread, processing = message.get("message_thread_id"), self._channel.processing
        to = (
            (actor, thread)
            if processing[THREADS]
            and message.get("is_topic_message") is True
            and isinstance(thread, int)
            else actor
        )
        if processing[TYPING] and self._channel.access.role(actor) is not None:
            self._typing[to] = 0
        if self._channel.message(actor, text, to):
            self._typing.pop(to, None)
        elif processing[RECEIPTS] and isinstance(message.get("message_id"), int):
            self._seen.append(
                {
                    "chat_id": actor,
                    "message_id": message["message_id"],
                    "reaction": [{"type": "emoji", "emoji": SEEN}],
                }
            )


def _next_step(asked: PendingRequest) -> str:
    """Return what a person can do about a failed request for new messages."""
    if asked.status in (401, 403, 404):
        return "set its token again: clawlite secrets set NAME, as secret_ref of the channel says"
    if asked.status == 409:
        return "stop the other program that reads the messages of this bot"
    return "check that the network is up; the agent asks again by itself"


def address_parameters(to) -> dict:
    """Return the parameters of a request that address *to*."""
    if isinstance(to, str):
        return {"chat_id": to}
    chat, thread = to
    return {"chat_id": chat, "message_thread_id": thread}


def split_message(text: str) -> list:
    """Return *text* as a list of messages of at most ``MOST`` UTF-16 units, cut at line ends where
    possible; [] for a text without characters.
    """
    found = []
    while text.strip():
        size = end = 0
        for c in text:
            size += 2 if c > "\uffff" else 1
            if size > MOST:
                break
            end += 1
        if end < len(text):
            line = text.rfind("\n", 1, end)
            end = line if line > 0 else end
        if text[:end].strip():
            found.append(text[:end])
        text = text[end:].lstrip("\n")
    return found


Source = Telegram  # the class that channel.py loads for this kind of channel
