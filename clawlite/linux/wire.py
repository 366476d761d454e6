"""The two ends of stdio: bytes in when there are some, bytes out without ever blocking the loop.

A pipe that polls writable takes PIPE_BUF (4096) bytes at once, so writes of at most that size need no O_NONBLOCK,
which would change the terminal for everybody who shares it.
"""
import os
import select

_PIECE = 4096
READ = 65536
FULL = 1 << 20                  # bytes that wait to be written before input is no longer read


class Wire:
    """A pair of file descriptors and the poll over them.

    fd_in, fd_out  int
    wake           int, a descriptor that ends a wait when it is readable (signals), or None
    """

    def __init__(self, fd_in: int, fd_out: int, wake=None):
        self._in, self._out, self._wake = fd_in, fd_out, wake
        self._waiting = []
        self._size = 0
        self.at_end = False             # no more input will come
        self.broken = False             # nobody reads what is written

    def write(self, data: bytes):
        """Queue *data*; it leaves as fast as the reader takes it."""
        self._waiting.append(data)
        self._size += len(data)

    def wait(self, timeout_ms) -> bytes:
        """Write what can be written, wait for input at most *timeout_ms* (None: without end), and return what came.

        Returns b"" when nothing came: time ran out, a signal woke it, output moved, or the input has ended.
        """
        poll = select.poll()
        if not self.at_end and self._size < FULL:
            poll.register(self._in, select.POLLIN)
        if self._wake is not None:
            poll.register(self._wake, select.POLLIN)
        self.flush(0)
        if self._size and not self.broken:
            poll.register(self._out, select.POLLOUT)
        for fd, events in poll.poll(timeout_ms):
            if fd == self._wake:
                os.read(fd, 512)
            elif fd == self._in:
                try:
                    data = os.read(fd, READ)
                except OSError:         # a terminal that hung up
                    data = b""
                self.at_end = not data
                return data
        return b""

    def flush(self, timeout_ms: int):
        """Write until all is written, the reader has gone, or it has taken nothing for *timeout_ms*."""
        poll = None
        while self._waiting and not self.broken:
            if poll is None:
                poll = select.poll()
                poll.register(self._out, select.POLLOUT)
                data = b"".join(self._waiting)
                self._waiting = [data]
                at = 0
            ready = poll.poll(timeout_ms)
            if not ready:
                break
            try:
                at += os.write(self._out, data[at:at + _PIECE])
            except OSError:             # EPIPE, or a terminal that hung up
                self.broken = True
            if at == len(data):
                self._waiting = []
                poll = None
        if self.broken:
            self._waiting, self._size = [], 0
        else:
            if poll is not None:
                self._waiting = [data[at:]]
            self._size = sum(map(len, self._waiting))
