"""One socket of one worker: look up, connect, send and receive.  Closing the connection ends any of
these at once.

Every wait is a poll over the socket and the connection's pipe.  ``shutdown`` from another thread
would end a read, but not a wait between two addresses or before ``connect``, and the descriptor may
belong to another file by then.  ``getaddrinfo`` cannot be interrupted, so names are looked up in a
separate thread, whose result is dropped when the connection is gone."""

import _thread
import errno
import os
import select
import time

# the C module under ``socket``: importing ``socket`` costs 7 ms, for selectors and enums
try:
    import _socket as sockets
    from _socket import getaddrinfo
except ImportError:
    import socket as sockets  # type: ignore[no-redef]
    from socket import getaddrinfo

ADDRESSES = 16  # addresses of one name that are tried
_NEXT_S = 0.25  # until the next address is tried beside those that have not answered
_MOST_WORKED = 64
_worked = {}  # (host, port): the address that answered the last time
_UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_SILENT = (None, errno.ETIMEDOUT) + _UNREACHABLE  # None: of TimedOut
_WAITED = object()  # of ``Stream._once``: nothing is done yet


class Failure(Exception):
    """Why a connection failed: one sentence for a person."""


class TimedOut(Failure):
    pass


class Cancelled(Exception):
    """The loop has closed this connection; its result is not wanted any more."""


class _Race:
    """Connections to some addresses that are begun one after the other, until one is there.

    open    {descriptor: (socket, address)} of those that are under way
    next_s  when the next one begins, None when none is left
    code, reason  of the failure that counts: the first that is more than silence
    """

    def __init__(self, addresses: list, due: float):
        self._left = list(addresses)
        self._due = due
        self.open = {}
        self.next_s = 0
        self.code, self.reason = None, "no address"

    def begin(self, now: float):
        """Begin those that are due; return (socket, address) of one that is connected at once."""
        while self._left and (now >= self.next_s or not self.open):
            family, _, _, _, address = self._left.pop(0)
            # where time is short, each has its share of it
            share = (self._due - now) / (len(self._left) + 1)
            self.next_s = now + min(_NEXT_S, share) if self._left else None
            sock = None
            try:
                sock = sockets.socket(family, sockets.SOCK_STREAM)
                sock.setblocking(False)
                code = sock.connect_ex(address)
            except OSError as e:
                code = e.errno
            if code in (0, errno.EISCONN):
                return sock, address
            if code in (errno.EINPROGRESS, errno.EALREADY, errno.EINTR):
                self.open[sock.fileno()] = sock, address
            else:
                self._fail(sock, code)
        return None

    def finish_connect(self, fd: int) -> bool:
        """Return whether the connection at *fd* is there; one that failed is closed, and the next
        begins at once.
        """
        sock, address = self.open[fd]
        code = sock.getsockopt(sockets.SOL_SOCKET, sockets.SO_ERROR) or sock.connect_ex(address)
        if code in (0, errno.EISCONN):
            return True
        if code not in (errno.EINPROGRESS, errno.EALREADY, errno.EINTR):
            del self.open[fd]
            self._fail(sock, code)
        return False

    def take(self, fd: int) -> tuple:
        return self.open.pop(fd)

    def close(self):
        """Close all that are under way."""
        for sock, _ in self.open.values():
            _close(sock)
        self.open.clear()

    def _fail(self, sock, code):
        _close(sock)
        if self._left:
            self.next_s = 0
        if self.code in _SILENT:
            self.code, self.reason = code, words(OSError(code, ""))


class Stream:
    """A socket, and the waits of its worker.

    connection  ``connections.Connection``; its pipe ends a wait
    lock        the lock over *connection*
    timeout_ms  for all waits together, from now; ``due`` None: no limit
    """

    def __init__(self, connection, lock, timeout_ms: int):
        self.connection = connection
        self.sock = None
        # set by TLS: function(exception) -> poll event to wait for, or 0
        self.wants = None
        self.words = words  # replaced by TLS, which has more kinds of errors
        self.due = time.monotonic() + timeout_ms / 1000
        self._lock = lock
        self._timeout_ms = timeout_ms

    def close(self):
        _close(self.sock)
        self.sock = None

    def wait(self, events: int, due: float = None):
        """Wait for *events* of the socket (0: of none), or for a nudge, until *due* or
        ``self.due``.

        Raises ``Cancelled``, ``TimedOut``.
        """
        due = due or self.due
        poll = select.poll()
        poll.register(self.connection.reader, select.POLLIN)
        if events:
            poll.register(self.sock.fileno(), events)
        ready = poll.poll(None if due is None else max(0, (due - time.monotonic()) * 1000))
        if self.connection.cancelled:
            raise Cancelled
        if not ready:
            raise TimedOut("timed out after %g s" % (self._timeout_ms / 1000))
        for fd, _ in ready:
            if fd == self.connection.reader:
                os.read(fd, 512)

    # -- connecting

    def connect(self, host: str, port: int, check=None):
        """Connect to the address of *host* that answers first (RFC 8305): each begins a quarter of
        a second after the one before it, or at once when that failed.  The address that worked the
        last time is first.

        check   see ``Connections.open``: only addresses that it returns are used, without another
                look-up
        Raises ``Failure``, for the first address that refused, else for the last that did not
        answer.
        """
        addresses = self._look_up(host, port)
        if check:
            addresses = _select_allowed(addresses, check)
        place = host, port
        race = _Race(_in_turns(addresses, _worked.get(place))[:ADDRESSES], self.due)
        try:
            self.sock, address = self._win(race)
        finally:
            race.close()
        if len(addresses) > 1:
            if place not in _worked and len(_worked) >= _MOST_WORKED:
                _worked.clear()
            _worked[place] = address
        self.sock.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)

    def _win(self, race) -> tuple:
        """Return (socket, address) of the first connection of *race*."""
        while True:
            now = time.monotonic()
            found = race.begin(now)
            if found:
                return found
            if not race.open:
                raise Failure(race.reason)
            due = self.due if race.next_s is None else min(self.due, race.next_s)
            poll = select.poll()
            poll.register(self.connection.reader, select.POLLIN)
            for fd in race.open:
                poll.register(fd, select.POLLOUT)
            ready = poll.poll(max(0, (due - now) * 1000))
            if self.connection.cancelled:
                raise Cancelled
            for fd, _ in ready:
                if fd == self.connection.reader:
                    os.read(fd, 512)
                elif race.finish_connect(fd):
                    return race.take(fd)
            if not ready and due == self.due:
                if race.code not in _SILENT:
                    raise Failure(race.reason)
                raise TimedOut("timed out after %g s" % (self._timeout_ms / 1000))

    def watch(self, seconds: int):
        """Let TCP end the connection, as far as this system can, when nothing is acknowledged for
        *seconds*, or nothing comes for so long and the peer does not answer three questions then.
        """
        import socket

        self.sock.setsockopt(sockets.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        values = seconds, max(1, seconds // 3), 3, seconds * 1000
        for name, value in zip(("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT"), values):
            option = getattr(socket, "TCP_" + name, None)
            if option is not None:
                self.sock.setsockopt(sockets.IPPROTO_TCP, option, value)

    def _look_up(self, host: str, port: int) -> list:
        """Return the addresses of *host*, as ``getaddrinfo`` does."""
        # bytes: for a str, getaddrinfo would load the IDNA codec and its tables
        name = host.encode()
        try:
            return getaddrinfo(name, port, 0, sockets.SOCK_STREAM, 0, sockets.AI_NUMERICHOST)
        except sockets.gaierror:
            pass  # it is a name, not an address
        connection = self.connection
        connection.found = None  # of an earlier look-up
        try:
            _thread.start_new_thread(_find, (connection, self._lock, name, port))
        except RuntimeError as e:
            raise Failure("no connection can be opened: %s" % e) from None
        while connection.found is None:
            self.wait(0)
        if isinstance(connection.found, str):
            raise Failure(connection.found)
        return connection.found

    # -- bytes

    def send(self, data: bytes):
        """Send all of *data*."""
        view = memoryview(data)
        while view:
            view = view[self.do(self.sock.send, view, events=select.POLLOUT) :]

    def receive(self, size: int) -> bytes:
        """Return the next 1 to *size* bytes, or b"" when the peer has closed."""
        return self.do(self.sock.recv, size, events=select.POLLIN)

    def receive_if_any(self, size: int):
        """Return as ``receive`` does, or None after a wait, which a nudge may have ended."""
        data = self._once(self.sock.recv, (size,), select.POLLIN)
        return None if data is _WAITED else data

    def do(self, function, *arguments, events: int = 0):
        """Return ``function(*arguments)``.  When it would block, wait for *events*, or for the
        events that TLS needs, and call it again.
        """
        while True:
            done = self._once(function, arguments, events)
            if done is not _WAITED:
                return done

    def _once(self, function, arguments: tuple, events: int):
        """Return ``function(*arguments)``, or ``_WAITED`` after a wait for its events."""
        try:
            return function(*arguments)
        except BlockingIOError:
            wanted = events
        except OSError as e:
            wanted = self.wants(e) if self.wants else 0
            if not wanted:
                raise
        self.wait(wanted)
        return _WAITED


def _close(sock):
    if sock is not None:
        try:
            sock.close()
        except OSError:  # the descriptor is closed even then
            pass


def _in_turns(found: list, worked) -> list:
    """Return the entries of *found* (from ``getaddrinfo``) in the order in which they are tried:
    the address *worked* first, then the families in turns, each in its order (RFC 8305, 4).
    """
    first = [entry for entry in found if entry[4] == worked]
    others = [entry for entry in found if entry[4] != worked]
    if not others:
        return first
    family = others[0][0]
    one = [entry for entry in others if entry[0] == family]
    two = [entry for entry in others if entry[0] != family]
    turns = []
    for place in range(max(len(one), len(two))):
        turns += one[place : place + 1] + two[place : place + 1]
    return first + turns


def _find(connection, lock, name: bytes, port: int):
    """Look *name* up, in a thread of its own.  The connection may be gone when the answer comes."""
    try:
        found = getaddrinfo(name, port, 0, sockets.SOCK_STREAM)
    except sockets.gaierror as e:
        found = (
            "no such host: %s"
            if e.errno != sockets.EAI_AGAIN
            else "the name %s cannot be looked up: no name server answers"
        )
        found = _lacking(name) or found % name.decode()
    except OSError as e:
        found = "the name %s cannot be looked up: %s" % (name.decode(), words(e))
    except Exception as e:
        found = "the name %s cannot be looked up (%s)" % (name.decode(), type(e).__name__)
    with lock:
        connection.found = found
        connection.nudge()


def _lacking(name: bytes) -> str:
    """Return why *name* could not be looked up when this process can open no more files, else "".

    glibc needs files and sockets.  Without them it reports that there is no such host, or that no
    server answers."""
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_CLOEXEC))
    except OSError as e:
        if e.errno in (errno.EMFILE, errno.ENFILE):
            return "the name %s cannot be looked up: %s" % (name.decode(), words(e))
    return ""


def _select_allowed(found: list, check) -> list:
    """Call *check* with all addresses of *found* (from ``getaddrinfo``); return the entries whose
    address it returns.
    """
    packed = [sockets.inet_pton(entry[0], entry[4][0].partition("%")[0]) for entry in found]
    wanted = check(packed)
    return [entry for entry, address in zip(found, packed) if address in wanted]


def check_host(scheme: str, host: str, port: int) -> str:
    """Return *host* without the brackets of an IPv6 address.  Raises ``Failure`` when the scheme,
    host or port cannot be valid.
    """
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if scheme not in ("http", "https"):
        raise Failure("%.20r is no scheme for a connection: expected http or https" % scheme)
    if (
        not 0 < len(host) <= 253
        or min(host) <= " "
        or max(host) >= "\x7f"
        or not set("/?#@[]\\").isdisjoint(host)
    ):
        raise Failure(
            "%.80r is no host name (a name with other letters is written as xn--...)" % host
        )
    if not 0 < port < 65536:
        raise Failure("%d is no port: expected 1 to 65535" % port)
    return host


def words(error: OSError) -> str:
    """Return *error* as words for a person."""
    code = error.errno
    if code == errno.ECONNREFUSED:
        return "connection refused"
    if code in (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED):
        return "the connection was reset"
    if code in _UNREACHABLE:
        return "no way to that host: %s" % os.strerror(code).lower()
    if code == errno.ETIMEDOUT:
        return "the host does not answer"
    if code == errno.EMFILE:
        return "this process may open no more files (ulimit -n)"
    return (
        os.strerror(code).lower() if code else "the connection failed (%s)" % type(error).__name__
    )
