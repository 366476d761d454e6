"""Programs that are MCP servers on stdio, and how far a gateway contains them (docs/adr/0126).

1. On Linux each runs in a sandbox (linux/tools/gateway_server.py), as the image of its device says.
2. Where the machine can contain nothing, no program is started.  Who runs the gateway may name
   those that are to run all the same, as the gateway's user and in an empty folder; warnings then
   say which rules of such a program are not enforced (mcp_servers.py).
"""

import abc
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.host.systems.bridge import Bridge
from clawlite.host.systems.processes import KILL, TERM, base_variables, signal_all

GRACE_S = 0.5  # from the end of its stdin to SIGTERM, and from there to SIGKILL
LAST_S = 1  # after the end of its stdout, for the news of what ended it
_SAID = 2000  # characters of stderr that are kept
_PIECE = 65536
ONLY_LINUX = "only Linux can contain a program - run this gateway on Linux"


class Programs:
    """What starts programs.

    sandboxes    ``clawlite.linux.tools.gateway_server.Sandboxes``; None: this is no Linux
    uncontained  names of servers that run without a sandbox
    """

    def __init__(self, sandboxes=None, uncontained=()):
        self._sandboxes, self.uncontained = sandboxes, frozenset(uncontained)

    def of(self, image, name: str, *rules) -> "Program":
        """Return the program of the server *name*, to be opened; *rules*: as ``Sandboxes.start``
        has them after the image.  Raises ``ClawError`` or ``OSError``.
        """
        if name in self.uncontained:
            argv, names, *_ = rules
            return (_Bridged if sys.platform == "win32" else _Uncontained)(argv, names)
        if self._sandboxes is None:
            raise SandboxDenied(ONLY_LINUX, f"or with --uncontained {name}")
        return _Contained(self._sandboxes.start(image, *rules))

    async def missing(self) -> str:
        """Return why this machine cannot contain a program, and what to do about it, or ""."""
        if self._sandboxes is None:
            return ONLY_LINUX
        return await asyncio.to_thread(self._sandboxes.missing)


class Program(abc.ABC):
    """One program.  ``end`` follows in any case, also when ``open`` was given up."""

    @abc.abstractmethod
    async def open(self) -> None:
        """Begin to talk to it.  Raises ``ClawError``."""

    @abc.abstractmethod
    async def read(self) -> bytes:
        """Return what has come on its stdout, b"" at its end.  Raises ``ClawError`` when it could
        not be started.
        """

    @abc.abstractmethod
    def write(self, data: bytes) -> int:
        """Send it *data*; return how many bytes it has not read yet."""

    @abc.abstractmethod
    async def settle(self) -> None:
        """Wait a short time for the last stderr of the program, and for what ended it."""

    @abc.abstractmethod
    def errors(self) -> str:
        """Return the end of what it wrote to stderr, and what ended it."""

    @abc.abstractmethod
    async def end(self) -> None:
        """End it and all that it started."""


class _Contained(Program):
    """A program in a sandbox.  server: ``gateway_server.GatewayServer``."""

    _reader: Any = None
    _writer: Any = None

    def __init__(self, server):
        self._server = server
        self._is_silent = True
        self._over = asyncio.Event()
        asyncio.get_running_loop().add_reader(server.fileno(), self._poll)

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(sock=self._server.stream)

    def _poll(self) -> None:
        if self._server.poll():
            self._over.set()

    async def read(self) -> bytes:
        try:
            data = await self._reader.read(_PIECE)
        except ConnectionError:
            return b""
        error = self._server.not_started(data) if self._is_silent else None
        if error is not None:
            raise error
        self._is_silent = False
        return data

    def write(self, data: bytes) -> int:
        self._writer.write(data)
        return self._writer.transport.get_write_buffer_size()

    async def settle(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), LAST_S)

    def errors(self) -> str:
        return self._server.errors()

    async def end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._server.fileno())
        if self._writer is not None:
            self._writer.transport.abort()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        await asyncio.to_thread(self._server.end)


class _Uncontained(Program):
    """A program as the gateway's user, in an empty folder."""

    _process: Any = None
    _listens: Any = None

    def __init__(self, argv: list, names: list):
        self._argv, self._errors = argv, b""
        self._home = tempfile.mkdtemp()
        self._env = {**base_variables(), "LANG": "C.UTF-8", "HOME": self._home}
        self._env |= {name: os.environ[name] for name in names if name in os.environ}

    async def open(self) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._home,
                env=self._env,
                start_new_session=True,
            )
        except OSError as e:
            raise ClawError(
                f"{self._argv[0]}: {e.strerror}", "install the program where the gateway runs"
            ) from None
        self._listens = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        while data := await self._process.stderr.read(_PIECE):
            self._errors = (self._errors + data)[-4 * _SAID :]

    async def read(self) -> bytes:
        return await self._process.stdout.read(_PIECE)

    def write(self, data: bytes) -> int:
        if self._process.stdin.is_closing():
            return 0
        self._process.stdin.write(data)
        return self._process.stdin.transport.get_write_buffer_size()

    async def settle(self) -> None:
        await asyncio.wait([self._listens], timeout=GRACE_S)

    def errors(self) -> str:
        return self._errors.decode("utf-8", "replace")[-_SAID:]

    async def end(self) -> None:
        if self._process is not None:
            await self._end(self._process)
        if self._listens is not None:
            self._listens.cancel()
            await quiet(self._listens)
        shutil.rmtree(self._home, ignore_errors=True)

    async def _end(self, process) -> None:
        process.stdin.close()
        for number in (None, TERM, KILL):
            if number is not None:
                signal_all(process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE_S if number else 2 * GRACE_S)
                break
        signal_all(process.pid, KILL)  # what it started and left
        process._transport.close()  # its pipes may be held by others


class _Bridged(Program):
    """As ``_Uncontained``, where the loop starts no programs (Windows): its pipes are behind a
    ``Bridge``.
    """

    _process: Any = None
    _bridge: Any = None
    _reader: Any = None
    _writer: Any = None

    def __init__(self, argv: list, names: list):
        self._argv, self._home = argv, tempfile.mkdtemp()
        self._errors = tempfile.TemporaryFile()
        self._env = {**base_variables(), "HOME": self._home}
        self._env |= {name: os.environ[name] for name in names if name in os.environ}

    async def open(self) -> None:
        try:
            one: Any = subprocess.Popen(
                # a command of npm is a .cmd file, which only its whole path starts
                [shutil.which(self._argv[0]) or self._argv[0], *self._argv[1:]],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=self._home,
                env=self._env,
                start_new_session=True,
            )
        except OSError as e:
            raise ClawError(
                f"{self._argv[0]}: {e.strerror}", "install the program where the gateway runs"
            ) from None
        self._process, pipe = one, one.stdin
        self._bridge = Bridge(lambda: one.stdout.read(_PIECE), pipe.write, pipe.close)
        self._reader, self._writer = await asyncio.open_connection(sock=self._bridge.socket)

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_PIECE)
        except ConnectionError:
            return b""

    def write(self, data: bytes) -> int:
        self._writer.write(data)
        return self._writer.transport.get_write_buffer_size()

    async def settle(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, GRACE_S)

    def errors(self) -> str:
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - _SAID, 0))
        return self._errors.read().decode("utf-8", "replace")

    async def end(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.write_eof()
        if self._process is not None:
            await asyncio.to_thread(self._end, self._process)
        if self._writer is not None:
            self._writer.transport.abort()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._bridge.close()
        self._errors.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _end(self, process) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2 * GRACE_S)
        signal_all(process.pid, KILL)
        process.wait()
        process.stdout.close()


async def quiet(task) -> None:
    """Wait for the end of *task*, which was cancelled."""
    with contextlib.suppress(asyncio.CancelledError):
        await task
