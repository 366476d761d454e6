"""Find out whether a text that arrives piece by piece only repeats itself: "aaaa", or a paragraph
over and over.  Small models do that until a limit of tokens ends it.

No part of the text is kept.  Its last bytes become a mark.  The text from one occurrence of the
mark to the next is a run, and runs are compared by length and CRC.  When two runs differ, a run
spans one more occurrence from then on.  A mark that does not come again, or too often, is replaced
by a later one.
"""

from binascii import crc32

LONGEST = 1024  # bytes of the text that is repeated
TIMES = 4  # repetitions in a row
# bytes of all runs together: shorter repetitions are ordinary, such as a ruled line
LEAST = 1024
_MARK = 16  # bytes
_PARTS = 8  # the most occurrences of a mark in a run


class Repetition:
    """Watches one answer.  Cost: each byte is visited once; 100 bytes are kept."""

    def __init__(self) -> None:
        self._mark = self._tail = b""  # _tail: the end of the text, where a mark may have begun
        self._limit = _MARK  # bytes to wait for the next mark: doubled when it did not come
        self._begin()

    def _begin(self) -> None:
        self._parts = 1  # occurrences of the mark in a run
        self._last: tuple | None = None  # (size, CRC) of the run before
        self._part = self._size = self._crc = self._times = 0

    def add(self, data: bytes) -> bool:
        """Add the next piece; return whether the text now ends with TIMES equal runs or more.

        A run has 1 to LONGEST bytes, and all runs together have at least LEAST bytes."""
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
