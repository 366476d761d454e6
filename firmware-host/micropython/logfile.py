"""The agent's log on a board: JSON lines in ``log.jsonl`` beside the image, at most two files of 16 KiB.

Written only for an image that needs it (a rule that is ``audit-only``): flash wears out.
"""
import os
import sys

_LIMIT = 16384


class Log:
    """A full or read-only flash is said once on stderr; the agent goes on."""

    def __init__(self, folder: str, dumps):
        self._path = folder + "/log.jsonl"
        self._dumps = dumps
        try:
            self._size = os.stat(self._path)[6]
        except OSError:
            self._size = 0

    def write(self, event: dict):
        if self._path is None:
            return
        line = self._dumps(event) + "\n"
        try:
            if self._size + len(line) > _LIMIT:
                os.rename(self._path, self._path + ".1")
                self._size = 0
            with open(self._path, "a") as file:
                file.write(line)
            self._size += len(line)
        except OSError as e:
            self._path = None
            sys.stderr.write("clawlite: no log: %s\n" % e)
