"""The agent's log on a board: JSON lines in ``log.jsonl`` beside the image, at most two files of 16
KiB.

Written only for an image that needs it (a rule that is ``audit-only``), because flash wears out.
For such an image, a line that cannot be written is an ERROR of the agent (CKP 0.2.0, section 8).
"""

import os

from clawlite.core.base.errors import ClawError
from osfields import STAT_SIZE

_LIMIT = 16384
_FULL = 28  # ENOSPC
_PRINTED = 500  # characters of one print


class Log:
    """While it cannot be written, the first line that failed waits; later lines are lost."""

    def __init__(self, folder: str, dumps, guard):
        self._path, self._dumps, self._guard = folder + "/log.jsonl", dumps, guard
        self._waiting = self._error = None
        try:
            self._size = os.stat(self._path)[STAT_SIZE]
        except OSError:
            self._size = 0

    def write(self, event: dict) -> bool:
        """Append one event; return whether it is in flash."""
        line = self._dumps(event)
        line = (self._guard.text(line) if self._guard else line) + "\n"
        try:
            self._flush()
            self._append(line)
        except OSError as e:
            self._error = e
            self._waiting = self._waiting or line
            return False
        return True

    def print_text(self, *parts, sep=" ", end="", file=None):
        """Take what tools.py prints, in the place of ``print``."""
        text = sep.join([str(part) for part in parts])
        self.write({"event": "tool.print", "text": text[:_PRINTED]})

    def check(self):
        """Write the waiting line, if there is one.  Raises ``ClawError``."""
        try:
            self._flush()
        except OSError as e:
            self._error = e
            raise self.problem()

    def problem(self) -> ClawError:
        """Return the error for the last failure."""
        return ClawError(
            "the log that a policy demands (audit-only) cannot be written: %s: %s"
            % (self._path, self._error),
            "make room for it" if self._error.args[0] == _FULL else "look at the flash",
        )

    def _flush(self):
        if self._waiting:
            self._append(self._waiting)
            self._waiting = None

    def _append(self, line: str):
        if self._size + len(line) > _LIMIT:
            os.rename(self._path, self._path + ".1")
            self._size = 0
        with open(self._path, "a") as file:
            file.write(line)
        self._size += len(line)
