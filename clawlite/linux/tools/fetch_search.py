"""``web-search``: a request to the endpoint of the settings, and results out of the JSON that it
answers.

SearXNG (``/search?format=json&q={query}``) and the usual search services are understood: a list of
objects, each with a title, a URL and a text.
"""

from clawlite.core.base.errors import ClawError, ParseError
from clawlite.linux.io.jsontext import loads
from clawlite.protocols.net.netrules import parse_url

MAX_ANSWER = 2097152  # bytes
MAX_QUERY = 1024  # characters
MAX_RESULTS = 20
_MAX_TITLE, _MAX_URL, _MAX_SNIPPET = 200, 2048, 600  # characters
# Where the list lies: SearXNG; Brave; Google; Serper; SerpAPI; Bing.
_LISTS = (
    ("results",),
    ("web", "results"),
    ("items",),
    ("organic",),
    ("organic_results",),
    ("webPages", "value"),
)
_TITLES, _URLS, _SNIPPETS = (
    ("title", "name"),
    ("url", "link"),
    ("content", "snippet", "description"),
)
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Search:
    """The endpoint of the settings.

    endpoint    URL with ``{query}`` in its path or query
    header      name of the header for the credential, or ""
    credential  function () -> its value, or None
    """

    def __init__(self, endpoint: str, header: str = "", credential=None):
        self._endpoint = endpoint
        self._header, self._credential = header, credential

    def url(self, query: str) -> tuple:
        """Return ``parse_url`` of the endpoint, asked for *query*.  Raises ``ClawError``."""
        if not 0 < len(query.strip()) <= MAX_QUERY:
            raise ClawError("web-search: query: expected 1 to %d characters" % MAX_QUERY)
        # first: a query never becomes part of a host
        scheme, host, port, target = parse_url(self._endpoint)
        if "{query}" not in target:
            raise ClawError(
                "web-search: the endpoint has no {query} in its path or query",
                "see clawlite.toml, [search] endpoint",
            )
        data = query.encode("utf-8", "replace")
        quoted = "".join([chr(byte) if byte in _PLAIN else "%%%02X" % byte for byte in data])
        return scheme, host, port, target.replace("{query}", quoted)

    def injections(self, host: str) -> list:
        """Return the credential as ``Fetcher`` takes it."""
        return [(host, self._header, self._credential)] if self._credential else []


def results(fetch, count: int) -> dict:
    """Return {"results": [{"title", "url", "snippet"}, ...]}, at most *count*, out of the
    answer.  Raises ``ClawError``.
    """
    if fetch.status != 200:
        raise ClawError(
            "web-search: the endpoint answers with status %d" % fetch.status,
            "its credential is missing or wrong" if fetch.status in (401, 403) else "",
        )
    if fetch.cut:
        raise ClawError("web-search: the endpoint's answer is longer than %d bytes" % MAX_ANSWER)
    try:
        answer = loads(bytes(fetch.body))
    except ParseError as e:
        raise ClawError(
            "web-search: the endpoint does not answer with JSON: %s" % e.message,
            "SearXNG wants format=json in the endpoint",
        ) from None
    found = []
    for item in _list(answer):
        url = _text(item, _URLS, _MAX_URL)
        if url and len(found) < min(count, MAX_RESULTS):
            found.append(
                {
                    "title": _text(item, _TITLES, _MAX_TITLE),
                    "url": url,
                    "snippet": _text(item, _SNIPPETS, _MAX_SNIPPET),
                }
            )
    return {"results": found}


def _list(answer) -> list:
    for path in _LISTS:
        place = answer
        for name in path:
            place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, list):
            return place
    raise ClawError("web-search: the endpoint's JSON has no list of results in a known form")


def _text(item, names: tuple, most: int) -> str:
    """Return the first of the fields *names* of *item* that is a text, its white space made one
    space.
    """
    for name in names:
        value = item.get(name) if isinstance(item, dict) else None
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:most]
    return ""
