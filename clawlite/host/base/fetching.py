"""Fetch a file over HTTP, bounded in size and time.

1. HTTPS stays HTTPS: a redirect to another scheme is refused.  Plain HTTP is for those who ask for
   it (``may_be_plain``), and a redirect of theirs may lead to HTTPS.
2. Each failure is one ``ClawError`` that names the URL.
"""

import http.client
import time

from clawlite.core.base.errors import ClawError

TIMEOUT_S = 20  # for each answer of the server
_WHOLE_S = 120  # for all of a file: a server that sends a byte now and then ends here
_PIECE = 65536


class Missing(ClawError):
    """The server has nothing at that URL (404)."""


def fetch(url: str, limit: int, offline: str, may_be_plain: bool = False) -> bytes:
    """Return what is at *url*, at most *limit* bytes.  Raises ``ClawError``.

    offline  the hint for when no server answers, or not as it should
    """
    from urllib import error

    try:
        with _open(url, may_be_plain) as answer:
            data = _read(answer, limit)
    except error.HTTPError as e:
        e.close()
        if 300 <= e.code < 400:  # urllib follows neither a circle nor what leaves HTTP
            to = (e.headers.get("Location") or "nowhere")[:200]
            raise ClawError(
                f"{url} cannot be fetched: it redirects to {to}, and nothing is fetched from there",
                offline,
            ) from None
        kind = Missing if e.code == 404 else ClawError
        hint = "check the name and the version" if e.code == 404 else offline
        raise kind(f"{url} answers {e.code}", hint) from None
    # URLError is an OSError; InvalidURL, and UnicodeError of a host's name, are none
    except (OSError, http.client.HTTPException, ValueError) as e:
        why = str(getattr(e, "reason", None) or e) or type(e).__name__
        raise ClawError(f"{url} cannot be fetched: {why}", offline) from None
    if len(data) > limit:
        raise ClawError(
            f"{url} has more than {limit:,} bytes", "ask who publishes it for a smaller one"
        )
    return data


def _open(url: str, may_be_plain: bool):
    import ssl
    from urllib import error, request

    from clawlite.host.base.proxies import Proxies

    schemes = ("https", "http") if may_be_plain else ("https",)

    class SameScheme(request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):
            scheme = newurl.partition(":")[0].lower()
            if scheme != "https" and scheme != req.type:
                raise error.URLError(f"it redirects to {newurl[:200]}, which is not https")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    if url.partition(":")[0].lower() not in schemes:
        raise ValueError(f"its scheme is not {' or '.join(schemes)}")
    opener = request.build_opener(
        request.HTTPSHandler(context=ssl.create_default_context()), SameScheme, Proxies
    )
    asked = request.Request(url, headers={"User-Agent": "clawlite"})
    return opener.open(asked, timeout=TIMEOUT_S)


def _read(answer, limit: int) -> bytes:
    """Return the body of *answer*, cut after one byte too many."""
    end, data = time.monotonic() + _WHOLE_S, b""
    while len(data) <= limit:
        if time.monotonic() > end:
            raise TimeoutError(f"not whole after {_WHOLE_S} s")
        piece = answer.read1(_PIECE)
        if not piece:
            if answer.length:  # what the server has promised and not sent
                raise http.client.IncompleteRead(data, answer.length)
            break
        data += piece
    return data[: limit + 1]
