"""The socket of one board: ``.gateway/boards/NAME/control.sock``, at which the page's process talks
to it as to an agent of this machine (linux/tasks/control_socket.py).

1. It is there while the board is.  Its mode is 0600, and only this process's own user and root may
   connect.
2. The first line says who is there; then follows CKP, a JSON document a line.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import time

from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.core.protocol import rpc
from clawlite.host.base.regular_file import make_private
from clawlite.protocols.secrets.people import ROLES, is_name

NAME = "control.sock"
MAX_SESSIONS = 32
MAX_LINE = 1048576  # bytes of a message
GREET_S = 10  # within which who connects says who is there
_MOST_WAITING = 4 << 20  # bytes for somebody who does not read, and whose line then ends


class Person:
    """Who is at the other end of a line.  login_ms: monotonic ms of this machine."""

    def __init__(self, name: str, role: str, login_ms: int):
        self.name, self.role, self.login_ms = name, role, login_ms
        self.caller = "operator/" + name


class BoardSocket:
    """The socket in *folder*.

    join  function(``Person``, write) -> its session, with ``record(data, now_ms)`` and ``leave()``
    """

    def __init__(self, folder: str, join):
        self._folder, self.join = folder, join
        self.lines = set()
        self._server: asyncio.Server | None = None
        self._inode: int | None = None

    async def open(self):
        """Listen.  Raises ``OSError``."""
        make_private(os.path.dirname(self._folder))
        make_private(self._folder)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # by the descriptor of the folder: the path of a socket has at most 107 bytes
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            draft = NAME + ".new"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=fd)
            os.fchmod(listening.fileno(), 0o600)
            listening.bind(f"/proc/self/fd/{fd}/{draft}")
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(lambda: _Line(self), sock=listening)
            os.rename(draft, NAME, src_dir_fd=fd, dst_dir_fd=fd)
            self._inode = os.stat(NAME, dir_fd=fd).st_ino
        except BaseException:
            listening.close()
            raise
        finally:
            os.close(fd)

    def close(self):
        """Listen no more, and hang up on everybody once they have what was said to them."""
        if self._server is not None:
            self._server.close()
        path = os.path.join(self._folder, NAME)
        with contextlib.suppress(OSError):
            if os.lstat(path).st_ino == self._inode:
                os.unlink(path)
        for line in list(self.lines):
            line.close()


class _Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, socket_: BoardSocket):
        self._socket, self._rest, self._session = socket_, b"", None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport):
        self._transport = transport
        if not _is_own(transport.get_extra_info("socket")):
            transport.abort()
        elif len(self._socket.lines) >= MAX_SESSIONS:
            wanted = f"expected at most {MAX_SESSIONS} sessions, and so many are open"
            self._refuse(InvalidRequest(wanted, "end one of them"))
        else:
            self._socket.lines.add(self)
            self._timer = asyncio.get_running_loop().call_later(GREET_S, transport.abort)

    def data_received(self, data: bytes):
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line and not self._transport.is_closing():
                self._take(line)
        if len(self._rest) > MAX_LINE:
            self._refuse(InvalidRequest(f"record: expected at most {MAX_LINE} bytes"))

    def _take(self, line: bytes):
        if self._session is not None:
            self._session.record(line, time.monotonic_ns() // 1000000)
            return
        try:
            self._session = self._socket.join(_person_of(line), self.write)
        except ClawError as e:
            self._refuse(e)
        if self._timer is not None:
            self._timer.cancel()

    def write(self, data: bytes):
        """Send one message."""
        if not self._transport.is_closing():
            self._transport.write(data + b"\n")
            if self._transport.get_write_buffer_size() > _MOST_WAITING:
                self._transport.abort()

    def _refuse(self, error: ClawError):
        self.write(json.dumps(rpc.error(None, error)).encode())
        self._transport.close()

    def close(self):
        self._transport.close()

    def connection_lost(self, error):
        self._socket.lines.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self._session.leave()


def _person_of(line: bytes) -> Person:
    """Return who the first *line* says is there.  Raises ``InvalidRequest``."""
    try:
        said = json.loads(line)
        name, role, login_ms = said["person"], said["role"], said["login_ms"]
        if is_name(name) and role in ROLES and type(login_ms) is int:
            return Person(name, role, login_ms)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InvalidRequest(
        'expected who is there first: {"person": NAME, "role": ROLE, "login_ms": N}',
        "connect with: clawlite page",
    )


def _is_own(connection) -> bool:
    """Return whether this process's own user, or root, is at the other end (unix(7))."""
    size = struct.calcsize("3i")
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack("3i", said)[1] in (0, os.geteuid())
