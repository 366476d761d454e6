"""Whether a text that comes piece by piece only repeats itself: "aaaa", or a paragraph over and
over, as small models do until a limit of tokens ends it.

No part of the text is kept.  Its last bytes become a mark; from one occurrence of the mark to the
next is a run, and runs are compared by length and CRC.  When two differ, a run has one occurrence
more from there on.  A mark that does not come again, or too often, is replaced by a later one.
"""

from binascii import crc32

from clawlite.core.base.dialect import const

LONGEST = 1024  # bytes of what is repeated
TIMES = 4  # in a row
# bytes of all runs together: shorter ones are ordinary, as a ruled line
LEAST = 1024
_MARK = const(16)  # bytes
_PARTS = const(8)  # the most occurrences of a mark in a run


class Repetition:
    """Looks at one answer.  Cost: one look at each byte; 100 bytes are kept."""

    def __init__(self):
        self._mark = self._tail = b""  # _tail: what the mark may have begun in
        self._limit = _MARK  # bytes to wait for a run: more with each that did not come
        self._begin()

    def _begin(self):
        self._parts = 1  # occurrences of the mark in a run
        self._last = None  # (size, CRC) of the run before
        self._part = self._size = self._crc = self._times = 0

    def add(self, data: bytes) -> bool:
        """Take the next piece; return whether the text ends with TIMES equal runs or more.

        A run has 1 to LONGEST bytes, and all of them together have LEAST or more."""
        done = len(self._tail)
        data = self._tail + data
        at = data.find(self._mark) if self._mark else -1
        while at >= 0:
            end = at + _MARK
            self._size += end - done
            self._crc = crc32(data[done:end], self._crc)
            self._part += 1
            done = end
            if self._part == self._parts:
                run = self._size, self._crc
                if self._last is None or run == self._last:
                    self._last = run
                    self._times += 1
                    if self._times >= TIMES and self._times * self._size >= LEAST:
                        return True
                else:
                    self._last = None
                    self._times = 0
                    self._parts += 1
                self._part = self._size = self._crc = 0
            at = data.find(self._mark, at + 1)
        self._size += len(data) - done
        self._crc = crc32(data[done:], self._crc)
        late = self._size >= self._limit
        if late and self._limit < LONGEST:
            self._limit *= 2
        if (late or self._parts > _PARTS or not self._mark) and len(data) >= _MARK:
            self._mark = data[-_MARK:]
            self._begin()
        self._tail = data[1 - _MARK :]
        return False
