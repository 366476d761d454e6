"""Whether a text that comes piece by piece only repeats itself.  No I/O.

Small models do this: "aaaa", or a paragraph over and over, until a limit of tokens ends it.
"""

LONGEST = 1024  # bytes of what is repeated
TIMES = 4  # in a row
# bytes of all repetitions: shorter ones are ordinary, as a ruled line
LEAST = 1024
# bytes whose last occurrence tells after how many bytes a text repeats
_MARK = 16


class Repetition:
    """Looks at one answer.  Cost: at most LONGEST bytes are kept and searched for each piece."""

    def __init__(self):
        self._tail = b""
        self._period = 0  # bytes after which the text repeats, 0 while it does not
        self._repeated = 0  # bytes at the end that equal those one period before

    def add(self, text: str) -> bool:
        """Take the next piece; return whether the text ends with TIMES equal runs or more.

        A run has 1 to LONGEST bytes, and all of them together have LEAST or more.
        """
        data = text.encode("utf-8", "replace")
        whole = self._tail + data
        at = len(self._tail) - self._period
        if self._period and at >= 0 and whole[at : at + len(data)] == data:
            self._repeated += len(data)
        else:
            earlier = whole.rfind(whole[-_MARK:], 0, -1) if len(whole) > _MARK else -1
            self._period = len(whole) - _MARK - earlier if earlier >= 0 else 0
            self._repeated = 0
        self._tail = whole[-LONGEST:]
        if not self._period or self._period > LONGEST:
            return False
        runs = self._repeated + self._period  # the first one is not counted as repeated
        return runs >= LEAST and runs >= TIMES * self._period
