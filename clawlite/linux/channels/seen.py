"""The signatures that a webhook has accepted: kept in ``channels/NAME.seen``, so that none is
accepted again after a restart.

    <epoch seconds when it came> <signature> <CRC>      one line each, synced before the request
                                                        counts

1. A signature is forgotten once its time stamp is too old for any request.
2. A torn line belongs to a request that was never acted on, so it is ignored.
3. Lines of earlier versions have no CRC.  When a line is damaged, the file is copied to
   ``NAME.damaged`` and written again without it, and a message says so on stderr.
"""

import os

from clawlite.linux.files.files import print_to_stderr
from clawlite.linux.files.record_log import RecordLog, is_sealed, sealed

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
                data = file.read(MOST_BYTES)
        except FileNotFoundError:
            return
        *lines, torn = data.split(b"\n")
        lines += [torn[:-1]] if is_sealed(torn[:-1]) else []  # only its line feed is damaged
        damaged = sum([not self._is_heeded(line) for line in lines])
        self.forget(now)
        if damaged:
            self._set_aside(data, damaged, len(lines))

    def _is_heeded(self, line: bytes) -> bool:
        """Remember what one line of the file says; return False when it is damaged."""
        text = line
        if is_sealed(line[:-9] + b" " + line[-8:]):  # the blank itself may be what is damaged
            text = line[:-9]
        elif line.count(b" ") != 1:  # lines of earlier versions have one
            return False
        when, _, signature = text.decode("latin-1").partition(" ")
        if not (when.isascii() and when.isdigit() and len(when) < 12):
            return False
        self._when[signature] = int(when)
        return True

    def _set_aside(self, data: bytes, damaged: int, count: int):
        """Keep a copy of the damaged file beside the new one, and report it."""
        said = (
            "the webhook's list of signatures %s was damaged: %d of %d lines are lost, so such a "
            "request could be accepted once more; " % (self._path, damaged, count)
        )
        try:
            said += "the damaged file is kept as %s" % self._log.set_aside(data)
            self._rewrite()
        except OSError as e:  # it is reported again at the next start
            said += "it cannot be set aside: %s" % e.strerror
        print_to_stderr(said)

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
                self._write(_line(now, signature))
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
        lines = [_line(when, name) for name, when in self._when.items()]
        self._log.rewrite(lines, True)
        self._lines = len(lines)

    def close(self):
        if self._log:
            self._log.close()


def _line(when: int, signature: str) -> bytes:
    return sealed(b"%d %s" % (when, signature.encode()))
