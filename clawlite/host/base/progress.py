"""How far a long run is, such as ``clawlite bench``: one line on a terminal that is stderr,
overwritten as the run goes on.  Elsewhere nothing is shown.

1. No thread draws it, so that nothing else runs in the process that measures: the line changes when
   a part begins and after what is printed.
2. The cursor stays at the start of the line, so that what others write to the terminal does not
   follow it.
"""

import sys
import time

_MINUTE = 60
_ERASED = "\r\x1b[K"


class Progress:
    """The progress of one run; ``with`` removes the line at the end.

    parts  [(name, seconds that it took where that was recorded)] in the order of the run
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
        """Part number *at*, from 0, is what is measured from now on."""
        if at != self._at:
            self._at, self._begun = at, time.monotonic()
        self._draw()

    def show(self, write, what) -> None:
        """Call ``write(what)``, which prints, while the line is removed."""
        self._write(_ERASED)
        write(what)
        self._draw()

    def _draw(self) -> None:
        name, _ = self._parts[self._at]
        now = time.monotonic()
        seconds = left(self._parts, self._at, self._begun - self._started, now - self._begun)
        said = f"{name}, {self._at + 1} of {len(self._parts)}, about {duration(seconds)} left"
        self._write(_ERASED + said + "\r")

    def _write(self, text: str) -> None:
        if self._is_shown:
            sys.stdout.flush()  # of the same terminal
            sys.stderr.write(text)
            sys.stderr.flush()


def left(parts: list[tuple[str, float]], at: int, before_s: float, now_s: float) -> float:
    """Return about how many seconds a run still takes: what was recorded of the parts that are not
    done, times how much longer than recorded the others took.

    before_s, now_s  seconds that the parts before number *at* took, and that this one has taken
    """
    done, rest = (sum(seconds for _, seconds in some) for some in (parts[:at], parts[at:]))
    return max(0.0, rest * (before_s / done if done else 1) - now_s)


def duration(seconds: float) -> str:
    """Return *seconds* for people."""
    return f"{seconds:.0f} s" if seconds < _MINUTE else f"{seconds / _MINUTE:.0f} min"
