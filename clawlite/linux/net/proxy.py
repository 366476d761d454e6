"""Connections through a proxy: the choice of the proxy (from the environment) and the requests to
it.

1. The variables are ``http_proxy``, ``https_proxy``, else ``all_proxy``; lower case before upper.
   ``HTTP_PROXY`` is ignored in a CGI program, where a client can set it.  Loopback addresses, and
   the hosts and networks in ``no_proxy``, are reached directly.
2. https goes through CONNECT.  For plain http, the first line of the request is rewritten (RFC 9110
   9.3.6, RFC 9112 3.2.2).
3. The connection to a proxy is plain http.  A proxy of another kind is refused, never bypassed.
4. The URL may hold a password: errors name the variable, or the proxy's host and port.
"""

import binascii

try:
    from _socket import AF_INET, AF_INET6, inet_pton
except ImportError:
    from socket import AF_INET, AF_INET6, inet_pton

from clawlite.linux.net.stream import Failure, Stream, check_host
from clawlite.protocols.net.direct import is_direct

MAX_HEAD = 16384  # bytes of the answer to CONNECT
_PORTS = {"http": 80, "https": 443}


class Proxy:
    """The way to one target through one proxy.

    host, port   of the proxy
    credentials  bytes "user:password", b"" for none
    scheme, target   of the server behind it; *target* is host:port, or only the host for http on
                     its default port
    """

    def __init__(self, host: str, port: int, credentials: bytes, scheme: str, target: str):
        self._host, self._port = host, port
        self._scheme, self._target = scheme, target
        self._login = b""
        if credentials:
            self._login = b"Proxy-Authorization: Basic %s\r\n" % binascii.b2a_base64(
                credentials, newline=False
            )

    def connect(self, stream: Stream):
        """Connect *stream* to the proxy, and for https through it to the server.  Raises
        ``Failure``, which says whether the proxy or the server failed.
        """
        try:
            stream.connect(self._host, self._port)
            if self._scheme == "https":
                self._tunnel(stream)
        except Failure as e:
            raise Failure("proxy %s: %s" % (self._name(), e)) from None
        except OSError as e:
            raise Failure("proxy %s: %s" % (self._name(), stream.words(e))) from None

    def rewritten(self, parts: list) -> list:
        """Return the request *parts* in the form for this proxy: for http, the first line has the
        whole URL, and the credentials are added.
        """
        if self._scheme == "https":
            return parts
        method, _, rest = parts[0].partition(b" ")
        line, _, rest = rest.partition(b"\r\n")
        return [
            b"%s http://%s%s\r\n%s%s" % (method, self._target.encode(), line, self._login, rest)
        ] + parts[1:]

    def _name(self) -> str:
        return _join(self._host, self._port)

    def _tunnel(self, stream: Stream):
        target = self._target.encode()
        stream.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target, target, self._login))
        head = b""
        while b"\r\n\r\n" not in head:
            data = stream.receive(MAX_HEAD + 1 - len(head)) if len(head) <= MAX_HEAD else b""
            if not data:
                raise Failure("no whole answer to CONNECT")
            head += data
        words = head.split(b"\r\n", 1)[0].split(None, 2)
        status = words[1] if len(words) > 1 and words[0].startswith(b"HTTP/1.") else b""
        if status == b"407":
            raise Failure(
                "it wants %s user name and password" % ("another" if self._login else "a")
            )
        if not status.startswith(b"2") or len(status) != 3:
            raise Failure(
                "it does not let us through to %s (it answers %.20s)"
                % (self._target, ascii(status)[2:-1] or "no HTTP")
            )
        if not head.endswith(b"\r\n\r\n"):
            raise Failure("it said more than it was asked")  # a server waits for our TLS hello


def choose(scheme: str, host: str, port: int, environ):
    """Return the ``Proxy`` for a connection, or None for a direct one.

    environ  mapping of str
    Raises ``Failure`` for a proxy that cannot be used.
    """
    if _is_loopback(host) or is_direct(host, port, _value(environ, "no_proxy")[1]):
        return None
    for name in (scheme + "_proxy", "all_proxy"):
        name, url = _value(environ, name)
        if url:
            proxy_host, proxy_port, credentials = _parse(name, url)
            target = _join(host, port)
            if scheme == "http" and port == _PORTS["http"]:
                target = target.rpartition(":")[0]
            return Proxy(proxy_host, proxy_port, credentials, scheme, target)
    return None


def _value(environ, name: str) -> tuple:
    """Return (name of the variable in the case in which it is set, its value); ("", "") when it is
    not set or empty.
    """
    for spelled in (name, name.upper()):
        value = environ.get(spelled, "").strip()
        if value and not (spelled == "HTTP_PROXY" and "REQUEST_METHOD" in environ):
            return spelled, value
    return "", ""


def _parse(name: str, url: str) -> tuple:
    """Return (host, port, credentials) of the proxy *url* in the variable *name*:
    [http://][user:password@]host[:port][/].
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "http", url
    if scheme.lower() != "http":
        raise Failure("%s: a proxy is an http:// one; no other kind is supported" % name)
    login, _, place = rest.partition("/")[0].rpartition("@")
    host, mark, port = place.rpartition(":")
    if not mark or place.endswith("]"):
        host, port = place, "80"
    try:
        host = check_host("http", host, int(port))
        credentials = _unquote(login)
    except (Failure, ValueError):
        host = ""
    # raised outside of the handler: the error there may contain the password
    if not host:
        raise Failure("%s: expected http://[user:password@]host:port" % name)
    return host, int(port), credentials


def _unquote(text: str) -> bytes:
    """Return *text* with its %XX decoded.  ``urllib`` can do this, but loads ten modules."""
    first, *rest = text.encode("utf-8", "surrogateescape").split(b"%")
    return first + b"".join(binascii.unhexlify(piece[:2]) + piece[2:] for piece in rest)


def _join(host: str, port: int) -> str:
    return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)


def _is_loopback(host: str) -> bool:
    """Return whether *host* is a name or address of this machine, without a look-up."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(host)
    if address.startswith(bytes(10) + b"\xff\xff"):
        address = address[12:]  # IPv4 inside IPv6
    return address == bytes(15) + b"\1" or (len(address) == 4 and address[0] == 127)


def _address(host: str) -> bytes:
    """Return the 4 or 16 bytes of an address, b"" for a name."""
    for family in (AF_INET, AF_INET6):
        try:
            return inet_pton(family, host)
        except OSError:
            pass
    return b""
