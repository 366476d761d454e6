"""The items on a UART's wire: frames with a checksum, plain records, and text for people
(docs/line.md describes them byte by byte).

1. A frame of a session is ``0x1E``, kind, sequence, acknowledgement and CRC-32 (6 bytes as 8 digits
   of base64), payload, LF.  No JSON begins with one of the kinds.
2. A hello and a reset are ``0x1E ~``, 0000, kind, CRC-32 (hex), payload, LF: every version of this
   module can read them.
3. The CRC covers all bytes but the marks and itself, and is seeded with the session's number: no
   frame of another session passes.
4. 0x1E always begins a new item, so noise costs only the items that it hits; no payload contains
   it.  A frame that lost only its LF is intact.
5. Every byte is visited once.  At most *limit* bytes of an open item are held, and the chunk that
   is being read.
"""

import binascii
import struct

from clawlite.core.base.dialect import const

# the letters d, m, a, h, r
DATA, MORE, ACK, HELLO, RESET = const(100), const(109), const(97), const(104), const(114)
VERSION = const(2)  # of this format, in the hello
COST = const(11)  # bytes of a session's frame beside its payload, LF counted

# Items.  LOOSE: a line, or the text before a 0x1E.  MARKED: 0x1E and the rest of its line.  CUT: as
# MARKED, but ended by the next 0x1E.  LONG: a text that was dropped, as its length in ASCII digits.
# OVER: as LONG, for an item that began with 0x1E.
LOOSE, MARKED, LONG, CUT, OVER = const(0), const(1), const(2), const(3), const(4)
_MARK, _GREETING = const(30), const(24)  # 0x1E; bytes of a hello's payload
# bytes before the payload, of a session's frame, and of a hello or reset
_HEAD, _PLAIN_HEAD = const(10), const(15)
_KIND, _PLAIN_KIND = const(1), const(6)  # where its kind stands
_SEQ, _ACK = const(0), const(1)  # of the bytes behind it


def encode(seq: int, ack: int, kind: int, payload: bytes, seed: int) -> bytes:
    """Return one frame.

    seq, ack  int, of which the low 8 bits are sent; 0 for HELLO and RESET
    kind      DATA, MORE, ACK, HELLO or RESET
    payload   bytes without LF, CR and 0x1E
    seed      0..0xFFFFFFFF, the session; 0 for HELLO
    """
    if kind == HELLO or kind == RESET:
        head = b"0000%c" % kind
        return b"".join(
            (
                b"\x1e~",
                head,
                b"%08x" % binascii.crc32(payload, binascii.crc32(head, seed)),
                payload,
                b"\n",
            )
        )
    return b"".join(
        (b"\x1e%c" % kind, _digits(seq & 255, ack & 255, kind, payload, seed), payload, b"\n")
    )


def decode(item: bytes, seed: int) -> tuple | None:
    """Return ``(seq, ack, kind, payload)`` of a MARKED or CUT item, or None when it is damaged
    or of another session.
    """
    kind = kind_of(item)
    if kind == HELLO or kind == RESET:
        payload = item[_PLAIN_HEAD:]
        crc = b"%08x" % binascii.crc32(payload, binascii.crc32(item[2:7], seed))
        return (0, 0, kind, payload) if item[7:_PLAIN_HEAD] == crc else None
    payload, digits = item[_HEAD:], item[2:_HEAD]
    try:
        numbers = binascii.a2b_base64(digits)
    except ValueError:
        return None
    if (
        not kind
        or len(numbers) < 2
        or digits != _digits(numbers[_SEQ], numbers[_ACK], kind, payload, seed)
    ):
        return None
    return numbers[_SEQ], numbers[_ACK], kind, payload


def kind_of(item: bytes) -> int:
    """Return the kind of frame that *item*, which begins with 0x1E, claims to be; 0 when it is no
    frame.
    """
    if item[1:2] == b"~":
        return item[_PLAIN_KIND] if len(item) >= _PLAIN_HEAD and item[_PLAIN_KIND] in b"hr" else 0
    return item[_KIND] if len(item) >= _HEAD and item[_KIND] in b"dma" else 0


def _digits(seq: int, ack: int, kind: int, payload: bytes, seed: int) -> bytes:
    crc = binascii.crc32(payload, binascii.crc32(bytes((seq, ack, kind)), seed))
    return binascii.b2a_base64(struct.pack(">BBI", seq, ack, crc))[:8]


def _unhex(digits: bytes) -> bytes:
    """Return the bytes of *digits*; b"" when they are not hexadecimal: the frame is intact, but not
    from a peer of this kind.
    """
    try:
        return binascii.unhexlify(digits)
    except ValueError:
        return b""


def greeting(host: int, board: int, window: int, fragment: int) -> bytes:
    """Return a HELLO.

    host, board       the nonces, 0..0xFFFFFFFF; *board* is 0 in the host's
    window, fragment  what its sender accepts, in bytes: 0..65535 and 0..255
    """
    return encode(
        0,
        0,
        HELLO,
        binascii.hexlify(struct.pack(">BIIHB", VERSION, host, board, window, fragment)),
        0,
    )


def parse_hello(payload: bytes) -> tuple:
    """Return ``(version, host, board, window, fragment)`` of a HELLO; for an invalid payload
    version 0 and no nonces.

    Bytes after these are ignored: a later version may add some.
    """
    raw = _unhex(payload[:_GREETING])
    return struct.unpack(">BIIHB", raw) if len(raw) * 2 == _GREETING else (0, 0, 0, 0, 0)


class Splitter:
    """Cuts received bytes into items.

    limit   bytes that an item may have before its end, >= 1
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._chunk, self._pos = b"", 0  # the bytes to read, and from where
        self._open = bytearray()  # the part of the open item that came in earlier chunks
        self._dropped = 0  # bytes of the open item that were dropped
        self._marked = False  # the open item began with 0x1E

    def feed(self, data) -> None:
        """Take bytes from the wire, in pieces of any size.

        Call ``next_item`` until it returns None before you feed more: bytes that it has not read
        yet are copied.
        """
        rest = self._chunk[self._pos :]
        self._chunk, self._pos = rest + bytes(data) if rest else bytes(data), 0

    def next_item(self) -> tuple | None:
        """Return ``(kind, payload)``, or None when more bytes are needed.  Never raises."""
        while True:
            chunk, pos = self._chunk, self._pos
            if pos == len(chunk):
                self._chunk, self._pos = b"", 0
                return None
            fresh = not self._open and not self._dropped
            if fresh:
                self._marked = chunk[pos] == _MARK
            stop = chunk.find(b"\n", pos)
            end = stop if stop >= 0 else len(chunk)
            mark = chunk.find(b"\x1e", pos + 1 if fresh and self._marked else pos, end)
            if mark >= 0:
                end = mark
            self._pos = end if mark >= 0 or stop < 0 else stop + 1
            self._hold(chunk, pos, end)
            if mark >= 0 or stop >= 0:
                return self._end_item(mark >= 0)

    def _hold(self, chunk: bytes, pos: int, end: int) -> None:
        """Add ``chunk[pos:end]`` to the open item, or only count it when the item would exceed the
        limit.
        """
        try:
            if self._dropped or end - pos > self._limit - len(self._open):
                raise MemoryError
            self._open.extend(memoryview(chunk)[pos:end])
        except MemoryError:  # raised above, or by a board
            self._dropped += len(self._open) + end - pos
            self._open = bytearray()

    def _end_item(self, is_cut: bool) -> tuple:
        dropped = self._dropped
        try:
            item = bytes(self._open)
        except MemoryError:
            dropped = len(self._open)
        self._open, self._dropped = bytearray(), 0
        if dropped:
            return OVER if self._marked else LONG, b"%d" % dropped
        if item.endswith(b"\r"):
            item = item[:-1]
        return (CUT if is_cut else MARKED) if self._marked else LOOSE, item
