"""One line to an agent of this machine: its control socket (linux/tasks/control_socket.py)."""

import asyncio
import contextlib
import json
import os
import socket
import time

from clawlite.core.base.errors import ClawError

MAX_LINE = 1048576  # bytes of a message to an agent (linux/io/stdio.py)
_MOST_KEPT = 4 << 20  # bytes of a line from an agent that has no end yet
# JSON takes these as white space outside of a text and refuses them inside, as it does a tab; a
# record separator it takes nowhere.  So one message stays one line, and means what it meant.
_ONE_LINE = bytes.maketrans(b"\n\r\x1e", b"\t\t\x01")


class AgentGone(ClawError):
    """No process of the agent can be reached."""


# All lines read into one buffer, because what comes is taken at once: asyncio's own is mapped and
# unmapped for each read, which takes as long as the read.
_BUFFER = bytearray(65536)


class AgentLine(asyncio.BufferedProtocol):
    """The line of one session.

    connection  its socket
    hear   function(line: bytes) for each message of the agent
    ended  function() at the end of the line
    """

    def __init__(self, connection: socket.socket, hear, ended):
        self._connection, self._hear, self._ended = connection, hear, ended
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self._is_writable = asyncio.Event()
        self._is_writable.set()

    def connection_made(self, transport):
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return _BUFFER

    def buffer_updated(self, nbytes: int):
        self._take(_BUFFER[:nbytes])

    def _take(self, data: bytes | bytearray):
        data = self._rest + data
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            if line:
                self._hear(line)
        if len(self._rest) > _MOST_KEPT:
            self.close()

    def pause_writing(self):
        self._is_writable.clear()

    def resume_writing(self):
        self._is_writable.set()

    def connection_lost(self, error):
        self._is_writable.set()
        self._transport = None
        if error:  # of a write to an agent that has hung up: what it said before is still there
            with contextlib.suppress(OSError):
                self._take(self._connection.recv(len(_BUFFER)))
        self._ended()

    def send(self, message: bytes):
        """Send one message, whatever it is."""
        if self._transport is not None:
            self._transport.write(message.translate(_ONE_LINE) + b"\n")

    async def drain(self):
        """Wait until the agent takes more."""
        await self._is_writable.wait()

    def pause(self, is_paused: bool):
        """Hear nothing more until ``pause(False)``: who listens is slow."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if is_paused else self._transport.resume_reading)()

    def close(self):
        if self._transport is not None:
            self._transport.close()


async def connect(folder: str, person, login_s: float, hear, ended) -> AgentLine:
    """Open a line for *person* to the agent of the state *folder*.  Raises ``AgentGone``.

    login_s  monotonic time of the login
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line = AgentLine(connection, hear, ended)
    connection.setblocking(False)
    try:
        # by the descriptor of the folder: the path of a socket has at most 107 bytes
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            connection.connect(f"/proc/self/fd/{fd}/control.sock")
        finally:
            os.close(fd)
        await asyncio.get_running_loop().create_connection(lambda: line, sock=connection)
    except OSError as e:
        connection.close()
        raise AgentGone(
            f"the agent cannot be reached: {e.strerror or e}",
            "start it with [page] in clawlite.toml, or --socket",
        ) from None
    greeting = {"person": person.name, "role": person.role, "login_ms": int(login_s * 1000)}
    line.send(json.dumps(greeting).encode())
    return line


def now_s() -> float:
    """Return the time of ``login_s``: the clock that agents on this machine have, too."""
    return time.monotonic()
