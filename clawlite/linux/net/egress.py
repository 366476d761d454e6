"""The only way of a sandboxed child to the network: an HTTP proxy on a socket inside its namespace,
under the sandbox's network rules.

1. The child's network has only this socket.  Names are looked up, and connections made, here in the
   agent's network.  The functions that decide for ``web-fetch`` (protocols/net/netrules.py) also
   decide here, and only addresses that they have checked are connected to.
2. CONNECT (RFC 9110, 9.3.6) carries any protocol to any port of an allowed host.  Plain http allows
   one request per connection.  Its Host becomes that of the URL (RFC 9112, 3.2.2), so that a child
   cannot ask an allowed server for the pages of another host.
3. Each connection has a thread (docs/adr/0026).  There are at most ``MAX_TUNNELS``;
   further ones wait in the socket's queue.  At most ``PIECE`` bytes are in flight each way.
4. ``close`` ends everything, in whatever phase it is; the threads close their descriptors
   themselves.
"""

import _thread
import os
import select

from clawlite.core.base.errors import SandboxDenied
from clawlite.linux.net.connections import BEHIND_PROXY, PIECE, Connection, proxy_for
from clawlite.linux.net.stream import Cancelled, Failure, Stream, TimedOut, sockets, words
from clawlite.protocols.net.netrules import (
    authority,
    decide_addresses,
    decide_host,
    parse_authority,
    parse_url,
)

MAX_TUNNELS = 16
MAX_HEAD = 16384  # bytes of a request's head
HEAD_MS = 10000  # time for the head to arrive
CONNECT_MS = 10000
IDLE_MS = 120000  # without a byte in either direction
# bytes of a refused request that are still read, so that the answer arrives
_DRAIN = 65536
_DRAIN_MS = 1000
_AGAIN_MS = 100  # pause after a connection could not be accepted
_SHUT_WR = 1
_ENDED = select.POLLHUP | select.POLLERR
_HAS_CAUSE = select.POLLIN | _ENDED  # a reason to read: bytes, the end or an error
# and proxy-*
_NOT_ON = ("host", "connection", "keep-alive", "te", "trailer", "upgrade", "expect")
_REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    411: "Length Required",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
}


class _Bad(Exception):
    """A request that is answered with an error: its status and a sentence."""


class Egress:
    """The proxy of one child.

    rules    profile whose network fields decide
    environ  mapping with the proxies' variables; default ``os.environ``
    """

    def __init__(self, rules, environ=None):
        self._rules = rules
        self._environ = os.environ if environ is None else environ
        self._lock = _thread.allocate_lock()
        self._door = None  # connections.Connection of the accepting thread
        self._tunnels = []  # connections.Connection of each tunnel's thread

    def serve(self, listening: int):
        """Answer on *listening*, descriptor of a listening stream socket, which is closed here;
        return at once.

        Raises ``OSError``, ``RuntimeError`` when there is no descriptor or thread to be had.
        """
        listener = sockets.socket(fileno=listening)
        door = Connection()
        try:
            listener.setblocking(False)
            door.reader, door.writer = os.pipe()
            self._door = door
            _thread.start_new_thread(self._accept, (listener, door))
        except (OSError, RuntimeError):
            self._door = None
            listener.close()
            self._release(door)
            raise

    def close(self):
        """End every connection and accept no more."""
        with self._lock:
            for one in self._tunnels + ([self._door] if self._door else []):
                one.cancelled = True
                one.nudge()

    # -- in the threads

    def _accept(self, listener, door: Connection):
        failed = False
        try:
            while not door.cancelled:
                poll = select.poll()
                poll.register(door.reader, select.POLLIN)
                if len(self._tunnels) < MAX_TUNNELS and not failed:
                    poll.register(listener.fileno(), select.POLLIN)
                ready = poll.poll(_AGAIN_MS if failed else None)
                failed = False
                for fd, _ in ready:
                    if fd == door.reader:
                        os.read(fd, 512)
                    elif not door.cancelled:
                        failed = not self._admit(listener)
        finally:
            listener.close()
            self._release(door)

    def _admit(self, listener) -> bool:
        """Accept one connection.  Return False when the agent has no descriptor or thread left for
        it.
        """
        tunnel, near = Connection(), None
        try:
            near = sockets.socket(fileno=listener._accept()[0])
            near.setblocking(False)
            tunnel.reader, tunnel.writer = os.pipe()
            with self._lock:
                tunnel.cancelled = self._door.cancelled
                self._tunnels.append(tunnel)
            _thread.start_new_thread(self._tunnel, (tunnel, near))
        except (OSError, RuntimeError):
            if near is not None:
                near.close()
            self._end(tunnel)
            return False
        return True

    def _tunnel(self, tunnel: Connection, sock):
        near, far = Stream(tunnel, self._lock, HEAD_MS), Stream(tunnel, self._lock, CONNECT_MS)
        near.sock = sock
        try:
            if not tunnel.cancelled:
                self._carry(near, far)
        except (Cancelled, Failure, OSError):
            # no answer can be sent: the child is gone, or bytes are already relayed
            pass
        except Exception as e:  # MemoryError, or a bug: it ends this connection
            try:
                _answer(near, 502, "the agent failed inside (%s)" % type(e).__name__)
            except (Cancelled, Failure, OSError):
                pass
        near.close()
        far.close()
        self._end(tunnel)

    def _end(self, tunnel: Connection):
        self._release(tunnel)
        with self._lock:
            if tunnel in self._tunnels:
                self._tunnels.remove(tunnel)
            self._door.nudge()  # another connection can be accepted

    def _release(self, one: Connection):
        with self._lock:
            fds, one.reader, one.writer = (one.reader, one.writer), None, None
            for fd in fds:
                if fd is not None:
                    os.close(fd)

    def _carry(self, near: Stream, far: Stream):
        """Read a request, decide, connect, and carry bytes until an end."""
        try:
            head, rest = _head(near)
            method, target, lines = _request(head)
            if method == "CONNECT":
                host, port = parse_authority(target, None)
                self._connect(far, "https", host, port)
                first, left = b"HTTP/1.1 200 Connection established\r\n\r\n", None
            else:
                scheme, host, port, target = parse_url(target)
                if scheme != "http":
                    raise _Bad(400, "https goes through CONNECT")
                first, left = _rewritten(method, target, authority(scheme, host, port), lines)
                self._connect(far, scheme, host, port)
        except _Bad as e:
            return _answer(near, *e.args)
        except SandboxDenied as e:
            return _answer(near, 403, "%s (%s)" % (e.message, e.hint) if e.hint else e.message)
        near.due = far.due = None
        if left is None:
            near.send(first)
            far.send(rest)
        else:
            far.send(first + rest[:left])
            left -= min(left, len(rest))
        _relay(near, far, left)

    def _connect(self, far: Stream, scheme: str, host: str, port: int):
        rules = self._rules
        decide_host(rules, host)
        try:
            if proxy_for(scheme, host, port, self._environ):
                raise Failure(BEHIND_PROXY % host)
            far.connect(host, port, lambda addresses: decide_addresses(rules, host, addresses))
        except Failure as e:
            raise _Bad(502, "%s: %s" % (host, e)) from None
        except OSError as e:  # no descriptor
            raise _Bad(502, "%s: %s" % (host, words(e))) from None


def _head(near: Stream) -> tuple:
    """Return (head without its empty line, bytes received after it)."""
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > MAX_HEAD:
            raise _Bad(431, "the request's head has more than %d bytes" % MAX_HEAD)
        more = near.receive(MAX_HEAD + 1 - len(data))
        if not more:
            raise Cancelled
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _request(head: bytes) -> tuple:
    """Return (method, target, [(name, value), ...]).  Whatever two readers could understand
    differently is refused.
    """
    if min(head.replace(b"\r\n", b"").replace(b"\t", b""), default=0) < 32:
        raise _Bad(400, "a control character in the request's head")
    try:
        first, *lines = head.decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        raise _Bad(400, "the request's head is not ASCII") from None
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0") or not parts[0].isalpha():
        raise _Bad(400, "expected a request of HTTP/1.1 as a proxy gets it")
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.replace("-", "").replace("_", "").isalnum():
            raise _Bad(400, "expected a header in the request")
        fields.append((name, value.strip()))
    return parts[0], parts[1], fields


def _rewritten(method: str, target: str, host: str, fields: list) -> tuple:
    """Return (head for the server, length of the body that follows it)."""
    lines, left = ["%s %s HTTP/1.1" % (method, target), "Host: " + host], None
    for name, value in fields:
        key = name.lower()
        if "_" in key and key.replace("_", "-") in ("transfer-encoding", "content-length"):
            raise _Bad(400, "a header that says how long the body is, with a _ in its name")
        if key == "transfer-encoding":
            raise _Bad(411, "a request's body needs a Content-Length here")
        if key == "content-length":
            if left is not None or not 0 < len(value) <= 15 or value.strip("0123456789"):
                raise _Bad(400, "expected one number as Content-Length")
            left = int(value)
        if key not in _NOT_ON and not key.startswith("proxy-"):
            lines.append("%s: %s" % (name, value))
    return ("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode(), left or 0


def _answer(near: Stream, status: int, sentence: str):
    """Answer the child with an error, and read the bytes that it is still sending.  A close with
    unread bytes resets the connection, and the answer would be lost.
    """
    body = ("clawlite: %s\n" % sentence).encode("utf-8", "replace")
    near.due = None
    near.send(
        b"HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "
        b"%d\r\nConnection: close\r\n\r\n%s" % (status, _REASONS[status].encode(), len(body), body)
    )
    near.sock.shutdown(_SHUT_WR)
    drain = Stream(near.connection, near._lock, _DRAIN_MS)
    drain.sock = near.sock
    left = _DRAIN
    while left > 0:
        data = drain.receive(left)
        if not data:
            return
        left -= len(data)


def _relay(near: Stream, far: Stream, left):
    """Carry bytes both ways until the far end closes, or nothing comes for ``IDLE_MS``.

    left   bytes that may still go from *near* to *far*; None: all bytes, and then the end of input
    """
    up = down = b""
    # whether near may still send; whether far has closed
    reads, ended = left is None or left > 0, False
    while down or not ended:
        near_events = (select.POLLIN if reads and not up else 0) | (select.POLLOUT if down else 0)
        far_events = (select.POLLIN if not ended and not down else 0) | (
            select.POLLOUT if up else 0
        )
        from_near, from_far = _events(near, near_events, far, far_events)
        try:
            if from_near & _HAS_CAUSE and near_events & select.POLLIN:
                up = near.sock.recv(PIECE if left is None else min(PIECE, left))
                left = None if left is None else left - len(up)
                reads = bool(up) and left != 0
                if not up:
                    far.sock.shutdown(_SHUT_WR)
            elif from_near & _ENDED:
                return  # the child is gone
            if from_far & _HAS_CAUSE and far_events & select.POLLIN:
                down = far.sock.recv(PIECE)
                ended = not down
            if down and from_near & select.POLLOUT:
                down = down[near.sock.send(down) :]
            if up and from_far:
                up = _send_part(far, up)
                reads = reads and up is not None
                up = up or b""
        except BlockingIOError:  # the socket is no longer ready
            pass


def _send_part(far: Stream, data: bytes):
    """Send *data*; return the rest that was not sent.  None when *far* accepts no more; its answer
    may still come.
    """
    try:
        return data[far.sock.send(data) :]
    except BlockingIOError:
        return data
    except OSError:
        return None


def _events(near: Stream, near_events: int, far: Stream, far_events: int) -> tuple:
    """Wait for events; return those of *near* and those of *far*.  Raises ``Cancelled``, and
    ``TimedOut`` after ``IDLE_MS``.
    """
    poll = select.poll()
    poll.register(near.connection.reader, select.POLLIN)
    poll.register(near.sock.fileno(), near_events)
    if far_events:  # without them, poll would report a closed socket again and again
        poll.register(far.sock.fileno(), far_events)
    ready = dict(poll.poll(IDLE_MS))
    if near.connection.cancelled:
        raise Cancelled
    if not ready:
        raise TimedOut("nothing came")
    if near.connection.reader in ready:
        os.read(near.connection.reader, 512)
    return ready.get(near.sock.fileno(), 0), ready.get(far.sock.fileno(), 0)
