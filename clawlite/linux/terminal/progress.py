"""The progress of long work, with the time that is left: one line on stderr.

On a terminal it is overwritten and removed at the end; elsewhere it is a new line every few
seconds.  What takes less than a second shows nothing.  stdout is never touched.
"""

import sys
import time

FIRST_S, SCREEN_S, LINE_S = 1.0, 0.2, 5.0  # the first one; between two on a terminal; elsewhere
_MINUTE = 60


class Progress:
    """``with Progress(what, total) as progress: progress.reach(done)``.

    what   "Verifying": our own word
    total  of what ``reach`` counts; 0: nothing is shown
    """

    def __init__(self, what: str, total: int, now_s=time.monotonic):
        self._what, self._total, self._now_s = what, total, now_s
        self._is_terminal = sys.stderr.isatty()
        self._began = now_s()
        self._due = self._began + FIRST_S
        self._is_shown = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._is_shown and self._is_terminal:
            self._write("\r\x1b[K")

    def reach(self, done: int):
        """Say how much is done by now."""
        now = self._now_s()
        if now < self._due or not 0 < done <= self._total:
            return
        self._due = now + (SCREEN_S if self._is_terminal else LINE_S)
        self._is_shown = True
        left = (now - self._began) * (self._total - done) / done
        said = "%s: %d %%, about %s left" % (self._what, 100 * done // self._total, duration(left))
        self._write("\r%s\x1b[K" % said if self._is_terminal else said + "\n")

    def count(self, lines):
        """Yield *lines*, bytes without line feeds; *total* is their bytes, with line feeds."""
        done = 0
        for line in lines:
            yield line
            done += len(line) + 1
            self.reach(done)

    def _write(self, text: str):
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:  # whoever read it is gone: the work goes on
            self._total = 0


def duration(seconds: float) -> str:
    """Return *seconds* for people."""
    return "%d s" % seconds if seconds < _MINUTE else "%d min" % round(seconds / _MINUTE)
