"""What each request must be before anything else looks at it, and what each answer carries.

1. Host is a name of this page, or the address that the connection came to: a web page elsewhere
   that lets a name of its own lead here (DNS rebinding) is refused.
2. Origin, where a browser sends one, is this page.  A login and a WebSocket with a cookie must have
   it.
3. With a cookie, what changes something needs the header ``X-Claw``, which no form and no page of
   another origin can send.
4. Tokens never stand in URLs: a request with a query is refused, and nothing of it is said.
"""

import ipaddress

HEADER = "X-Claw"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # with "no-referrer" a browser says "Origin: null" of the form of this page itself
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "clawlite",
}


class Guard:
    """The guard of one page.

    names      hosts, HOST or HOST:PORT, by which it is reached besides addresses and localhost
    is_secure  whether browsers reach it by https
    proxied    the host of the proxy in front of it, or None
    """

    def __init__(self, names, is_secure: bool, proxied=None):
        self._names = {name.lower() for name in names} | {"localhost"}
        self._proxied = proxied.lower() if proxied else None
        self.is_secure = is_secure
        self.cookie = "__Host-claw" if is_secure else "claw"

    def refusal(self, request) -> tuple | None:
        """Return (status, sentence) for a request that is refused, else None."""
        host = request.headers.get("Host", "")
        if not self._is_own(host, request):
            return 403, "Host: this page has another name; clawlite page --host NAME adds one"
        if request.headers.get("Origin") is not None and not self.is_same_origin(request):
            return 403, "Origin: pages of another origin may not use this one"
        if request.query_string:
            return 400, "expected a URL without a query: nothing here takes one"
        return None

    def is_same_origin(self, request) -> bool:
        """Return whether a browser says that the request came from this page itself."""
        host = request.headers.get("Host", "").lower()
        scheme = "https" if self.is_secure else "http"
        return request.headers.get("Origin", "").lower() == f"{scheme}://{host}"

    def _is_own(self, host: str, request) -> bool:
        host = host.lower()
        if host == self._proxied or ":" in host and host in self._names:
            return True
        name, port = _split(host)
        address = request.transport.get_extra_info("sockname") if request.transport else None
        if address is None or port not in (None, address[1]):
            return False
        return name in self._names or _same_address(name, address[0])

    def address(self, request) -> str:
        """Return the address of who asks: behind a proxy, what that says."""
        if self._proxied is not None:
            said = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
            if _address(said) is not None:
                return said
        return request.remote or ""


def _split(host: str) -> tuple:
    """Return (name, port or None) of a Host header; ("", None) for one that is none."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, ""
    if port and not (port.isascii() and port.isdigit() and len(port) < 6):
        return "", None
    return name.strip("[]"), int(port) if port else None


def _address(text: str):
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _same_address(name: str, own: str) -> bool:
    found = _address(name)
    return found is not None and found == _address(own)
