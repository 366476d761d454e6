"""A socket in the place of what no ``select`` can wait for: on Windows that is a serial port, a
console and the pipes of a process.

Threads carry the bytes.  What the other end does not take waits in the socket, so both sides slow
down as they would without it; an end or an error at one end is the end at the other."""

import contextlib
import socket
import threading

_PIECE = 4096
_DRAIN_S = 1  # for what was sent last
# pyserial raises the last two for a port that was closed meanwhile
_FAILURES = (OSError, TypeError, ValueError, AttributeError)


class Bridge:
    """The socket ``socket``, which others read and write, until ``close``.

    read   function() -> bytes, which waits for some; b"" or ``OSError``: the end
    write  function(bytes), which takes all of them, or None: nothing is written
    end    function(), called when nothing more will be written
    """

    def __init__(self, read, write=None, end=None):
        self.socket, self._far = socket.socketpair()
        self.socket.setblocking(False)
        self._in = threading.Thread(target=self._carry_in, args=(read,), daemon=True)
        self._out = threading.Thread(target=self._carry_out, args=(write, end), daemon=True)
        self._in.start()
        if write:
            self._out.start()

    def finish(self) -> None:
        """Say that nothing more comes, and wait a moment until the rest is written."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        if self._out.ident is not None:
            self._out.join(_DRAIN_S)

    def close(self) -> None:
        self.socket.close()
        with contextlib.suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)

    def _carry_in(self, read) -> None:
        try:
            while data := read():
                self._far.sendall(data)
        except _FAILURES:
            pass
        with contextlib.suppress(OSError):
            self._far.shutdown(socket.SHUT_WR)

    def _carry_out(self, write, end) -> None:
        try:
            while data := self._far.recv(_PIECE):
                write(data)
            if end:
                end()
        except _FAILURES:
            with contextlib.suppress(OSError):
                self._far.shutdown(socket.SHUT_RDWR)
