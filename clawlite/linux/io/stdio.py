"""Reading and writing stdio without ever blocking the loop.

O_NONBLOCK on the descriptor that we got would change the pipe or terminal for every process that
shares it, so the file behind it is opened again.  Where that fails, no more is written at once than
surely fits: PIPE_BUF (4096) bytes into a pipe that polls writable, one into a terminal.
"""

import errno
import os
import select
import stat
import sys
from time import monotonic_ns

from clawlite.core.line.frame import Framer

MAX_LINE = 1048576  # bytes of one record or line
_PIECE = 4096
READ = 65536
FULL = 1 << 20  # bytes that wait to be written before input is no longer read
# a terminal may poll writable and take nothing: then it is asked so often
_AGAIN_MS = 20


def now_ms() -> int:
    """Return the loop's time: monotonic milliseconds."""
    return monotonic_ns() // 1000000


def open_closed():
    """Open /dev/null on each of the descriptors 0 to 2 that is closed, or a file of ours would
    be taken for stdio.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # the lowest free one, which is fd
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
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
    sys.stdout = sys.stderr  # what a tool prints appears at once, not when its buffer is full
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
        self._own = False  # O_NONBLOCK is ours: whatever is written, nothing blocks
        if os.isatty(fd_out) or stat.S_ISFIFO(os.fstat(fd_out).st_mode):
            try:
                self._out = os.open(
                    "/proc/self/fd/%d" % fd_out, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
                )
                self._own = True
            except OSError:  # no /proc, or the terminal or pipe of another user
                self._piece = 1 if os.isatty(fd_out) else _PIECE
        self._poll = select.poll()
        self._polled = {}  # what the poll watches: descriptor -> events
        if wake is not None:
            self._set_events(wake, select.POLLIN)
        self._uneasy = True  # the poll waits, or waited, for more than input
        self._waiting = []
        self._size = 0
        self._stuck = False  # it polls writable, and takes nothing
        # more descriptors that end a wait when they are readable; whose they are reads them
        self._others = ()
        self._watched = []  # those that the poll knows
        self.at_end = False  # no more input will come
        self.broken = False  # nobody reads what is written
        self.fault = ""  # why: a disk that is full, not a reader that has gone

    def write(self, data: bytes):
        """Queue *data*; it leaves as fast as the reader takes it."""
        self._waiting.append(data)
        self._size += len(data)

    def wait(self, timeout_ms) -> bytes:
        """Write what can be written, wait for input at most *timeout_ms* (None: without end), and
        return what came.

        Returns b"" when nothing came: time ran out, a signal woke it, output moved, or either end
        is over."""
        if self._waiting:
            self.flush(0)
            if self.broken:
                return b""
        if self.at_end or self._size or self._uneasy:
            if self._stuck:
                timeout_ms = _AGAIN_MS if timeout_ms is None else min(timeout_ms, _AGAIN_MS)
            self._set_events(self._in, 0 if self.at_end or self._size >= FULL else select.POLLIN)
            self._set_events(self._out, select.POLLOUT if self._size and not self._stuck else 0)
            self._uneasy = self.at_end or self._size > 0
        if self._others or self._watched:
            self._watch(list(self._others))
        for fd, events in self._poll.poll(timeout_ms):
            if fd == self._wake:
                os.read(fd, 512)
            elif fd == self._in:
                return self._read()
        return b""

    @property
    def waits(self) -> int:
        """How many bytes wait to be written."""
        return self._size

    def end(self):
        """Read nothing more."""
        self.at_end = True

    def watch_others(self, descriptors: list):
        """End a wait when one of *descriptors* is readable; the list may change."""
        self._others = descriptors

    def wake_by(self, fd: int):
        """End each wait when *fd* is readable, until this process ends. The caller reads *fd*."""
        self._set_events(fd, select.POLLIN)

    def sleep_by(self, fd: int):
        """End no wait any more when *fd* is readable."""
        self._set_events(fd, 0)

    def _set_events(self, fd: int, events: int):
        """Let the poll watch *events* of *fd*; 0 removes *fd* from it."""
        if self._polled.get(fd, 0) != events:
            self._polled[fd] = events
            if events:
                self._poll.register(fd, events)
            else:
                self._poll.unregister(fd)

    def _watch(self, others: list):
        for fd in self._watched:
            if fd not in others:
                self._set_events(fd, 0)
        for fd in others:
            self._set_events(fd, select.POLLIN)
        self._watched = others

    def ready(self) -> bytes:
        """Return what has come, without waiting; b"" when nothing has."""
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        return self._read() if not self.at_end and poll.poll(0) else b""

    def _read(self) -> bytes:
        try:
            data = os.read(self._in, READ)
        except OSError:  # a terminal that hung up
            data = b""
        self.at_end = not data
        return data

    def flush(self, timeout_ms: int):
        """Write until all is written, the reader has gone, or it has taken nothing for
        *timeout_ms*.
        """
        self._stuck = False
        if not self._waiting:
            return
        data, at = b"".join(self._waiting), 0
        if self._own:  # it mostly takes all of it at once
            at = self._take(data)
        if at < len(data) and not self.broken:
            at = self._press(data, at, timeout_ms)
        if at == len(data) or self.broken:
            self._waiting = []
            self._size = 0
        else:
            self._waiting = [data[at:]]
            self._size = len(data) - at

    def _take(self, data: bytes) -> int:
        """Write *data* to a descriptor of ours; return how many bytes it took."""
        try:
            return os.write(self._out, data)
        except BlockingIOError:
            return 0
        except OSError:  # EPIPE, or a terminal that hung up
            self.broken = True
            return 0

    def _press(self, data: bytes, at: int, timeout_ms: int) -> int:
        """Write *data* from *at* on whenever the descriptor polls writable; return how many bytes
        of *data* are written."""
        poll = select.poll()
        poll.register(self._out, select.POLLOUT)
        while at < len(data) and not self.broken and poll.poll(timeout_ms):
            try:
                at += os.write(self._out, data[at : at + self._piece])
            except BlockingIOError:
                self._stuck = True
                if timeout_ms < _AGAIN_MS:
                    break
                timeout_ms -= _AGAIN_MS
                select.poll().poll(_AGAIN_MS)
            except OSError as e:
                self.broken = True
                if e.errno not in (errno.EPIPE, errno.EIO, errno.ECONNRESET):
                    self.fault = e.strerror
        return at


class Part:
    """One part of an agent: its records, its memory, its providers, a channel's source, a swarm, an
    operator.  The loop (linux/runtime/shell.py) asks all of them alike; each default is that of a
    part that has nothing to do there.

    lasts  bool, others may give the agent something to do by it after the end of stdin
    """

    lasts = False

    def fileno(self) -> int:
        """Return the descriptor that ends the loop's wait when it is readable, or -1."""
        return -1

    def deadline(self):
        """Return the monotonic ms of the next ``poll`` that matters, or None."""

    def poll(self):
        """Take what has come, and do what is due.  Never waits."""

    def update(self):
        """Hear that all effects are carried out, until something comes."""

    def drain(self):
        """Begin nothing more: the process is about to end."""

    def is_busy(self) -> bool:
        """Return whether something is under way that a drain waits for."""
        return False

    def close(self):
        """Write what waits, and end."""
