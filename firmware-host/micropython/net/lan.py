"""A gateway on the LAN: TCP in place of the console's line, with records as in RFC 7464
(docs/gateway.md).

1. The image has its address; ``secrets/GATEWAY_TOKEN`` holds NAME:TOKEN, as ``clawlite gateway
   token NAME`` prints it.  The token is never sent: the gateway sends a nonce, and the answer is
   its HMAC-SHA256.
2. A connection that ends is made again, after a pause that doubles; a request does not wait for the
   end of a pause.  A request is sent again with the count of received records, as over a line
   (uplink.py), so the gateway asks no provider twice.
3. A gateway that does not even tell the time within WAIT_MS after a request is gone, whatever TCP
   reports: then the connection is made again.  Loaded for images that require ``lan``.
"""

from boardsecrets import secret
from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD, TOO_LONG, Framer
from clawlite.core.line.gateway_records import WAIT_MS
from clawlite.core.image.image import NETWORK
from connection import Connection
from jsontext import dumps, loads
from unload import drop
from uplink import AHEAD, MAX_RECORD, Uplink

_KIND, _DATA = range(2)  # positions in an event of a ``Framer``
_PATIENCE_MS, _TLS_MS = 5000, 10000  # time limit to connect and be authenticated
_PAUSE_MS, _MAX_PAUSE_MS = 1000, 60000
_SHAPE = ([None, (str, 65536, bool)], [bytes])


class Lan(Uplink):
    """The connection of one device to its gateway.

    device  ``device.Device``
    names   as in connection.py
    """

    def __init__(self, device, names):
        from clawlite.core.image.header import check_shape

        super().__init__(device)
        self._names = names
        self._host, self._port, self._is_tls = check_shape(
            device.agent.image.section(NETWORK), _SHAPE, "section 21"
        )[0]
        self._opened = self._framer = None
        self._again_ms = 0  # when the next connection is tried
        self._pause_ms = _PAUSE_MS
        self._known_ms = None  # time until which the gateway must have sent something
        self._why = None  # why there is no connection

    # -- the wire, as uplink.py uses it

    def has_room(self) -> bool:
        return self.is_up and sum([len(data) for data in self._opened.queue]) < AHEAD

    def tell(self, message):
        self._opened.queue.append(b"\x1e" + dumps(message).encode() + b"\n")
        try:
            self._opened.flush(self._now_ms())
        except OSError as e:  # tick handles it: the caller may be iterating over the requests
            self._known_ms = self._now_ms()
            self._why = str(e)

    def call(self):
        """A request has come: connect now, without waiting for the end of a pause."""
        self._again_ms = self._now_ms()

    def nobody(self) -> str:
        return "no gateway at %s:%d%s (clawlite gateway --listen ADDRESS:PORT starts one there)" % (
            self._host,
            self._port,
            ": " + self._why if self._why else "",
        )

    # -- the device's loop

    def deadline(self):
        first = super().deadline()
        for at in (self._opened.due_ms, self._known_ms) if self._opened else (self._again_ms,):
            if at is not None and (first is None or at < first):
                first = at
        return first

    def tick(self):
        now = self._now_ms()
        try:
            if self._opened:
                self._opened.tick(now)
                if self._known_ms is not None and now >= self._known_ms:
                    raise ClawError(self._why or "it says nothing")
            elif now >= self._again_ms:
                self._connect(now)
        except (OSError, ValueError, ClawError) as e:
            self._note_failure(e, now)
        super().tick()

    def _connect(self, now: int):
        wrap = None
        if self._is_tls:
            from secure import wrapper

            wrap = wrapper(self._agent.image, self._device.epoch_s())
        patience = _TLS_MS if self._is_tls else _PATIENCE_MS
        self._known_ms = now + patience
        self._framer = Framer(MAX_RECORD)
        self._opened = Connection(
            self._stdio.poll, self._host, self._port, [], None, wrap, patience, self._names, now
        )

    def _note_failure(self, error, now: int):
        if isinstance(error, ValueError):  # MicroPython's, about a certificate
            from secure import refusal

            self._why = refusal(self._host, error)
        else:
            self._why = error.message if isinstance(error, ClawError) else str(error)
        if self._opened:
            self._opened.close()
        self._opened = self._framer = self._known_ms = None
        self._again_ms = now + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, _MAX_PAUSE_MS)
        if self.is_up:
            self._device.net.down()

    def ready(self, polled):
        """Handle received bytes."""
        if not self._opened or polled is not self._opened.stream:
            return
        try:
            data = self._opened.ready(self._now_ms())
            if data == b"":
                raise ClawError("it has ended the connection")
            if data:
                self._framer.feed(data)
                event = self._framer.next_event()
                while event:
                    self._came(event[_KIND], event[_DATA])
                    event = self._framer.next_event() if self._framer else None
        except (OSError, ValueError, ClawError) as e:
            self._note_failure(e, self._now_ms())

    def _came(self, kind: int, data: bytes):
        first = self._device.net
        if kind == TOO_LONG:
            first.on_loss(data)
        elif kind == RECORD and not self.is_up and b'"claw.gateway.auth"' in data:
            self._prove(data)
        elif kind == RECORD:
            was_up = self.is_up
            if b'"claw.clock"' in data:
                from settime import take

                take(self._device, data)
                drop()
            else:
                first.record(data)
            if was_up:
                self._known_ms = None
            elif self.is_up:
                self._known_ms, self._pause_ms, self._why = None, _PAUSE_MS, None
                self.probe()

    def _begin(self, asked):
        super()._begin(asked)
        self.probe()

    def probe(self):
        """Ask for the time: a clock that is set ignores it, and any answer shows that the gateway
        is there.
        """
        from settime import ASKS

        if self._known_ms is None:
            self._known_ms = self._now_ms() + WAIT_MS
            self.tell(ASKS)

    def _prove(self, data: bytes):
        try:
            nonce = loads(data)["params"]["nonce"].encode()
        except (KeyError, TypeError, AttributeError):
            raise ClawError("it does not answer as a gateway")
        done, found = secret(self._device.folder, "GATEWAY_TOKEN")
        if not done:
            raise found
        from clawlite.core.image.image_signature import prove

        self.tell({"jsonrpc": "2.0", "id": "auth", "result": prove(found, nonce)})
