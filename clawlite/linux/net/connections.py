"""Connections to providers: a worker thread for each, and what they bring as events for a loop that
never blocks.

1. Only its worker touches a socket (stream.py).  What the two threads share is a ``Connection``,
   under one lock: bytes not yet polled, how it ended, and a pipe that wakes the worker out of any
   wait.
2. A closed connection tells nothing more: its object is forgotten at once, so a late result has
   nowhere to go, whoever uses its key by then.
3. At most ``UNREAD`` bytes and one piece of a connection wait here; a worker that is ahead waits
   until they are polled.
4. No thread keeps the process from exiting, and none ends in a traceback.
5. Plain http loads no module but what the loop has anyway: ``_socket`` and ``_thread``
   (docs/adr/0011-connections.md).
"""

import _thread
import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.net.stream import Cancelled, Failure, Stream, checked

UNREAD = 262144  # bytes of one connection that may wait to be polled
PIECE = 16384  # bytes of one read; a TLS record holds as many
BEHIND_PROXY = (
    "the environment names a proxy for %s, and behind one nobody can check which "
    "address is reached "
    "(no_proxy=HOST lets it go directly)"
)


class Connection:
    """What the loop and one worker share.  It changes under the lock of ``Connections`` only."""

    def __init__(self):
        self.reader = self.writer = None  # the pipe; the worker closes both
        self.cancelled = False
        self.unread = bytearray()
        self.final = None  # (kind, data) once it has ended
        self.found = None  # by the name look-up: a list of addresses, or a sentence

    def nudge(self):
        """Wake the worker, to look at what has changed.  First the change: it may look before
        this returns.
        """
        if self.writer is not None:
            os.write(self.writer, b"\0")


class Connections:
    """All connections of one agent.

    wake     descriptor of a pipe: one byte is written when ``poll`` has something, and no second
             one before it was called
    environ  mapping with the proxies' variables; default ``os.environ``
    authorities  as in tls.py
    """

    def __init__(self, wake: int, environ=None, authorities: list = ()):
        self._wake = wake
        self._authorities = authorities
        self._environ = os.environ if environ is None else environ
        self._open = {}
        self._lock = _thread.allocate_lock()
        self._told = False  # the byte in the wake pipe has not been answered by a poll
        self._tls = None

    def open(
        self,
        key,
        scheme: str,
        host: str,
        port: int,
        parts: list,
        connect_timeout_ms: int,
        check=None,
    ):
        """Connect, send *parts*, and bring what comes back until the peer closes; return at once.

        key      hashable, not open now (else ``ValueError``)
        scheme   "http" or "https"
        host     name in ASCII, or address (IPv6 with or without its brackets)
        parts    list of bytes: a whole HTTP/1.1 request in origin form
        connect_timeout_ms   for look-up, connecting, proxy and TLS handshake together
        check    function(all addresses of *host*, 4 or 16 bytes each) -> those that may be
                 connected to; called in the worker, raises ``ClawError``.  With it the connection
                 is direct, and refused where a proxy is named for it
        Whatever goes wrong is an event.
        """
        if key in self._open:
            raise ValueError("connection %r is open" % (key,))
        connection = self._open[key] = Connection()
        try:
            connection.reader, connection.writer = os.pipe()
            _thread.start_new_thread(
                self._work, (connection, scheme, host, port, parts, connect_timeout_ms, check)
            )
        except (OSError, RuntimeError) as e:  # no descriptor, no thread
            self._finish(
                connection,
                ("error", "no connection can be opened: %s" % (getattr(e, "strerror", None) or e)),
            )

    def poll(self) -> list:
        """Return what has come since the last time, never waiting: (key, "data", bytes), (key,
        "end", b"") when the peer has closed, (key, "error", sentence), (key, "refused", what
        *check* raised).  After the last three the key is free. Data of one key comes in one piece,
        at most ``UNREAD + PIECE`` bytes long."""
        events = []
        if not self._told:
            return events
        with self._lock:
            self._told = False
            for key, connection in list(self._open.items()):
                if connection.unread:
                    data, connection.unread = bytes(connection.unread), bytearray()
                    events.append((key, "data", data))
                    if len(data) > UNREAD:
                        connection.nudge()
                if connection.final:
                    events.append((key,) + connection.final)
                    del self._open[key]
        return events

    def close(self, key):
        """End the connection, in whatever phase it is; nothing more is heard of it.  Unknown
        keys are ended already.
        """
        connection = self._open.pop(key, None)
        if connection:
            with self._lock:
                connection.cancelled = True
                connection.unread = bytearray()
                connection.nudge()

    def close_all(self):
        """End every connection.  After it nothing is written to *wake*, which may be closed."""
        for key in list(self._open):
            self.close(key)

    # -- in the worker

    def _work(self, connection: Connection, scheme, host, port, parts, connect_timeout_ms, check):
        stream = Stream(connection, self._lock, connect_timeout_ms)
        final = None
        try:
            self._talk(stream, scheme, host, port, parts, check)
            final = ("end", b"")
        except ClawError as e:
            final = ("refused", e)
        except Cancelled:
            pass
        except Failure as e:
            final = ("error", str(e))
        except OSError as e:
            final = ("error", stream.words(e))
        except Exception as e:  # MemoryError, or a bug: its text might hold what was sent
            final = ("error", "the connection failed inside (%s)" % type(e).__name__)
        stream.close()
        self._finish(connection, final)

    def _talk(self, stream: Stream, scheme: str, host: str, port: int, parts: list, check):
        host = checked(scheme, host, port)
        proxy = proxy_for(scheme, host, port, self._environ)
        if proxy and check:
            raise Failure(BEHIND_PROXY % host)
        if proxy:
            proxy.connect(stream)
            parts = proxy.rewritten(parts)
        else:
            stream.connect(host, port, check)
        if scheme == "https":
            self._encrypt(stream, host)
        stream.due = None  # from here on the caller watches the time
        failed = _send(stream, parts)
        data = stream.receive(PIECE)
        if failed and not data:
            raise Failure(failed)
        while data:
            self._keep(stream, data)
            data = stream.receive(PIECE)

    def _encrypt(self, stream: Stream, host: str):
        try:
            from clawlite.linux.net import tls
        except ImportError:
            raise Failure("https needs TLS, and this Python has none (module ssl)") from None
        if self._tls is None:
            self._tls = tls.context(self._authorities)
        tls.wrap(stream, self._tls, host)

    def _keep(self, stream: Stream, data: bytes):
        connection = stream.connection
        with self._lock:
            if not connection.cancelled:
                connection.unread += data
                self._tell()
        while len(connection.unread) > UNREAD:
            stream.wait(0)
        if connection.cancelled:
            raise Cancelled

    def _finish(self, connection: Connection, final):
        with self._lock:
            fds = connection.reader, connection.writer
            connection.reader = connection.writer = None
            for fd in fds:
                if fd is not None:
                    os.close(fd)
            if not connection.cancelled:
                connection.final = final
                self._tell()

    def _tell(self):
        if not self._told:
            self._told = True
            try:
                os.write(self._wake, b"\0")
            except OSError:  # full: it is readable then, and that is all it is for
                pass


def proxy_for(scheme: str, host: str, port: int, environ):
    """Return the ``proxy.Proxy`` for this connection, or None; without proxies that module
    is not even loaded.
    """
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        if environ.get(name):
            from clawlite.linux.net.proxy import choose

            return choose(scheme, host, port, environ)
    return None


def _send(stream: Stream, parts: list) -> str:
    """Send *parts*.  Returns why that failed, or "": who stops reading may have answered first,
    as with 401 or 413.
    """
    try:
        stream.send(b"".join(parts))
    except OSError as e:
        return stream.words(e)
    return ""
