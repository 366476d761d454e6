"""A board as a member of its swarm by MQTT 3.1.1, over Wi-Fi (docs/swarm-boards.md).  A process
elsewhere, ``clawlite swarm board``, speaks for it in the swarm and gives it one task after another.

    claw/v1/NAME/status/IDENTITY   retained, and the will: whether the board is there, and its boot
    claw/v1/NAME/down/IDENTITY     records to the board
    claw/v1/NAME/up/IDENTITY       records of the board (swarmmember.py)
    claw/v1/NAME/estop             retained: whether a person has stopped the swarm

1. Loaded for images with a Swarm and without a gateway.  No step blocks (connection.py).
2. The session is a clean one.  Messages that were lost with a connection are repeated: the other
   end gives each task again when the board is back, and a task is known by its id.
3. A connection that ends is made again, after a pause that doubles.
"""

from binascii import hexlify

from boardsecrets import secret
from chance import chance
from clawlite.core.base.errors import ClawError, ImageMismatch
from clawlite.core.image.image import SWARM
from connection import Connection
from jsontext import dumps, loads
from swarmmember import SwarmMember

_PATIENCE_MS = 5000  # time limit to connect and log in
_PAUSE_MS, _MAX_PAUSE_MS = 1000, 60000
_KEEPALIVE_S = 30  # the broker gives a board up after one and a half of this
_PING_MS = 15000
_SILENT_MS = 40000  # a broker that has not even answered a ping by then is gone
_MAX_PACKET = 8448  # bytes: a record, its topic and its length
_MQTT = 2  # kind of an engine
# positions in the section SWARM, in one of its members, and in its engine
# (clawlite/host/image/image.cddl)
_NAME, _OWN, _MEMBERS, _ENGINE = 0, 1, 3, 15
_IDENTITY = 0
_KIND, _IS_SECURE, _HOST, _PORT = 0, 1, 2, 3
_REASON = 1  # position in the broker's answer to CONNECT (MQTT 3.1.1, 3.2.2)
_RESUME = "when it is safe: clawlite swarm resume"


def attach(device):
    """Give *device* its connection to the broker.  Raises ``ImageMismatch``."""
    record = device.agent.image.section(SWARM)
    try:
        name, own, members, engine = (
            record[_NAME],
            record[_OWN],
            record[_MEMBERS],
            record[_ENGINE],
        )
        me = members[own][_IDENTITY]
        if engine[_KIND] != _MQTT or engine[_IS_SECURE]:
            raise ValueError
    except (IndexError, TypeError, ValueError):
        raise ImageMismatch(
            "this board is in a swarm by MQTT without TLS, or through a gateway",
            "build it with --board",
        )
    device.net = Mqtt(device, name, me, engine)
    SwarmMember(device)


class Mqtt:
    """The connection.  ``is_up``: the broker has accepted the board; ``stop``: ``SwarmMember``.

    engine  [kind, secure, host, port, user, name of the secret, ...] of the image
    """

    stop = None

    def __init__(self, device, swarm: str, me: str, engine: list):
        self._device, self._swarm, self._engine = device, swarm, engine
        self._me, self._base = me, "claw/v1/%s/" % swarm
        self._boot = str(hexlify(chance()), "utf-8")
        self._opened, self.is_up, self._packet = None, False, 0
        self._got, self._skip, self._why = b"", 0, "not reached yet"
        self._again_ms, self._pause_ms, self._due_ms, self._ping_ms = 0, _PAUSE_MS, None, None

        device.agent.conditions = (self.about,)

    def about(self) -> str:
        """Return the line for /status."""
        return "MQTT %s:%d: %s" % (self._engine[_HOST], self._engine[_PORT], self._why)

    # -- as ``SwarmMember`` uses it

    def tell(self, message):
        self._publish("up/", dumps(message).encode(), 0x32)

    # -- the device's loop

    def carry_out(self, effect: tuple):
        """Do nothing: no provider is called over this connection."""

    def close(self, task: int):
        """Do nothing: no task has a connection."""

    def deadline(self):
        if not self._opened:
            return self._again_ms
        first = None
        for at in (self._opened.due_ms, self._due_ms, self._ping_ms):
            if at is not None and (first is None or at < first):
                first = at
        return first

    def tick(self):
        now = self._device.now_ms()
        try:
            if self._opened:
                self._opened.tick(now)
                if self._due_ms is not None and now >= self._due_ms:
                    raise ClawError("the broker does not answer")
                if self._ping_ms is not None and now >= self._ping_ms:
                    self._ping_ms = now + _PING_MS
                    self._send(b"\xc0\x00")
            elif now >= self._again_ms:
                self._connect(now)
        except (OSError, ValueError, ClawError) as e:
            self._broken(e, now)

    def ready(self, polled):
        """Handle received bytes."""
        if not self._opened or polled is not self._opened.stream:
            return
        now = self._device.now_ms()
        try:
            data = self._opened.ready(now)
            if data == b"":
                raise ClawError("the broker has ended the connection")
            if data:
                if self.is_up:
                    self._due_ms = now + _SILENT_MS
                self._feed(data)
        except (OSError, ValueError, ClawError) as e:
            self._broken(e, now)

    def _connect(self, now: int):
        _, _, host, port, user, name, *_ = self._engine
        password = ""
        if name:
            done, password = secret(self._device.folder, name)
            if not done:
                raise password
        # a clean session, and a will with QoS 1 that is retained
        flags = 0x2E | (0x80 if user else 0) | (0x40 if password else 0)
        body = b"\x00\x04MQTT\x04" + bytes((flags, 0, _KEEPALIVE_S))
        body += _text(self._me + "-board") + _text(self._base + "status/" + self._me) + _text("{}")
        if user:
            body += _text(user)
        if password:
            body += _text(password)
        self._due_ms, self._got, self._skip = now + _PATIENCE_MS, b"", 0
        self._opened = Connection(
            self._device.stdio.poll,
            host,
            port,
            [_packet(0x10, body)],
            None,
            None,
            _PATIENCE_MS,
            self._device.name_server,
            now,
        )

    def _broken(self, error, now: int):
        self._why = error.message if isinstance(error, ClawError) else str(error)
        if self._opened:
            self._opened.close()
        self._opened = self._due_ms = self._ping_ms = None
        self._again_ms = now + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, _MAX_PAUSE_MS)
        self.is_up = False

    def _send(self, data: bytes):
        self._opened.queue.append(data)
        self._opened.flush(self._device.now_ms())

    def _publish(self, kind: str, data: bytes, head: int):
        self._packet = self._packet % 65535 + 1
        topic = _text(self._base + kind + self._me)
        try:
            self._send(_packet(head, topic + self._packet.to_bytes(2, "big") + data))
        except OSError:  # tick handles it: the caller may be in the middle of a task
            self._due_ms = self._device.now_ms()

    # -- from the broker

    def _feed(self, data: bytes):
        if self._skip:
            size = min(self._skip, len(data))
            self._skip -= size
            data = data[size:]
        self._got = self._got + data if self._got else data
        while len(self._got) > 1:
            size, at = 0, 1
            while True:  # the length: 7 bits a byte
                if at == len(self._got):
                    return
                size |= (self._got[at] & 0x7F) << 7 * (at - 1)
                at += 1
                if not self._got[at - 1] & 0x80:
                    break
                if at > 4:
                    raise ClawError("that is no MQTT")
            if size > _MAX_PACKET:
                self._skip = max(0, size - (len(self._got) - at))
                self._got = self._got[at + size :]
                continue
            if len(self._got) < at + size:
                return
            head, body = self._got[0], self._got[at : at + size]
            self._got = self._got[at + size :]
            self._came(head, body)

    def _came(self, head: int, body: bytes):
        kind = head >> 4
        if kind == 3:
            self._heard(head, body)
        elif kind == 2:  # the broker accepts the board, or refuses it
            if len(body) != 2 or body[_REASON]:
                raise ClawError(
                    "the broker refuses the login; look at user and credential of [swarm]"
                )
            topics = b"".join(
                [_text(self._base + one) + b"\x01" for one in ("down/" + self._me, "estop")]
            )
            self._send(_packet(0x82, b"\x00\x01" + topics))
        elif kind == 9:
            if 0x80 in body[2:]:
                raise ClawError(
                    "the login may not read what is for it; look at the access list of the broker"
                )
            now = self._device.now_ms()
            self.is_up, self._pause_ms, self._why = True, _PAUSE_MS, "ready"
            self._due_ms, self._ping_ms = now + _SILENT_MS, now + _PING_MS
            self._here()

    def _here(self):
        self._publish("status/", dumps({"status": "ready", "boot": self._boot}).encode(), 0x33)

    def _heard(self, head: int, body: bytes):
        at = 2 + int.from_bytes(body[:2], "big")
        topic = body[2:at]
        if head & 6:
            self._send(b"\x40\x02" + body[at : at + 2])
            at += 2
        try:
            message = loads(body[at:])
        except ClawError:
            return
        if not isinstance(message, dict):
            return
        if topic.endswith(b"/estop"):
            by = message.get("by")
            why = ""
            if message.get("level") == "stop":
                why = "the swarm %s was stopped by %s" % (self._swarm, by)
            told = {"text": why, "hint": _RESUME if why else "", "known": True}
            self.stop.hear("claw.gateway.stop", told)
        elif message.get("method") == "claw.gateway.hello":
            self._here()
        else:
            params = message.get("params")
            if isinstance(params, dict) and isinstance(params.get("text"), str):
                self.stop.hear(str(message.get("method")), params)


def _text(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


def _packet(head: int, body: bytes) -> bytes:
    size, length = len(body), b""
    while size > 127:
        length += bytes((size & 127 | 128,))
        size >>= 7
    return bytes((head,)) + length + bytes((size,)) + body
