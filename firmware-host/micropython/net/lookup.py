"""The address of a name, requested from a name server (RFC 1035): MicroPython's own look-up blocks
for up to 14 s, and the watchdog is not fed meanwhile.

A question is asked again every AGAIN_MS, until the caller gives up.  An answer counts when it comes
from the server, with the random number of the question and the question itself.  IPv4 alone.
"""

import select
import socket
import struct

from clawlite.core.base.errors import ClawError
from random_bytes import random_bytes

_AGAIN_MS = 2000
_MAX = 512  # bytes of a message
_HOST, _PORT = range(2)  # positions in the address of a server
# positions in its head: QR is the high bit; the low four are the RCODE; the low byte of ANCOUNT
_FLAGS, _CODE, _ANSWERS = 2, 3, 7


class Lookup:
    """Raises ``OSError`` when there is no network, ``ClawError`` for an invalid name.

    name    of a host, or its address, which is then the result
    server  (address, port)
    """

    def __init__(self, name: str, server: tuple):
        self._name, self._server = (
            name,
            socket.getaddrinfo(server[_HOST], server[_PORT])[0][-1],
        )
        # no name ends in a digit (RFC 3696, 2)
        self._question = b"" if name[-1:].isdigit() else _question(name)
        self._id = random_bytes()[:2]
        self._asked = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def address(self, now_ms: int):
        """Return the address, once, or None while there is none yet.  Raises ``ClawError`` when the
        server answers that the name has none.
        """
        if not self._question:
            self.close()
            return self._name
        while self._poll.poll(0):
            data, sender = self._socket.recvfrom(_MAX)
            if sender == self._server and data[:2] == self._id:
                found = _answer(data, self._question)
                if found is not None:
                    self.close()
                    if not found:
                        raise ClawError("no host of the name %s is known" % self._name)
                    return found
        if self._asked is None or now_ms - self._asked >= _AGAIN_MS:
            self._asked = now_ms
            self._socket.sendto(
                self._id + b"\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + self._question,
                self._server,
            )

    def close(self):
        self._socket.close()


def _question(name: str) -> bytes:
    labels = (name[:-1] if name.endswith(".") else name).encode().split(b".")
    for label in labels:
        if not 1 <= len(label) <= 63:
            raise ClawError("%s is no name of a host" % name)
    # A, IN
    return b"".join([bytes([len(label)]) + label for label in labels]) + b"\x00\x00\x01\x00\x01"


def _answer(data: bytes, question: bytes):
    """Return the first address in a message, "" when it says that there is none, None when it does
    not answer *question*.
    """
    end = 12 + len(question)
    if (
        len(data) < end
        or not data[_FLAGS] & 0x80
        or data[4:6] != b"\x00\x01"
        or data[12:end].lower() != question.lower()
    ):
        return None
    # the server failed: it may succeed when it is asked again
    if data[_CODE] & 15 not in (0, 3):
        return None
    for _ in range(data[_ANSWERS]):
        while end < len(data) and 0 < data[end] < 64:
            end += 1 + data[end]
        end += 2 if end < len(data) and data[end] else 1
        if end + 10 > len(data):
            return None  # cut
        kind, _, _, size = struct.unpack(">HHIH", data[end : end + 10])
        end += 10
        if kind == 1 and size == 4 and end + 4 <= len(data):
            return "%d.%d.%d.%d" % tuple(data[end : end + 4])
        end += size
    return ""
