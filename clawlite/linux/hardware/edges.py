"""Edges of pins as the kernel notes them (GPIO character device, version 2), for rules that begin
with a pin: the loop sleeps until one comes, and none between two looks is lost.

1. The lines are those that the bank of pins holds already; they are told to note edges, too.
2. All of them are one descriptor for the loop: epoll(7) over the lines.
3. The kernel keeps 16 edges of a line; when more come at once, it drops the oldest.  Whoever reads
   them looks at the level afterwards.
"""

import fcntl
import os
import select
import time

from clawlite.linux.hardware import gpio


class Edges:
    """The edges of some lines.

    lines  {name of a pin: ``gpio.Line``}; each notes its edges (``Line.note_edges``)
    """

    def __init__(self, lines: dict):
        self._names = {}
        self._epoll = select.epoll()
        try:
            for name, line in lines.items():
                line.note_edges()
                fd = line.fileno()
                fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
                self._epoll.register(fd, select.EPOLLIN)
                self._names[fd] = name
        except BaseException:
            self._epoll.close()
            raise

    def fileno(self) -> int:
        return self._epoll.fileno()

    def read(self) -> list:
        """Return [(ms since it came, pin, level), ...] of the edges that have come, the earliest
        first.
        """
        found, now_ns = [], time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for fd, _ in self._epoll.poll(0):
            data = self._events_of(fd)
            for start in range(0, len(data) - gpio.EVENT.size + 1, gpio.EVENT.size):
                at_ns, kind = gpio.EVENT.unpack_from(data, start)
                age_ms = max(0, (now_ns - at_ns) // 1000000)
                found.append((age_ms, self._names[fd], 1 if kind == gpio.RISING else 0))
        return sorted(found, key=lambda edge: -edge[0])

    def _events_of(self, fd: int) -> bytes:
        try:
            return os.read(fd, 64 * gpio.EVENT.size)
        except BlockingIOError:
            return b""

    def close(self):
        self._epoll.close()


def watch_edges(bank, names: list):
    """Return the ``Edges`` of the pins *names*; None where the kernel notes none, or the pins are
    simulated: then they are looked at every few ms.
    """
    lines = bank.lines(names) if hasattr(bank, "lines") else None
    if not lines:
        return None
    try:
        return Edges(lines)
    except OSError:  # this chip has no interrupts, for one
        return None
