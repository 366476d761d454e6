"""Messages that were given up, of one channel: each is a file, until somebody drops it or runs it
again.

    channels/NAME.dead/7.json     [actor, text, correlation, why, seconds since 1970], with its CRC
                                  (record_log.py)
    channels/NAME.dead/7.retry    the same; somebody wants it to run again, and the agent runs it
                                  the next time it looks here

1. A letter is on disk, synced, before its message is marked as done in the inbox.
2. The command and the agent need no lock, because only ``rename`` changes the state of a letter.
3. At most ``MOST`` letters are kept.  Then the oldest is removed, which is logged.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.record_log import is_sealed, seal, sync_folder
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import dumps, loads

MOST = 1000
SUFFIX = ".dead"  # of the folder
_KEPT, _ASKED = ".json", ".retry"


class Letter:
    """One message that was given up.

    number       its name, from 1;  actor, text, why  strings;  correlation  bytes
    at_s         seconds since 1970 when it was given up
    is_asked     somebody wants it to run again
    is_damaged   the file is not as it was written: the other fields are empty
    """

    def __init__(self, number: int, is_asked: bool, fields):
        self.number, self.is_asked, self.is_damaged = number, is_asked, fields is None
        self.actor, self.text, correlation, self.why, self.at_s = fields or ["", "", "", "", 0]
        self.correlation = bytes.fromhex(correlation)


class DeadLetters:
    """The letters of the folder *path*, which ``put`` makes."""

    def __init__(self, path: str):
        self._path = path

    def all(self) -> list:
        """Return the ``Letter``s, the oldest first."""
        return [self._letter(number, suffix) for number, suffix in self._names()]

    def put(self, actor: str, text: str, correlation: bytes, why: str, at_s: int) -> int:
        """Keep a letter, synced.  Return the number of the oldest letter when it was removed to
        make room, else 0.  Raises ``OSError``.
        """
        os.makedirs(self._path, 0o700, exist_ok=True)
        names = self._names()
        number = names[-1][0] + 1 if names else 1
        draft = self._file(number, "~")
        fd = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with open(fd, "wb") as file:
            file.write(seal(dumps([actor, text, correlation.hex(), why, at_s]).encode()))
            file.flush()
            os.fsync(fd)
        os.rename(draft, self._file(number, _KEPT))
        sync_folder(self._path)
        if len(names) < MOST:
            return 0
        os.unlink(self._file(*names[0]))
        return names[0][0]

    def ask(self, number: int):
        """Let the agent run a letter again.  Raises ``FileNotFoundError``."""
        os.rename(self._file(number, _KEPT), self._file(number, _ASKED))

    def refuse(self, number: int):
        """Keep a letter that was to run again: it does not."""
        os.rename(self._file(number, _ASKED), self._file(number, _KEPT))

    def drop(self, number: int):
        """Remove a letter.  Raises ``FileNotFoundError``."""
        for other, suffix in self._names():
            if other == number:
                return os.unlink(self._file(number, suffix))
        raise FileNotFoundError(2, os.strerror(2), self._file(number, _KEPT))

    def _file(self, number: int, suffix: str) -> str:
        return os.path.join(self._path, "%d%s" % (number, suffix))

    def _names(self) -> list:
        """Return [(number, suffix)], sorted."""
        try:
            parts = [os.path.splitext(name) for name in os.listdir(self._path)]
        except FileNotFoundError:
            return []
        return sorted(
            [
                (int(stem), suffix)
                for stem, suffix in parts
                if suffix in (_KEPT, _ASKED) and stem.isascii() and stem.isdigit()
            ]
        )

    def _letter(self, number: int, suffix: str) -> Letter:
        try:
            with open(self._file(number, suffix), "rb", opener=open_regular) as file:
                line = file.read().rstrip(b"\n")
            return Letter(number, suffix == _ASKED, loads(line[:-9]) if is_sealed(line) else None)
        except (OSError, ClawError, ValueError, TypeError):
            return Letter(number, suffix == _ASKED, None)
