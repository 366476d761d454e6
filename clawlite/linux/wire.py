"""The two ends of stdio: bytes in when there are some, bytes out without ever blocking the loop.

A pipe that polls writable takes PIPE_BUF (4096) bytes at once, so writes of at most that size need no O_NONBLOCK, which
would change the pipe for everybody who shares it.  A terminal polls writable when one byte fits, and blocks whoever writes
two: it is opened anew, so that O_NONBLOCK is ours alone.
"""
import os
import select
import sys
from time import monotonic_ns

from clawlite.core.frame import Framer

MAX_LINE = 1048576              # bytes of one record or line
_PIECE = 4096
READ = 65536
FULL = 1 << 20                  # bytes that wait to be written before input is no longer read
_AGAIN_MS = 20                  # a terminal may poll writable and take nothing: then it is asked so often


def now_ms() -> int:
    """Return the loop's time: monotonic milliseconds."""
    return monotonic_ns() // 1000000


def open_closed():
    """Open /dev/null on each of the descriptors 0 to 2 that is closed, or a file of ours would be taken for stdio."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)      # the lowest free one, which is fd
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


def take_over() -> tuple:
    """Return descriptors of this process's stdin and stdout, for records alone.

    From then on a tool that reads stdin finds its end, and what it prints goes to stderr.
    """
    ends = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr             # at once, not when its buffer is full
    return ends


def open_line(operator: bool, wake: int) -> tuple:
    """Return (Wire, Framer) over stdio: for records alone, or for a person and records."""
    ends = take_over() if operator else (0, 1)
    return Wire(ends[0], ends[1], wake), Framer(MAX_LINE, operator)


class Wire:
    """A pair of file descriptors and the poll over them.

    fd_in, fd_out  int
    wake           int, a descriptor that ends a wait when it is readable (signals), or None
    """

    def __init__(self, fd_in: int, fd_out: int, wake=None):
        self._in, self._out, self._wake = fd_in, fd_out, wake
        self._piece = _PIECE
        if os.isatty(fd_out):
            try:
                self._out = os.open("/proc/self/fd/%d" % fd_out, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError:             # no /proc, or a terminal of another user
                self._piece = 1
        self._waiting = []
        self._size = 0
        self._stuck = False             # it polls writable, and takes nothing
        self.others = ()                # more descriptors that end a wait when they are readable; whose they are reads them
        self.at_end = False             # no more input will come
        self.broken = False             # nobody reads what is written

    def write(self, data: bytes):
        """Queue *data*; it leaves as fast as the reader takes it."""
        self._waiting.append(data)
        self._size += len(data)

    def wait(self, timeout_ms) -> bytes:
        """Write what can be written, wait for input at most *timeout_ms* (None: without end), and return what came.

        Returns b"" when nothing came: time ran out, a signal woke it, output moved, or either end is over.
        """
        self.flush(0)
        if self.broken:
            return b""
        poll = select.poll()
        if not self.at_end and self._size < FULL:
            poll.register(self._in, select.POLLIN)
        if self._wake is not None:
            poll.register(self._wake, select.POLLIN)
        for fd in self.others:
            poll.register(fd, select.POLLIN)
        if self._stuck:
            timeout_ms = _AGAIN_MS if timeout_ms is None else min(timeout_ms, _AGAIN_MS)
        elif self._size:
            poll.register(self._out, select.POLLOUT)
        for fd, events in poll.poll(timeout_ms):
            if fd == self._wake:
                os.read(fd, 512)
            elif fd == self._in:
                return self._read()
        return b""

    def ready(self) -> bytes:
        """Return what has come, without waiting; b"" when nothing has."""
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        return self._read() if not self.at_end and poll.poll(0) else b""

    def _read(self) -> bytes:
        try:
            data = os.read(self._in, READ)
        except OSError:                 # a terminal that hung up
            data = b""
        self.at_end = not data
        return data

    def flush(self, timeout_ms: int):
        """Write until all is written, the reader has gone, or it has taken nothing for *timeout_ms*."""
        self._stuck = False
        if not self._waiting:
            return
        data, at = b"".join(self._waiting), 0
        poll = select.poll()
        poll.register(self._out, select.POLLOUT)
        while at < len(data) and not self.broken and poll.poll(timeout_ms):
            try:
                at += os.write(self._out, data[at:at + self._piece])
            except BlockingIOError:
                self._stuck = True
                if timeout_ms < _AGAIN_MS:
                    break
                timeout_ms -= _AGAIN_MS
                select.poll().poll(_AGAIN_MS)
            except OSError:             # EPIPE, or a terminal that hung up
                self.broken = True
        self._waiting = [] if self.broken or at == len(data) else [data[at:]]
        self._size = sum(map(len, self._waiting))
