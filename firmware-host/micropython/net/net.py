"""The services of a board for remote providers: connections, polled with the console, and secrets.

Loaded for images that require ``http`` or ``https``.  Nothing blocks (connection.py): an answer
arrives in pieces, between all other events."""

from boardsecrets import secret
from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.image.image import WIRE
from connection import Connection
from unload import drop

_SCHEME, _HOST, _PORT, _PARTS, _TIMEOUT_MS = range(2, 7)  # of OPEN
_NAME = 2  # of SECRET


class Net:
    """The remote connections of one device.

    agent   ``agent.Agent``
    poll    the device's ``select.poll``: sockets are registered with it
    folder  where ``secrets/NAME`` lies
    clock   function -> (monotonic ms, seconds since 1970 or None)
    names   as in connection.py
    """

    def __init__(self, agent, poll, folder: str, clock, names):
        self._agent, self._poll, self._folder, self._clock, self._names = (
            agent,
            poll,
            folder,
            clock,
            names,
        )
        self._open = {}  # task -> (Connection, host)

    def carry_out(self, effect: tuple):
        """Perform an effect of a provider."""
        kind, task = effect[E.KIND], effect[E.TASK]
        if kind == E.OPEN:
            drop()  # the code that made the request: the answer may need its memory
            try:
                self._begin(
                    task,
                    effect[_SCHEME] == "https",
                    effect[_HOST],
                    effect[_PORT],
                    effect[_PARTS],
                    effect[_TIMEOUT_MS],
                )
            except (OSError, ClawError) as e:
                self._report_failure(task, effect[_HOST], e)
        elif kind == E.CLOSE or kind == E.CANCEL:
            self.close(task)
        elif kind == E.SECRET:
            self._agent.complete(task, secret(self._folder, effect[_NAME]), self._clock()[0])

    def _begin(self, task: int, is_tls: bool, host: str, port: int, parts: list, timeout_ms: int):
        now, epoch = self._clock()
        wrap = None
        if is_tls:
            from secure import wrapper

            wrap = wrapper(self._agent.image, epoch)
        self._open[task] = (
            Connection(
                self._poll, host, port, parts, self._part, wrap, timeout_ms, self._names, now
            ),
            host,
        )

    def _part(self, offset: int, length: int) -> bytes:
        """Return a part of the image: the longest part of a request goes from flash to the wire."""
        return self._agent.image.part(WIRE, offset, length)

    def ready(self, polled):
        """Continue with the connection that polls ready, and pass on received bytes; a stream of
        another owner is ignored.
        """
        for task in list(self._open):
            opened, host = self._open[task]
            if opened.stream is polled:
                try:
                    data = opened.ready(self._clock()[0])
                except (OSError, ValueError, MemoryError, ClawError) as e:
                    self._report_failure(task, host, e)
                    return
                if data is not None:
                    self._hand_over(task, (True, data))

    def deadline(self):
        """Return the time in ms of the next ``tick`` that matters, or None."""
        times = [
            self._open[task][0].due_ms
            for task in self._open
            if self._open[task][0].due_ms is not None
        ]
        return min(times) if times else None

    def tick(self):
        """Look up the addresses of names, and give up connections that take too long."""
        for task in list(self._open):
            opened, host = self._open[task]
            try:
                opened.tick(self._clock()[0])
            except (OSError, ClawError) as e:
                self._report_failure(task, host, e)

    def close(self, task: int):
        """End the connection of *task*, if it has one."""
        opened = self._open.pop(task, None)
        if opened is not None:
            opened[0].close()

    def end(self):
        """End all connections."""
        for task in list(self._open):
            self.close(task)

    def _report_failure(self, task: int, host: str, error):
        is_begun = task in self._open and self._open[task][0].is_up
        self.close(task)
        if isinstance(error, ValueError):  # MicroPython's, about a certificate
            from secure import refusal

            error = ProviderError(refusal(host, error))
        elif not isinstance(error, ProviderError):
            error = ProviderError(
                "%s: %s"
                % (
                    "the connection was reset" if is_begun else "no connection to " + host,
                    error.message if isinstance(error, ClawError) else error,
                )
            )
        self._hand_over(task, (False, error))

    def _hand_over(self, task: int, outcome: tuple):
        self._agent.receive(task, outcome, self._clock()[0])
