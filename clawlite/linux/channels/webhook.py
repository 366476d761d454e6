"""Channels of type webhook: signed requests that begin turns, and their answers (CKP 0.2.0, 5.3;
docs/channels.md has the wire).

    POST /NAME    X-Claw-Timestamp: epoch seconds    X-Claw-Signature: sha256=HEX of
                  HMAC-SHA256(secret, timestamp "." body)
    {"from": "who", "text": "what"}        ->  200 {"text": "..."}   or 4xx, 5xx {"error": "..."}

1. A client with the secret is trusted to name the sender in "from".  The body is not parsed before
   its signature was verified.
2. A request is accepted within 300 s of its time stamp, and only once, even after a restart
   (replay_cache.py).
3. The client waits for the turn, and gets its answer.
"""

import hashlib
import hmac
import time

from clawlite.core.base.errors import ClawError
from clawlite.linux.channels.replay_cache import ReplayCache
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.net.http_request import Refused, Request
from clawlite.linux.net.http_server import Server
from clawlite.linux.secrets.secrets import resolve, stores

WINDOW_S = 300
_SCHEME, _DIGITS = "sha256=", 64
_REFUSAL = "the signature does not match this body, or has expired"
MAX_SEEN = 150000  # signatures that are remembered at once: 1.4 MB
LAST_LOOK_MS = 20
_STATUS = {"stranger": 403, "pairing": 403, "length": 413, "rate": 429, "busy": 503}


class Signed:
    """Checks the path, method, signature and form of each request.

    path    str, the only one;  key  bytes;  clock  function -> epoch seconds
    kept    path of the file of accepted signatures, or None: nothing outlasts the process
    Raises ``OSError`` when that file cannot be read.
    """

    def __init__(self, path: str, key: bytes, clock, kept=None):
        self._path, self._key, self._clock = path, key, clock
        self.seen = ReplayCache(kept, 2 * WINDOW_S)
        self.seen.begin(clock())

    def admit(self, request: Request):
        """Look at all but the signature itself, which needs the body.  Raises ``Refused``."""
        if request.path != self._path:
            raise Refused(404, "there is nothing here")
        if request.method != "POST":
            raise Refused(405, "a message is sent with POST")
        stamp, given = self._accept_request(request)
        if (
            not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12)
            or abs(self._clock() - int(stamp)) > WINDOW_S
            or not (given.startswith(_SCHEME) and len(given) == len(_SCHEME) + _DIGITS)
        ):
            raise Refused(401, _REFUSAL)

    def _accept_request(self, request: Request) -> tuple:
        """Return (time stamp, signature) as they came."""
        headers = request.headers
        return headers.get("x-claw-timestamp", ""), headers.get("x-claw-signature", "")

    def check(self, request: Request) -> tuple:
        """Return (from, text).  Raises ``Refused``."""
        self.admit(request)
        stamp, given = self._accept_request(request)
        signed = stamp.encode("latin-1") + b"." + request.body
        expected = _SCHEME + hmac.new(self._key, signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), given.encode("latin-1")):
            raise Refused(401, _REFUSAL)
        self._once(expected)
        try:
            message = loads(request.body)
        except ClawError:
            message = None
        if not isinstance(message, dict) or not all(
            isinstance(message.get(key), str) and message[key] for key in ("from", "text")
        ):
            raise Refused(400, "expected an object with the strings from and text")
        return message["from"], message["text"]

    def _once(self, signature: str):
        now = self._clock()
        self.seen.forget(now)
        if signature in self.seen:
            raise Refused(401, "this request was already received")
        if len(self.seen) >= MAX_SEEN:
            raise Refused(429, "too many requests")
        try:
            self.seen.add(signature, now)
        except OSError as e:  # after a restart, the same request would be accepted again
            raise Refused(503, "this request cannot be recorded: %s" % e.strerror) from None


class Webhook:
    """One webhook.

    channel  ``channel.Channel``;  own  [host, port, name of the secret] of the image
    Raises ``ClawError`` when the secret is missing or the address is taken.
    """

    def __init__(self, channel, own: list):
        self._channel = channel
        host, port, name = own
        key = resolve(name, stores(channel.agent.image.agent.name))
        if channel.agent.setup.guard is not None:
            channel.agent.setup.guard.learn(key)
        kept = channel.path(".seen")
        try:
            signed = Signed("/" + channel.name, key.encode(), lambda: int(time.time()), kept)
        except OSError as e:
            raise ClawError(
                "%s cannot be read: %s" % (kept, e.strerror), "make it readable"
            ) from None
        self._seen = signed.seen
        self._server = Server(
            host,
            port,
            4 * channel.processing[0] + 1024,
            signed.check,
            channel.wake,
            admit=signed.admit,
        )
        self.port = self._server.port
        self._judged, self._said = None, None

    def poll(self):
        """Read requests and begin their turns."""
        for number, (actor, text) in self._server.poll():
            if self._channel.is_draining:
                self._answer(number, 503, "error", "the agent ends; send this again, signed anew")
                continue
            self._judged, self._said = number, None
            why = self._channel.take_message(actor, text, number)
            self._judged = None
            if why:
                self._answer(number, _STATUS[why], "error", self._said and self._said[0] or why)
            elif self._said:
                self.reply(number, *self._said)

    def deadline(self):
        """Return the monotonic time of the next look whether the last answers are sent; None while
        the agent goes on, because a request wakes the loop.
        """
        if self._channel.is_draining and self.is_sending():
            return self._channel.now_ms() + LAST_LOOK_MS
        return None

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Answer the request *to*.  Only the final text can be sent, and only to a client that
        waits for it.
        """
        if not final or not isinstance(to, int):
            return
        if to == self._judged:
            self._said = (text, final, failed)
        else:
            self._answer(to, 502 if failed else 200, "error" if failed else "text", text)

    def refuse(self, to, why: str, text: str):
        """Answer *to*, whose message is refused: *why* as ``Channel.take_message`` has it."""
        self._answer(to, _STATUS[why], "error", text or why)

    def _answer(self, number: int, status: int, key: str, text: str):
        self._server.answer(number, status, dumps({key: text}).encode())

    def is_sending(self) -> bool:
        """Return whether answers are on their way to clients."""
        return self._server.is_sending()

    def close(self):
        self._server.close()
        self._seen.close()


Source = Webhook  # the class that channel.py loads for this kind of channel
