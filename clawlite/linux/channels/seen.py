"""The signatures that a webhook has accepted: kept in ``channels/NAME.seen``, so that none is
accepted again after a restart.

    <epoch seconds when it came> <signature>     one line each, synced before the request counts

1. A signature is forgotten once its time stamp is too old for any request.
2. A torn line belongs to a request that was never acted on, so it is ignored.
"""

import os

from clawlite.linux.files.record_log import RecordLog

MOST_BYTES = 4 << 20  # of the file that are read: four times as much as MAX_SEEN signatures need


class Seen:
    """The signatures that were accepted, the oldest first.

    path    of the file, or None: nothing outlasts the process
    kept_s  how long a signature is remembered
    """

    def __init__(self, path, kept_s: int):
        self._path, self._kept_s = path, kept_s
        self._log = path and RecordLog(path, "the webhook's list of signatures")
        self._lines = 0  # of the file
        self._when = {}  # signature -> epoch seconds

    def __contains__(self, signature: str) -> bool:
        return signature in self._when

    def __len__(self) -> int:
        return len(self._when)

    def begin(self, now: int):
        """Read the signatures of earlier processes.  Raises ``OSError``."""
        try:
            with open(self._path or os.devnull, "rb") as file:
                lines = file.read(MOST_BYTES).split(b"\n")[:-1]
        except FileNotFoundError:
            return
        for line in lines:
            when, _, signature = line.decode("latin-1").partition(" ")
            if when.isascii() and when.isdigit() and len(when) < 12:
                self._when[signature] = int(when)
        self.forget(now)

    def forget(self, now: int):
        """Forget the signatures that are too old."""
        for old in list(self._when):
            if now - self._when[old] <= self._kept_s:
                break
            del self._when[old]

    def add(self, signature: str, now: int):
        """Remember *signature*; it is on the disk when this returns.  When it raises ``OSError``,
        the signature is not remembered.
        """
        self._when[signature] = now
        try:
            if self._path:
                self._write(b"%d %s\n" % (now, signature.encode()))
        except OSError:
            del self._when[signature]
            raise

    def _write(self, data: bytes):
        self._log.was_replaced()
        if self._log.fd is None or self._lines > 2 * len(self._when) + 100:
            return self._rewrite()
        self._log.append(data, True)
        self._lines += 1

    def _rewrite(self):
        """Replace the file by a new one with the signatures that are remembered."""
        lines = [b"%d %s\n" % (when, name.encode()) for name, when in self._when.items()]
        self._log.rewrite(lines, True)
        self._lines = len(lines)

    def close(self):
        if self._log:
            self._log.close()
