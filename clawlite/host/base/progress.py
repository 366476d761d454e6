"""The progress of a long run, such as ``clawlite bench``: one line on a terminal that is stderr,
overwritten as the run goes on.  Where stderr is no terminal, nothing is shown.

1. No thread draws the line, because nothing else may run in a process that measures.  The line
   changes when a part begins and after something was printed.
2. The cursor stays at the start of the line, so that the output of others overwrites it.
"""

import sys
import time

LEAST_SCALE = 0.5  # of recorded seconds
_MINUTE = 60
_ERASED = "\r\x1b[K"


class RunProgress:
    """The progress of one run; ``with`` removes the line at the end.

    parts  [(name, recorded seconds of that part)] in the order of the run
    """

    def __init__(self, parts: list[tuple[str, float]]):
        self._parts = parts
        self._at = 0
        self._is_shown = sys.stderr.isatty()
        self._started = self._begun = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._write(_ERASED)

    def begin(self, at: int) -> None:
        """Say that part number *at*, counted from 0, begins."""
        if at != self._at:
            self._at, self._begun = at, time.monotonic()
        self._draw()

    def show(self, write, what) -> None:
        """Call ``write(what)``, which prints, with the line removed; then draw the line again."""
        self._write(_ERASED)
        write(what)
        self._draw()

    def _draw(self) -> None:
        name, _ = self._parts[self._at]
        now = time.monotonic()
        seconds = seconds_left(
            self._parts, self._at, self._begun - self._started, now - self._begun
        )
        said = f"{name}, {self._at + 1} of {len(self._parts)}, about {duration(seconds)} left"
        self._write(_ERASED + said + "\r")

    def _write(self, text: str) -> None:
        if self._is_shown:
            sys.stdout.flush()  # it may be the same terminal
            sys.stderr.write(text)
            sys.stderr.flush()


def seconds_left(parts: list[tuple[str, float]], at: int, before_s: float, now_s: float) -> float:
    """Return about how many seconds the run still takes: the recorded seconds of the parts that are
    not done, scaled by how much slower than recorded the parts before were.

    before_s, now_s  seconds that the parts before number *at* took, and that this part took so far
    """
    done, rest = (sum(seconds for _, seconds in some) for some in (parts[:at], parts[at:]))
    # parts that fail at once say nothing of how fast this machine is
    scale = max(LEAST_SCALE, before_s / done) if done else 1
    return max(0.0, rest * scale - now_s)


def estimate_left(took_s: float, done: float, total: float) -> float:
    """Return how many seconds the rest takes, where *done* of *total* took *took_s*."""
    return took_s * (total - done) / done


def duration(seconds: float) -> str:
    """Return *seconds* for people."""
    return f"{seconds:.0f} s" if seconds < _MINUTE else f"{seconds / _MINUTE:.0f} min"
