"""An operator by files (CKP 0.2.0, 9.2, filesystem): for who shares a folder with the agent, such
as another container of the same user.

    DIR/inbox/NAME.json      a message to the agent; removed when it was handled
    DIR/outbox/NUMBER.json   a message of the agent; whoever reads it removes it

1. A file is one JSON document.  Its writer writes it under a name that begins with a dot, and then
   renames it: what has its name is whole.  Older files are taken first, of one age by their names.
2. The three folders are this user's alone (0700), and nothing in them may be a link: who can write
   there could run the agent.  So the operator there is an admin.
3. While ``MOST`` files of the agent wait in the outbox, none is taken from the inbox, and no
   heartbeat is sent.
"""

import os
import stat
import time

from clawlite.core.base.effect import SEND_TO
from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.core.policy.access import ADMIN
from clawlite.core.protocol import rpc
from clawlite.linux.files.files import mend, write_whole
from clawlite.linux.io.jsontext import request
from clawlite.linux.io.stdio import MAX_LINE, Part, now_ms
from clawlite.linux.tasks.operator_line import Person, RoleSession

MOST = 1000  # files in the outbox
ACTOR = "folder"
_BUSY_MS, _IDLE_MS, _CALM_MS = 20, 200, 5000  # looks while there is traffic, and when there is none
_END = ".json"


class FolderLine(Part):
    """The line of one folder.

    parts  ``agent_parts.AgentParts``
    Raises ``ClawError`` when the folder is not this user's alone.
    """

    lasts = True

    def __init__(self, parts, folder: str):
        self._parts = parts
        _make(folder)
        self._inbox, self._outbox = [_open(os.path.join(folder, name)) for name in _NAMES]
        numbers = [int(name[: -len(_END)]) for name in self._names(self._outbox) if _is_own(name)]
        self._number = max(numbers, default=0)
        self._waiting: list = []
        self._look_ms = self._busy_ms = now_ms()
        self._told = ""
        self._session = RoleSession(parts.agent, request, Person(ACTOR, ADMIN), self._send)
        self._session.set_clock(int(time.time()), now_ms())
        self._shares = False

    def _send(self, message):
        self._parts.agent.effects.append((SEND_TO, message, self))

    def write(self, data: bytes):
        """Queue a message: it leaves in the next step, when log and audit are written."""
        self._waiting.append(data)
        self._look_ms = now_ms()

    def flush(self):
        """``poll`` writes what waits: in this step, as ``deadline`` says."""

    def deadline(self):
        beat_ms = self._session.deadline()
        return self._look_ms if beat_ms is None else min(self._look_ms, beat_ms)

    def poll(self):
        """Write what waits, and take the messages that have come."""
        if not self._shares:  # the groups are there after READY
            self._shares = True
            for group in self._parts.groups:
                self._session.share(group)
        if now_ms() < self.deadline():
            return
        try:
            self._write()
            if len(self._names(self._outbox)) < MOST:
                for name in self._by_age():
                    self._take(name)
                self._session.tick(now_ms())
            self._told = ""
        except OSError as e:
            text = "the folder of an operator: %s - %s" % (e.strerror, mend(e))
            if text != self._told:
                self._told = text
                self._parts.warn(text)
        is_busy = now_ms() - self._busy_ms < _CALM_MS
        self._look_ms = now_ms() + (_BUSY_MS if is_busy else _IDLE_MS)

    def close(self):
        try:
            self._write()
        except OSError:  # said when it first failed
            pass
        self._session.close()
        for fd in (self._inbox, self._outbox):
            os.close(fd)

    def _names(self, folder: int) -> list:
        return [name for name in os.listdir(folder) if name[0] != "." and name.endswith(_END)]

    def _by_age(self) -> list:
        found = []
        for name in self._names(self._inbox):
            status = os.stat(name, dir_fd=self._inbox, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                found.append((status.st_mtime_ns, name))
        return [name for _, name in sorted(found)]

    def _take(self, name: str):
        self._busy_ms = now_ms()
        try:
            data = _read(self._inbox, name)
        except InvalidRequest as e:
            self._send(rpc.error(None, e))
        else:
            self._session.record(data, now_ms())
        os.unlink(name, dir_fd=self._inbox)

    def _write(self):
        while self._waiting:
            draft, name = ".draft", "%012d%s" % (self._number + 1, _END)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(draft, flags, 0o600, dir_fd=self._outbox)
            try:
                write_whole(fd, self._waiting[0])
            finally:
                os.close(fd)
            os.rename(draft, name, src_dir_fd=self._outbox, dst_dir_fd=self._outbox)
            self._number += 1
            self._busy_ms = now_ms()
            del self._waiting[0]


_NAMES = ("inbox", "outbox")


def _is_own(name: str) -> bool:
    stem = name[: -len(_END)]
    return stem.isascii() and stem.isdigit()


def _make(folder: str):
    """Make the folders that are not there."""
    for path in (folder, *[os.path.join(folder, name) for name in _NAMES]):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            os.close(_open(path))
        except OSError as e:
            raise ClawError("%s: %s" % (path, e.strerror), mend(e)) from None


def _open(path: str) -> int:
    """Return an open folder that is this user's alone.  Raises ``ClawError``."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as e:
        raise ClawError(
            "%s: expected a folder, and no link (%s)" % (path, e.strerror), "name another folder"
        ) from None
    status = os.fstat(fd)
    if status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077:
        return fd
    os.close(fd)
    raise ClawError(
        "%s: others may use it (mode %03o): who can write there runs the agent"
        % (path, stat.S_IMODE(status.st_mode)),
        "chmod 700 '%s', and make it this user's own" % path,
    )


def _read(folder: int, name: str) -> bytes:
    """Return the document in a file.  Raises ``InvalidRequest`` for what is none, ``OSError``."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        raise InvalidRequest("inbox: expected files, found something else") from None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        is_own = status.st_uid == os.geteuid() and status.st_nlink == 1
        if not stat.S_ISREG(status.st_mode) or not is_own:
            raise InvalidRequest("inbox: expected files of this user alone, without links")
        data = file.read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        raise InvalidRequest("record: expected at most %d bytes, got more" % MAX_LINE)
    return data
