"""Connections to servers, such as providers: a worker thread for each, whose results are events for
a loop that never blocks.

1. Only its worker uses a socket (stream.py).  The loop and the worker share a ``Connection``, under
   one lock: bytes not yet polled, how the connection ended, and a pipe that wakes the worker out of
   any wait.
2. A closed connection has no more events: its object is forgotten at once, so a late result is
   dropped, even when its key is in use again.
3. At most ``UNREAD`` bytes and one piece of a connection wait here.  A worker that is ahead waits
   until they are polled.
4. No thread keeps the process from exiting, and none ends in a traceback.
5. Plain http needs only modules that the loop has loaded anyway: ``_socket`` and ``_thread``
   (docs/adr/0011-asking-providers.md).
"""

import _thread
import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.net.stream import Cancelled, Failure, Stream, check_host

UNREAD = 262144  # bytes of one connection that may wait to be polled
PIECE = 16384  # bytes of one read; a TLS record holds as many
BEHIND_PROXY = (
    "the environment names a proxy for %s, and behind one nobody can check which "
    "address is reached "
    "(no_proxy=HOST lets it go directly)"
)


class Connection:
    """The state that the loop and one worker share, under the lock of ``Connections``.

    is_sent  whether a part of the request may have been sent: until then, nothing can have arrived
    """

    def __init__(self):
        self.is_sent = False
        self.reader = self.writer = None  # the pipe; the worker closes both
        self.cancelled = False
        self.unread = bytearray()
        self.final = None  # (kind, data) once it has ended
        self.found = None  # result of the name look-up: a list of addresses, or a sentence

    def nudge(self):
        """Wake the worker after a change.  Make the change first: the worker may read it before
        this returns.
        """
        if self.writer is not None:
            os.write(self.writer, b"\0")


class Connections:
    """All connections of one agent.

    wake     descriptor of a pipe: one byte is written when ``poll`` has something, and no second
             byte before ``poll`` was called
    environ  mapping with the proxies' variables; default ``os.environ``
    authorities  as in tls.py
    """

    def __init__(self, wake: int, environ=None, authorities: list = ()):
        self._wake = wake
        self._authorities = authorities
        self._environ = os.environ if environ is None else environ
        self._open = {}
        self._lock = _thread.allocate_lock()
        self._told = False  # a byte was written to the wake pipe since the last ``poll``
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
    ) -> Connection:
        """Begin to connect, to send *parts*, and to receive until the peer closes; return at once.

        key      hashable, not open now (else ``ValueError``)
        scheme   "http" or "https"
        host     name in ASCII, or address (IPv6 with or without its brackets)
        parts    list of bytes: a whole HTTP/1.1 request in origin form
        connect_timeout_ms   for look-up, connecting, proxy and TLS handshake together
        check    function(all addresses of *host*, 4 or 16 bytes each) -> the addresses that are
                 allowed; called in the worker, raises ``ClawError``.  With it the connection is
                 direct, and refused when a proxy is set for it
        Every failure is an event.
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
        return connection

    def poll(self) -> list:
        """Return the events since the last call, never waiting: (key, "data", bytes), (key, "end",
        b"") when the peer has closed, (key, "error", sentence), (key, "refused", exception of
        *check*).  After the last three the key is free.  Data of one key comes in one piece, at
        most ``UNREAD + PIECE`` bytes long."""
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
        """End the connection, in whatever phase it is; it has no more events.  An unknown key is
        ignored: its connection has ended.
        """
        connection = self._open.pop(key, None)
        if connection:
            with self._lock:
                connection.cancelled = True
                connection.unread = bytearray()
                connection.nudge()

    def close_all(self):
        """End every connection.  Nothing is written to *wake* afterwards, so it may be closed."""
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
        except Exception as e:  # MemoryError, or a bug: its text might contain sent data
            final = ("error", "the connection failed inside (%s)" % type(e).__name__)
        stream.close()
        self._finish(connection, final)

    def _talk(self, stream: Stream, scheme: str, host: str, port: int, parts: list, check):
        host = check_host(scheme, host, port)
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
        stream.due = None  # from here on, the caller has its own time limit
        stream.connection.is_sent = True
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
            except OSError:  # the pipe is full, so it is readable and wakes the loop
                pass


def proxy_for(scheme: str, host: str, port: int, environ):
    """Return the ``proxy.Proxy`` for this connection, or None.  Without proxies in the environment,
    that module is not loaded.
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
    """Send *parts*; return "", or why that failed.  It does not raise, because a server that stops
    reading may have answered first, as with 401 or 413.
    """
    try:
        stream.send(b"".join(parts))
    except OSError as e:
        return stream.words(e)
    return ""
