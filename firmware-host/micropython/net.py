"""What remote providers need of a board: plain connections polled with the console, and secrets.

Loaded for images that require ``http`` alone.  The look-up of a name, the connect and the sending block, at most
``timeout_ms`` each; an answer comes in pieces, between everything else.
"""
import os
import select
import socket

from clawlite.core import effect as E
from clawlite.core.errors import ClawError, ProviderError
from clawlite.core.image import WIRE

_PIECE = 512
_KEEP = 2048                    # bytes of a conversation: a provider sees that much of what was said before
_SECRET = 8192                  # bytes at most


class Net:
    """The remote side of one device.

    agent   ``agent.Agent``
    poll    the device's ``select.poll``: sockets are registered with it
    folder  where ``secrets/NAME`` lies
    clock   function -> (monotonic ms, seconds since 1970 or None)
    """

    def __init__(self, agent, poll, folder: str, clock):
        self._agent = agent
        self._poll = poll
        self._folder = folder
        self._clock = clock
        self._sockets = {}              # task -> socket
        agent.keep_bytes = _KEEP

    def carry_out(self, effect: tuple):
        """Carry out an effect of a provider."""
        kind, task = effect[0], effect[1]
        if kind == E.OPEN:
            try:
                self._open(task, effect[3], effect[4], effect[5], effect[6])
            except OSError as e:
                self.close(task)
                self._received(task, (False, ProviderError("no connection to %s: %s" % (effect[3], e))))
        elif kind == E.CLOSE or kind == E.CANCEL:
            self.close(task)
        elif kind == E.SECRET:
            self._agent.done(task, self._secret(effect[2]), self._clock()[0])

    def _open(self, task: int, host: str, port: int, parts: list, timeout_ms: int):
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
        opened = socket.socket(address[0], socket.SOCK_STREAM)
        self._sockets[task] = opened
        opened.settimeout(timeout_ms / 1000)
        opened.connect(address[-1])
        for part in parts:
            if isinstance(part, bytes):
                _send(opened, part)
            else:                       # what is longest in a request goes from flash to the wire
                for at in range(0, part[1], _PIECE):
                    size = part[1] - at
                    _send(opened, self._agent.image.part(WIRE, part[0] + at, size if size < _PIECE else _PIECE))
        opened.setblocking(False)
        self._poll.register(opened, select.POLLIN)

    def ready(self, polled):
        """Hand in what a socket that polls ready has; others are none of ours."""
        for task in list(self._sockets):
            if self._sockets[task] is polled:
                try:
                    data = polled.read(_PIECE)
                except OSError as e:
                    self.close(task)
                    self._received(task, (False, ProviderError("the connection was reset: %s" % e)))
                    return
                if data is not None:
                    self._received(task, (True, data))

    def close(self, task: int):
        """End the connection of *task*, if it has one."""
        opened = self._sockets.pop(task, None)
        if opened is not None:
            try:
                self._poll.unregister(opened)
            except (OSError, KeyError):
                pass                    # it never got that far
            opened.close()

    def _received(self, task: int, outcome: tuple):
        self._agent.received(task, outcome, self._clock()[0])

    def _secret(self, name: str) -> tuple:
        """Return (True, the value) from ``secrets/NAME`` beside the image or, on the unix port, the environment."""
        value = None
        if "/" not in name:
            try:
                with open("%s/secrets/%s" % (self._folder, name)) as file:
                    value = file.read(_SECRET)
            except OSError:
                value = os.getenv(name) if hasattr(os, "getenv") else None
        if not value:
            return False, ClawError("secret %s: not found in state/secrets on this board, nor in the environment" % name,
                                    "clawlite secrets set %s --port PORT" % name)
        return True, value[:-1] if value.endswith("\n") else value


def _send(opened, data: bytes):
    view = memoryview(data)
    while len(view):
        view = view[opened.write(view):]
