"""One TCP connection of a board, with or without TLS; no step blocks.

    look-up of the name -> connect -> TLS handshake, with TLS -> send, receive

1. Each step continues when the device's poll says that it can.  All steps until the connection is
   up share one time limit; then each piece that is sent has that limit.  The caller limits the time
   of the peer's answers.
2. lookup.py looks a name up when the radio knows a name server.  Otherwise the port does, which
   blocks; that happens on the unix port alone.
"""

import select
import socket
from errno import EINPROGRESS

from clawlite.core.base.errors import ClawError

_PIECE = 512  # bytes that are received, and read from flash, at once
_LOOK_UP_MS = 500
_OFFSET, _LENGTH = range(2)  # positions in a part that is given by its place in the image


class Connection:
    """Any method but ``close`` may raise ``OSError`` or ``ClawError``; then the connection has
    failed.

    poll         the device's ``select.poll``
    host, port   a name or an address
    parts        list of what is sent first, see ``queue``
    read         function(offset, length) -> bytes, for parts that are given by their place
    wrap         function(socket, host) -> a stream with TLS, or None
    patience_ms  as in rule 1
    names        function() -> (address, port) of a name server, or None
    Public: ``queue``, what waits to be sent: bytes, or [offset, length]; ``stream``, the object
    that is polled; ``due_ms``, when ``tick`` is due; ``is_up``: the first parts have been sent.
    """

    def __init__(
        self,
        poll,
        host: str,
        port: int,
        parts: list,
        read,
        wrap,
        patience_ms: int,
        names,
        now_ms: int,
    ):
        self._poll, self._host, self._port, self.queue, self._read, self._wrap = (
            poll,
            host,
            port,
            list(parts),
            read,
            wrap,
        )
        self._patience_ms = patience_ms
        self._over_ms = now_ms + patience_ms
        self.due_ms = self._over_ms
        self.stream = self._names = None
        self._view = memoryview(b"")  # the part of the queue that is being sent
        self._mask = 0
        self._is_connected = False
        self.is_up = False
        server = names()
        # no name ends in a digit (RFC 3696, 2)
        if server and not (":" in host or host[-1:].isdigit()):
            from lookup import Lookup

            self._names = Lookup(host, server)
            self.due_ms = now_ms + _LOOK_UP_MS
        else:
            self._connect(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0])

    def tick(self, now_ms: int):
        """Look up the host's address, and check the time limit."""
        if self._names:
            self.due_ms = now_ms + _LOOK_UP_MS
            address = self._names.address(now_ms)
            if address:
                self._names = None
                self.due_ms = self._over_ms
                self._connect(socket.getaddrinfo(address, self._port, 0, socket.SOCK_STREAM)[0])
        if self._over_ms is not None and now_ms >= self._over_ms:
            raise ClawError("timed out after %d ms" % self._patience_ms)

    def _connect(self, address: tuple):
        self.stream = socket.socket(address[0], socket.SOCK_STREAM)
        self.stream.setblocking(False)
        try:
            self.stream.connect(address[-1])
        except OSError as e:
            if e.args[0] != EINPROGRESS:
                raise
        self._mask = select.POLLOUT
        self._poll.register(self.stream, self._mask)

    def ready(self, now_ms: int):
        """Continue, as the poll says that it can: return received bytes, b"" at their end, None
        for none.
        """
        if not self._is_connected:
            self._is_connected = True
            if self._wrap:
                self._poll.unregister(self.stream)
                self.stream = self._wrap(self.stream, self._host)
                self._poll.register(self.stream, self._mask)
        self.flush(now_ms)
        return None if self._mask == select.POLLOUT else self.stream.read(_PIECE)

    def flush(self, now_ms: int):
        """Send what can be sent."""
        if not self._is_connected:
            return
        while self._next():
            size = self.stream.write(self._view)
            if size is None:
                break
            self._view = self._view[size:]
            self._over_ms = self.due_ms = now_ms + self._patience_ms
        else:
            self.is_up = True
            self._over_ms = self.due_ms = None
        # Until the first parts are sent only writing counts: whatever TLS waits for in its
        # handshake is up to TLS.
        wanted = (
            select.POLLIN
            if self.due_ms is None
            else select.POLLIN | select.POLLOUT
            if self._mask & select.POLLIN
            else select.POLLOUT
        )
        if wanted != self._mask:
            self._mask = wanted
            self._poll.modify(self.stream, wanted)

    def _next(self) -> bool:
        """Put the next piece into ``_view``; return whether there is one."""
        while not len(self._view) and self.queue:
            part = self.queue[0]
            if isinstance(part, bytes):
                self._view = memoryview(self.queue.pop(0))
                continue
            size = part[_LENGTH] if part[_LENGTH] < _PIECE else _PIECE
            self._view = memoryview(self._read(part[_OFFSET], size))
            self.queue[0] = [part[_OFFSET] + size, part[_LENGTH] - size]
            if part[_LENGTH] == size:
                self.queue.pop(0)
        return len(self._view) > 0

    def close(self):
        """End the connection."""
        if self._names:
            self._names.close()
        if self.stream is not None:
            try:
                self._poll.unregister(self.stream)
            except (OSError, KeyError):
                pass  # it was never registered
            self.stream.close()
