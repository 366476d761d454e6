"""The signatures that a webhook has accepted: kept in ``channels/NAME.seen``, so that none is
accepted again after a restart.

    <epoch seconds when it came> <16 hexadecimal digits> <CRC>    one line each, synced before the
                                                                  request counts

1. Of a signature 8 bytes of a digest are remembered: who does not know the key cannot make two that
   are the same, and by chance one request in 10^14 is refused.
2. A signature is forgotten once its time stamp is too old for any request, at most ``_PART_S``
   later.
3. A torn line belongs to a request that was never acted on, so it is ignored.
4. Lines of earlier versions have whole signatures, or no CRC.  When a line is damaged, the file is
   copied to ``NAME.damaged`` and written again without it, and a message says so on stderr.
"""

from array import array
from bisect import bisect_left

from clawlite.core.base.dialect import sha256
from clawlite.linux.files.record_log import RecordLog, is_sealed, seal
from clawlite.linux.files.rollback_marks import Mark

_PART_S = 60
_DIGITS = 16
_OLD = b"sha256="  # begins a signature of an earlier version


class ReplayCache:
    """The signatures that were accepted.

    path    of the file, or None: nothing outlasts the process
    kept_s  how long a signature is remembered
    Cost: 9 bytes and a bisection of at most a dozen arrays for each.
    """

    def __init__(self, path, kept_s: int):
        self._path, self._kept_s = path, kept_s
        self._log = path and RecordLog(path, "the webhook's list of signatures", Mark(path))
        self._lines = 0  # of the file
        # number of a part of time -> (array('Q') of its digests, sorted, array('B') of the seconds
        # within that part at which they came)
        self._parts = {}
        self._count = 0

    def __contains__(self, signature: str) -> bool:
        digest = _digest_of(signature.encode())
        return any(_has(digests, digest) for digests, _ in self._parts.values())

    def __len__(self) -> int:
        return self._count

    def begin(self, now: int):
        """Read the signatures of earlier processes.  Raises ``OSError``."""
        if not self._log:
            return
        read = self._log.fold(lambda line: self._apply(line, now), is_sealed)
        if read.damaged:
            try:
                self._log.keep_damaged(read, ", so such a request could be accepted once more")
                self._rewrite()
            except OSError:  # it is reported again at the next start
                pass

    def _apply(self, line: bytes, now: int) -> bool:
        """Remember what one line of the file says; return False when it is damaged."""
        when, _, name = line.partition(b" ")
        if is_sealed(line[:-9] + b" " + line[-8:]):  # the blank itself may be what is damaged
            when, _, name = line[:-9].partition(b" ")
        elif not name.startswith(_OLD) or b" " in name:
            return False
        if not (when.isdigit() and len(when) < 12):
            return False
        try:
            digest = _digest_of(name) if name.startswith(_OLD) else int(name, 16)
        except ValueError:
            return False
        if now - int(when) <= self._kept_s:
            self._insert(digest, int(when))
        return digest < 1 << 64

    def _insert(self, digest: int, when: int):
        number, second = divmod(when, _PART_S)
        digests, seconds = self._parts.setdefault(number, (array("Q"), array("B")))
        if digest < 1 << 64 and not _has(digests, digest):
            at = bisect_left(digests, digest)
            digests.insert(at, digest)
            seconds.insert(at, second)
            self._count += 1

    def forget(self, now: int):
        """Forget the signatures that are too old."""
        for number in list(self._parts):
            if now - (number * _PART_S + _PART_S - 1) > self._kept_s:
                self._count -= len(self._parts.pop(number)[0])

    def add(self, signature: str, now: int):
        """Remember *signature*; it is on the disk when this returns.  When it raises ``OSError``,
        the signature is not remembered.
        """
        digest = _digest_of(signature.encode())
        self._insert(digest, now)
        try:
            if self._path:
                self._write(_line(now, digest))
        except OSError:
            digests, seconds = self._parts[now // _PART_S]
            at = bisect_left(digests, digest)
            del digests[at], seconds[at]
            self._count -= 1
            raise

    def _write(self, data: bytes):
        self._log.was_replaced()
        if self._log.fd is None or self._lines > 2 * self._count + 100:
            return self._rewrite()
        self._log.append(data, True)
        self._lines += 1

    def _rewrite(self):
        """Replace the file by a new one with the signatures that are remembered."""
        self._log.rewrite(
            (
                _line(number * _PART_S + second, digest)
                for number, part in self._parts.items()
                for digest, second in zip(*part)
            ),
            True,
        )
        self._lines = self._count

    def close(self):
        if self._log:
            self._log.close()


def _line(when: int, digest: int) -> bytes:
    return seal(b"%d %016x" % (when, digest))


def _digest_of(signature: bytes) -> int:
    return int.from_bytes(sha256(signature).digest()[: _DIGITS // 2], "big")


def _has(digests, digest: int) -> bool:
    at = bisect_left(digests, digest)
    return at < len(digests) and digests[at] == digest
