"""``web-fetch``, ``web-search`` and the calls of services: requests of tools, under the network
rules of a sandbox, beside the loop.

1. Each hop is decided from the start (protocols/net/netrules.py): its URL, its host, every address,
   and that address is connected to.
2. When scheme, host or port change, only headers that mean nothing to the server's trust go along;
   credentials that the runtime adds never come back, not even when a redirect leads home again.
3. The runtime's credentials go to exactly their host, over https or to this machine.
4. What goes wrong on the way is a failed tool (``ClawError``); what a rule forbids is
   ``SandboxDenied``.
"""

from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    ProviderError,
    SandboxDenied,
    ToolTimeout,
)
from clawlite.core.net.http1 import (
    EVENT_DATA,
    EVENT_HEADERS,
    EVENT_KIND,
    EVENT_STATUS,
    Response,
    request,
)
from clawlite.linux.net.connections import Connections
from clawlite.linux.tools import fetch_page, fetch_search
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import (
    OwnAddress,
    authority,
    decide_addresses,
    decide_host,
    parse_url,
    refusal,
)

_SCHEME, _HOST, _PORT, _TARGET = range(4)  # of a URL

# bytes of an answer (clawft, web_fetch); what comes after them is not read
MAX_BODY = 10485760
MAX_REDIRECTS = 5
MAX_AT_ONCE = 8  # calls: each may hold a body, and has a thread
TIMEOUT_MS = 30000  # of a whole call that has no end of its own
CONNECT_MS = 10000
MAX_HEADERS = 50
MAX_HEADER_BYTES = 8192  # of all names and values
MAX_SENT = 262144  # characters of a body that a caller sends
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_MOVED = (301, 302, 303, 307, 308)
# Those that say how long a message is, or for whom on the way; an encoded answer would be no text.
_NOT_THEIRS = (
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
)
_WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
# headers that speak of a body, and go when it does (Fetch standard, "request-body-header name")
_OF_BODY = ("content-type", "content-encoding", "content-language", "content-location")
_HARMLESS = ("accept", "accept-language", "user-agent")  # go along to another server
# RFC 9110, 5.6.2
_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")


class _Fetch:
    """One call.

    rules       profile whose network fields decide
    url         (scheme, host, port, target) of this hop
    headers     the caller's, list of (name, value)
    injections  list of (host, header name, function -> value) that may still be used
    told        bool, one of them was used
    sent        bytes of its body, or None
    limit       bytes of the body that are kept; *cut*: there were more
    finish      function(fetch, announced size of a body that was cut or None) -> the tool's value
    """

    def __init__(
        self,
        tool: str,
        rules,
        url: tuple,
        method: str,
        headers: list,
        injections,
        limit: int,
        due_ms: int,
        finish,
    ):
        self.tool, self.rules, self.url, self.method, self.headers, self.injections = (
            tool,
            rules,
            url,
            method,
            headers,
            injections,
        )
        self.limit, self.due_ms, self.finish = limit, due_ms, finish
        self.sent = None
        self.told = False
        self.redirects = 0
        self.redirects_allowed = MAX_REDIRECTS
        self.response = None
        self.status = 0
        self.answer = {}  # the headers of the answer
        self.body = bytearray()
        self.cut = False

    @property
    def place(self) -> str:
        """The URL of this hop."""
        return "%s://%s%s" % (self.url[_SCHEME], authority(*self.url[:3]), self.url[_TARGET])


class Fetcher:
    """All requests of tools of one agent.

    wake     descriptor of a pipe: one byte is written when ``poll`` has something
    now_ms   function -> monotonic ms
    search   ``fetch_search.Search``, or None when the settings name no endpoint
    environ  mapping with the proxies' variables; default ``os.environ``
    """

    def __init__(self, wake: int, now_ms, search=None, environ=None):
        self._connections = Connections(wake, environ)
        self._now_ms = now_ms
        self._search = search
        self._running = {}

    def start(
        self, number: int, profile, tool: str, arguments: dict, due_ms: int = None, injections=()
    ):
        """Begin a call; return None when it goes on, else its outcome: (False, error).

        profile     ``core.profile.Profile``
        tool        "web-fetch" or "web-search"; *arguments* fit its schema
        due_ms      end on the clock of *now_ms*; None: 30 s from now
        injections  list of (host, header name, function () -> value): what the runtime adds for
                    that host alone
        """
        if due_ms is None:
            due_ms = self._now_ms() + TIMEOUT_MS
        limit = min(MAX_BODY, profile.max_output_bytes or MAX_BODY)

        def make():
            if tool == "web-search":
                return _search(self._search, profile, arguments, due_ms)
            return _fetch(profile, arguments, injections, limit, due_ms)

        return self._begin(number, tool, make)

    def call(
        self,
        number: int,
        profile,
        tool: str,
        url: tuple,
        asked: tuple,
        injections,
        limit: int,
        due_ms: int,
        finish,
    ):
        """Begin a call of a service; return None when it goes on, else its outcome: (False, error).
        Its answer counts whatever its status and kind, and no redirect is followed.

        url     (scheme, host, port, target);  asked: (method, [(name, value)], body or None)
        limit   bytes of the body that *finish* needs
        finish  function(fetch, announced size of a body that was cut, or None) -> the tool's value
        """
        rules = OwnAddress(profile) if address_of(url[_HOST]) is not None else profile
        method, headers, body = asked
        fetch = _Fetch(tool, rules, url, method, headers, injections, limit, due_ms, finish)
        fetch.sent, fetch.redirects_allowed = body, None
        return self._begin(number, tool, lambda: fetch)

    def poll(self) -> list:
        """Return [(number, outcome)] of what has ended, never waiting; an outcome is (True,
        value) or (False, ``ClawError``).
        """
        ended = []
        for (number, hop), kind, data in self._connections.poll():
            fetch = self._running.get(number)
            if fetch is not None and fetch.redirects == hop:
                outcome = self._take(number, fetch, kind, data)
                if outcome is not None:
                    self.cancel(number)
                    ended.append((number, outcome))
        now_ms = self._now_ms()
        for number, fetch in list(self._running.items()):
            if now_ms >= fetch.due_ms:
                self.cancel(number)
                late = ToolTimeout(
                    "%s: %s did not answer in time" % (fetch.tool, fetch.url[_HOST]),
                    "call it again later, or raise timeout_ms in the manifest",
                    {"tool": fetch.tool},
                )
                ended.append((number, (False, late)))
        return ended

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return bool(self._running)

    def deadline(self):
        """Return the time at which ``poll`` has something to do whatever comes, or None."""
        return min((fetch.due_ms for fetch in self._running.values()), default=None)

    def cancel(self, number: int):
        """End the call at once; nothing more is heard of it.  One that has ended, or never was,
        is no error.
        """
        fetch = self._running.pop(number, None)
        if fetch is not None:
            self._connections.close((number, fetch.redirects))

    def close(self):
        """End all calls.  After it nothing is written to *wake*."""
        self._running.clear()
        self._connections.close_all()

    # -- one call

    def _begin(self, number: int, tool: str, make):
        """Begin the call that *make* returns a ``_Fetch`` for; return as ``start`` does."""
        try:
            self._admit(tool)
            fetch = make()
            self._open(number, fetch)
        except ClawError as e:
            return False, e
        self._running[number] = fetch
        return None

    def _admit(self, tool: str):
        if len(self._running) >= MAX_AT_ONCE:
            from clawlite.core.idempotency.idempotency import not_run

            raise not_run(
                "%s: %d requests are under way, at most that many" % (tool, MAX_AT_ONCE),
                "send it again when one has ended",
            )

    def _open(self, number: int, fetch: _Fetch):
        scheme, host, port, target = fetch.url
        rules = fetch.rules
        decide_host(rules, host)
        added = _add_headers(fetch)  # first: it takes away what it replaces
        try:
            head = request(
                fetch.method,
                target,
                authority(scheme, host, port),
                fetch.headers + added,
                None if fetch.sent is None else len(fetch.sent),
            )
        except ValueError as e:
            raise InvalidParams("%s: %s" % (fetch.tool, e), "", {"tool": fetch.tool}) from None
        fetch.response = Response()
        timeout_ms = min(CONNECT_MS, max(1, fetch.due_ms - self._now_ms()))
        self._connections.open(
            (number, fetch.redirects),
            scheme,
            host,
            port,
            [head, fetch.sent or b""],
            timeout_ms,
            lambda addresses: decide_addresses(rules, host, addresses),
        )

    def _take(self, number: int, fetch: _Fetch, kind: str, data):
        """Take one event of the connection; return the call's outcome, or None while it goes on."""
        if kind == "refused":
            return False, _after(data) if fetch.redirects else data
        if kind == "error":
            return False, ClawError("%s: %s" % (fetch.url[_HOST], data))
        try:
            if kind == "end":
                fetch.response.at_end()
            else:
                fetch.response.feed(data)
            return self._read(number, fetch)
        except ProviderError as e:  # of the codec: here nobody is a provider
            return False, ClawError("%s: %s" % (fetch.url[_HOST], e.message))
        except SandboxDenied as e:
            return False, _after(e)
        except ClawError as e:
            return False, e

    def _read(self, number: int, fetch: _Fetch):
        event = fetch.response.next_event()
        while event is not None:
            if event[EVENT_KIND] == "head":
                fetch.status, fetch.answer = event[EVENT_STATUS], event[EVENT_HEADERS]
                if fetch.redirects_allowed is None:
                    pass
                elif fetch.status in _MOVED and fetch.answer.get("location"):
                    self._follow(number, fetch)
                    return None
                else:
                    fetch_page.check_head(fetch.answer)
                if fetch.method == "HEAD":
                    return True, fetch.finish(fetch, None)
            elif event[EVENT_KIND] == "data":
                fetch.body += event[EVENT_DATA]
                if len(fetch.body) > fetch.limit:
                    fetch.cut = True
                    del fetch.body[fetch.limit :]
                    return True, fetch.finish(fetch, fetch_page.read_length(fetch.answer))
            else:
                return True, fetch.finish(fetch, None)
            event = fetch.response.next_event()
        return None

    def _follow(self, number: int, fetch: _Fetch):
        """Go where the answer's Location leads."""
        if fetch.redirects >= fetch.redirects_allowed:
            raise ClawError(
                "%s: %s"
                % (
                    fetch.url[_HOST],
                    "more than %d redirects" % MAX_REDIRECTS
                    if fetch.redirects
                    else "it redirects, and redirects of an endpoint are not followed",
                )
            )
        if (
            fetch.status == 303
            and fetch.method != "HEAD"
            or fetch.status in (301, 302)
            and fetch.method == "POST"
        ):
            fetch.method = "GET"  # Fetch standard, "HTTP-redirect fetch", 12
            fetch.sent = None
            fetch.headers = [one for one in fetch.headers if one[0].lower() not in _OF_BODY]
        before = fetch.url
        after = parse_url(fetch_page.redirect_url(before, fetch.answer["location"]))
        self._connections.close((number, fetch.redirects))
        if before[:3] != after[:3]:
            _leave(fetch, before, after)
        fetch.redirects += 1
        fetch.url = after
        self._open(number, fetch)


def _fetch(profile, arguments: dict, injections, limit: int, due_ms: int) -> _Fetch:
    method = arguments.get("method", "GET")
    if method not in METHODS:
        raise InvalidParams(
            "web-fetch: method: expected one of %s" % ", ".join(METHODS), "", {"tool": "web-fetch"}
        )
    headers = _own_headers(arguments.get("headers") or {})
    sent = _own_body(method, arguments.get("body"), headers)
    fetch = _Fetch(
        "web-fetch",
        profile,
        parse_url(arguments["url"]),
        method,
        headers,
        injections,
        limit,
        due_ms,
        fetch_page.result_text,
    )
    fetch.sent = sent
    return fetch


def _leave(fetch: _Fetch, before: tuple, after: tuple):
    """Take away what must not go along when a redirect leads to another server; raises
    ``SandboxDenied`` where it would go over plain http.
    """
    harmless = _HARMLESS if fetch.sent is None else _HARMLESS + _OF_BODY
    kept = [header for header in fetch.headers if header[0].lower() in harmless]
    if (
        before[_SCHEME] == "https"
        and after[_SCHEME] == "http"
        and (fetch.told or fetch.sent or len(kept) < len(fetch.headers))
    ):
        raise refusal(
            fetch.rules,
            after[_HOST],
            "redirect",
            "a redirect leads from https to http, and the request has %s"
            % ("a body" if fetch.sent else "credentials"),
            "send it to the address that the server uses now"
            if fetch.sent
            else "ask without headers of your own",
        )
    fetch.headers, fetch.injections = kept, ()


def _own_body(method: str, body, headers: list):
    """Return the bytes of the caller's *body*, or None; add a Content-Type where *headers* have
    none.  Raises ``InvalidParams``.
    """
    if body is None:
        return None
    if method not in _WITH_BODY or not isinstance(body, str) or len(body) > MAX_SENT:
        raise InvalidParams(
            "web-fetch: body: expected a text of at most %d characters, with the method %s"
            % (MAX_SENT, ", ".join(_WITH_BODY)),
            "",
            {"tool": "web-fetch"},
        )
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", _type_of(body)))
    return body.encode("utf-8", "replace")


def _type_of(body: str) -> str:
    from clawlite.linux.io.jsontext import loads

    if body.lstrip()[:1] in ("{", "["):
        try:
            loads(body.encode())
            return "application/json"
        except (ClawError, ValueError):  # it only looks like JSON
            pass
    return "text/plain; charset=utf-8"


def _search(search, profile, arguments: dict, due_ms: int) -> _Fetch:
    if search is None:
        raise SandboxDenied(
            "web-search: no search endpoint is configured",
            "set it in clawlite.toml: [search] endpoint",
            {"tool": "web-search", "reason": "no search endpoint"},
        )
    url = search.url(arguments["query"])
    rules = OwnAddress(profile) if address_of(url[_HOST]) is not None else profile
    fetch = _Fetch(
        "web-search",
        rules,
        url,
        "GET",
        [("Accept", "application/json")],
        search.injections(url[_HOST]),
        fetch_search.MAX_ANSWER,
        due_ms,
        lambda fetch, size: fetch_search.results(fetch, arguments.get("num_results", 5)),
    )
    fetch.redirects_allowed = 0
    return fetch


def _own_headers(headers: dict) -> list:
    """Return the caller's headers as pairs; raises ``InvalidParams``, which names a header and
    never its value.
    """
    found, size = {}, 0
    for name, value in headers.items():
        # who hands headers on as variables takes both for one
        key = name.lower().replace("_", "-")
        if not name or not _TOKEN.issuperset(name) or not isinstance(value, str):
            raise _header(name, "expected a header's name, and its value as a text")
        if key in _NOT_THEIRS or key.startswith("proxy-") or key in found:
            raise _header(
                name,
                "it is there twice" if key in found else "a request of this tool may not set it",
            )
        if value and (min(value) < " " or max(value) > "~" or value != value.strip()):
            raise _header(name, "expected printable ASCII, and no space at an end")
        size += len(name) + len(value)
        found[key] = (name, value)
    if len(found) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise InvalidParams(
            "web-fetch: headers: expected at most %d, of %d bytes in all"
            % (MAX_HEADERS, MAX_HEADER_BYTES),
            "",
            {"tool": "web-fetch"},
        )
    return list(found.values())


def _header(name: str, sentence: str) -> InvalidParams:
    return InvalidParams(
        "web-fetch: headers.%s: %s" % (ascii(name[:40])[1:-1], sentence), "", {"tool": "web-fetch"}
    )


def _add_headers(fetch: _Fetch) -> list:
    """Return what the runtime adds to the caller's headers, and take away what it replaces."""
    scheme, host = fetch.url[:2]
    added = []
    if scheme == "https" or is_loopback(address_of(host)):
        added = [(name, value()) for wanted, name, value in fetch.injections if wanted == host]
    if added:
        fetch.told = True
        replaced = [name.lower() for name, _ in added]
        fetch.headers = [header for header in fetch.headers if header[0].lower() not in replaced]
    names = [name.lower() for name, _ in fetch.headers]
    for name, value in (
        ("User-Agent", "clawlite"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
    ):
        if name.lower() not in names:
            added.append((name, value))
    return added


def _after(error: SandboxDenied) -> SandboxDenied:
    return SandboxDenied(error.message + " (a redirect led there)", error.hint, error.data)
