"""A UART made reliable: records arrive complete, once and in order, or the sender learns that they
may not have arrived.

1. Until a hello the line is plain: ``0x1E JSON LF`` is a record, and the rest is text for people
   (core/line/frame.py).  A hello makes it reliable: then only frames are trusted, until one side
   ends the session (lineframe.py, docs/line.md).
2. The host sends a hello; the board answers with its window and fragment size.  Both nonces
   identify a session: no frame from before a restart of either side passes its checksum.
3. Go-back-n (linesend.py, linereceive.py): a damaged or missing frame is requested again, and the
   frames after it are dropped.
4. Text in a session may be a piece of a damaged frame: it is UNSURE, to be shown and never to be
   acted on.
5. No I/O: the caller feeds bytes and times, and after each call writes what ``output`` returns,
   until that is b"".
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG
from clawlite.core.line.lineframe import (
    ACK,
    COST,
    DATA,
    HELLO,
    LONG,
    LOOSE,
    MARKED,
    MORE,
    OVER,
    RESET,
    VERSION,
    Splitter,
)
from clawlite.core.line.lineframe import decode, encode, greeting, kind_of, parse_hello
from clawlite.core.line.linereceive import RESERVE, Receiver
from clawlite.core.line.linesend import Sender

# Events are (kind, payload): TEXT, RECORD and TOO_LONG as in core/line/frame.py, and:
# UNSURE  text in a session, or on a line that is not plain
# UP      a session has begun; payload: the peer's window, digits
# DOWN    it has ended, and 2 records may not have arrived: b"silent 2", b"restarted 2", b"closed 2"
#         (all: the peer), b"version 2" (the peer speaks another version)
UNSURE, UP, DOWN = const(3), const(4), const(5)
MIN_WINDOW, MAX_WINDOW, MAX_FRAGMENT = const(80), const(65535), const(240)

_PLAIN, _OPENING, _RELIABLE = const(0), const(1), const(2)
_BAD = (b"\n", b"\x1e", b"\r", b"\x03")


class Line:
    """One end of a line.

    nonce        1..0xFFFFFFFF, random or counted: this end must never have used it before
    window       MIN_WINDOW..MAX_WINDOW, bytes that this end can hold unread: a board's ring, 260 to
                 512
    fragment     1..MAX_FRAGMENT, bytes of a record in one frame to this end; with COST and RESERVE
                 at most *window*
    limit        bytes of one record, either way, and of one line of text; >= MIN_WINDOW and at
                 least a whole frame
    backlog      bytes of records that may wait to be sent or acknowledged, >= 1
    baud         of the wire
    patience_ms  the line counts as dead when there was no progress for this long
    plain        False: there is noise, and no person to type.  Then text without a session is
                 UNSURE, too; received records are dropped, and records to be sent wait for one
    Attributes to read: ``waiting``, bytes of records to be sent or, in a session, acknowledged;
    ``heard``, frames of a session that were received; ``damaged``, damaged items received.
    """

    def __init__(
        self,
        nonce: int,
        window: int,
        fragment: int = 160,
        limit: int = 8192,
        backlog: int = 16384,
        baud: int = 115200,
        patience_ms: int = 30000,
        plain: bool = True,
    ):
        if not (
            MIN_WINDOW <= window <= MAX_WINDOW
            and 1 <= fragment <= min(MAX_FRAGMENT, window - RESERVE - COST)
            and limit >= max(MIN_WINDOW, fragment + COST)
        ):
            raise ValueError(
                "line: no window of %d bytes with fragments of %d, records of %d"
                % (window, fragment, limit)
            )
        self._nonce = nonce
        self._window, self._fragment, self._limit = window, fragment, limit
        self._backlog, self._patience_ms, self._plain = backlog, patience_ms, plain
        self.heard = self.damaged = self._now = 0
        self._splitter = Splitter(limit)
        self._sender = Sender(baud, window)
        self._receiver = Receiver(window, fragment, limit)
        self._events = []
        self._state, self._is_host = _PLAIN, False
        # the other side's nonce, and both combined: of the current or the last session
        self._peer = self._seed = 0
        self._unframed = []  # plain records to be sent
        self.waiting = 0  # bytes in them and in the sender's records
        self._hello_due = self._reset_due = False

    def hello(self, now_ms: int) -> None:
        """Open a session, as the host.  Until UP or DOWN, ``send`` keeps records; records that
        waited before are dropped.
        """
        self._now = now_ms
        self._drop()
        self._nonce = self._nonce % 0xFFFFFFFF + 1  # a new one each time
        self._state, self._is_host, self._hello_due = _OPENING, True, True

    def close(self, now_ms: int) -> None:
        """End the session: the peer is notified once, and unacknowledged records are dropped."""
        self._now = now_ms
        self._reset_due = self._state == _RELIABLE
        self._drop()

    def send(self, record: bytes, now_ms: int) -> None:
        """Take one record, to be sent as the peer's window allows.

        Raises ValueError for an invalid record: empty, too long, or with LF, CR, 0x1E or 0x03;
        ``ClawError`` when there is no room."""
        self._now = now_ms
        if not 0 < len(record) <= self._limit:
            raise ValueError(
                "line: a record of %d bytes, expected 1 to %d" % (len(record), self._limit)
            )
        for byte in _BAD:
            if byte in record:
                raise ValueError(
                    "line: a record with 0x%02x at byte %d" % (byte[0], record.find(byte))
                )
        if len(record) > self._backlog - self.waiting:
            raise ClawError("the line is full: %d bytes wait to be sent" % self.waiting)
        self.waiting += len(record)
        (self._unframed if self._plain and self._state == _PLAIN else self._sender.records).append(
            record
        )

    def feed(self, data, now_ms: int) -> None:
        """Take bytes from the wire.  Call ``next_event`` until it is None before you feed more."""
        self._now = now_ms
        self._splitter.feed(data)

    def deadline(self):
        """Return the time in ms at which ``tick`` must be called, or None."""
        one, other = self._receiver.ack_at, self._sender.resend_at
        return other if one is None else one if other is None else min(one, other)

    def tick(self, now_ms: int) -> None:
        """Repeat what was not answered in time, with growing pauses; in the end the line counts as
        dead (DOWN, silent).
        """
        self._now = now_ms
        at = self._sender.resend_at
        if at is not None and now_ms >= at:
            if now_ms - self._sender.since >= self._patience_ms:
                return self._down(b"silent")
            self._sender.time_out()
            self._hello_due = self._state == _OPENING

    def output(self) -> bytes:
        """Return the next frame or plain record to be written; b"" when there is none now."""
        if self._unframed:
            self.waiting -= len(self._unframed[0])
            return b"\x1e" + self._unframed.pop(0) + b"\n"
        if self._reset_due:
            self._reset_due = False
            return encode(0, 0, RESET, b"", self._seed)
        if self._hello_due:
            self._hello_due = False
            if self._state == _OPENING:
                self._sender.wait(self._now)
            host, board = (self._nonce, 0) if self._is_host else (self._peer, self._nonce)
            return greeting(host, board, self._window, self._fragment)
        if self._state != _RELIABLE:
            return b""
        receiver = self._receiver  # in an ACK, 1 means: send again
        frame = (1, ACK, b"") if receiver.nak else self._sender.next_frame(self._now)
        if frame is None:
            if receiver.ack_at is None or self._now < receiver.ack_at:
                return b""
            frame = 0, ACK, b""
        receiver.note_ack()
        seq, kind, payload = frame
        return encode(seq, receiver.expected, kind, payload, self._seed)

    def next_event(self) -> tuple | None:
        """Return ``(kind, payload)`` of the next event, or None.  Never raises."""
        while not self._events:
            item = self._splitter.next_item()
            if item is None:
                return None
            kind, data = item
            event = self._event(kind, data)
            if event:
                self._events.append(event)
        return self._events.pop(0)

    def _event(self, kind: int, data: bytes) -> tuple | None:
        is_plain = self._plain and self._state != _RELIABLE
        if kind == LOOSE:
            if self._state == _RELIABLE and not self._is_host:
                self._is_damaged()  # a host has no text in a session
            return TEXT if is_plain else UNSURE, data
        if kind == LONG or kind == OVER and is_plain:
            return (TOO_LONG, data) if is_plain else None
        if kind != OVER and (data[1:2] == b"~" or kind_of(data)):
            return self._frame(data)
        if not is_plain:
            return self._is_damaged()
        return (RECORD, data[1:]) if kind == MARKED and len(data) > 1 else None

    def _frame(self, item: bytes) -> tuple | None:
        kind = kind_of(item)  # not checked yet
        if kind == HELLO:
            frame = decode(item, 0)
            if frame:
                _, _, _, payload = frame
                return self._take_hello(payload)
        elif self._state == _RELIABLE:
            frame = decode(item, self._seed)
            if frame:
                seq, ack, kind, payload = frame
                return self._take_frame(seq, ack, kind, payload)
        elif self._state == _PLAIN and (kind == DATA or kind == MORE or kind == ACK):
            self._reset_due = True
            return None
        if kind == RESET and self._is_host and self._state != _PLAIN and decode(item, 0):
            self._hello_due = True  # the board knows of no session, or has just begun to listen
            return None
        self._is_damaged()

    def _is_damaged(self) -> None:
        self.damaged += 1
        self._receiver.nak = True

    def _take_hello(self, payload: bytes) -> None:
        version, host, board, window, fragment = parse_hello(payload)
        if (
            (self._state == _PLAIN or host != self._nonce or not board)
            if self._is_host
            else (board or not host)
        ):
            return  # the answer to an earlier hello, or an echo
        peer = board if self._is_host else host
        fragment = min(fragment, MAX_FRAGMENT, window - RESERVE - COST)
        if self._state == _RELIABLE and peer != self._peer:
            self._down(b"restarted")
        self._hello_due = not self._is_host
        if self._state == _RELIABLE:
            return  # the answer was lost, or two came
        self._peer = peer
        if version != VERSION or fragment < 1:
            if self._is_host:
                self._down(b"version")
            return
        self._sender.begin(fragment, window - RESERVE, self._now)
        self._receiver.begin()
        self._state, self._seed = _RELIABLE, peer ^ self._nonce
        self._reset_due = False  # it was due for a frame from before the session
        self._events.append((UP, b"%d" % window))

    def _take_frame(self, seq: int, ack: int, kind: int, payload: bytes) -> tuple | None:
        """Act on an intact frame of this session."""
        self.heard += 1
        self.waiting -= self._sender.acknowledge(ack, self._now)
        if kind == RESET:
            self._down(b"closed")
        elif kind == ACK and seq:
            self._sender.go_back(self._now)
        elif kind == DATA or kind == MORE:
            return self._receiver.take(seq, kind, payload, self._now)

    def _down(self, why: bytes) -> None:
        self._events.append((DOWN, b"%s %d" % (why, len(self._sender.records))))
        self._drop()

    def _drop(self) -> None:
        """Go back to a plain line."""
        self.waiting -= sum([len(record) for record in self._sender.records])
        self._sender.records = []
        self._sender.begin(1, 0, self._now)
        self._receiver.begin()
        self._state, self._hello_due = _PLAIN, False
