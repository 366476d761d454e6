"""What a fetched page is as a text for a model, and where its redirects lead.

A result is a few lines of the answer's head, a blank line, and the text.  What is no text is
refused, never shown broken."""

from clawlite.core.base.errors import ClawError
from clawlite.core.net.netrules import authority

_TOLD = (
    "content-type",
    "content-language",
    "last-modified",
    "etag",
    "allow",
    "location",
    "retry-after",
    "www-authenticate",
)
_MAX_TOLD = 200  # characters of one of them
_MEDIA = ("image/", "audio/", "video/", "font/")
# By the beginning of their names: text encodings of pages, no other codec of Python's.
_CHARSETS = (
    "utf-8",
    "utf8",
    "utf-16",
    "us-ascii",
    "ascii",
    "iso-8859-",
    "latin",
    "windows-125",
    "cp125",
    "koi8-",
    "gb",
    "big5",
    "shift_jis",
    "shift-jis",
    "euc-",
    "iso-2022-jp",
    "macintosh",
    "tis-620",
)


def check_head(headers: dict) -> None:
    """Refuse, before its body is read, an answer that is no text by its own word.  Raises
    ``ClawError``.
    """
    kind = _kind(headers)
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", ""):
        raise ClawError("the answer is encoded (%.40s), which was not asked for" % coding)
    if kind.startswith(_MEDIA) and not kind.endswith("+xml"):
        raise _binary(kind, announced(headers))


def announced(headers: dict):
    """Return the bytes of the body that the answer announces, or None."""
    length = headers.get("content-length", "").partition(",")[0].strip()
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        return None
    return int(length) if len(length) < 19 else None


def result_text(fetch, size) -> str:
    """Return the whole result of ``web-fetch``.

    size   bytes of the body before it was cut, None when nobody knows
    Raises ``ClawError`` when the body is no text.
    """
    lines = ["HTTP %d %s" % (fetch.status, fetch.place)]
    for name in _TOLD:
        if fetch.answer.get(name):
            lines.append("%s: %s" % (name, fetch.answer[name][:_MAX_TOLD]))
    if fetch.method == "HEAD" and announced(fetch.answer) is not None:
        lines.append("content-length: %d" % announced(fetch.answer))
    if fetch.cut:
        lines.append(
            "truncated: the first %d bytes%s"
            % (len(fetch.body), "" if size is None else " of %d" % size)
        )
    return "%s\n\n%s" % ("\n".join(lines), text(fetch.answer, fetch.body, fetch.cut))


def text(headers: dict, body, is_cut: bool = False) -> str:
    """Return *body* as text, by the charset of the Content-Type, else UTF-8, else (of text/...)
    windows-1252.

    is_cut  its last character may be incomplete, and is dropped then
    Raises ``ClawError``.
    """
    kind = _kind(headers)
    charset = _charset(headers)
    if charset and not charset.startswith(_CHARSETS):
        raise ClawError("the answer's text is in %.40r, which is not supported" % charset)
    if b"\0" in body and not charset.startswith("utf-16"):
        raise _binary(kind, len(body))
    if charset and not charset.startswith(("utf-8", "utf8")):
        try:
            return body.decode(charset, "replace")
        except LookupError:
            raise ClawError(
                "the answer's text is in %.40r, which is not supported" % charset
            ) from None
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        if is_cut and e.start >= len(body) - 3:
            return body[: e.start].decode("utf-8-sig")
    if not charset and not kind.startswith("text/"):
        raise _binary(kind, len(body))
    return body.decode("utf-8-sig" if charset else "windows-1252", "replace")


def redirect_url(url: tuple, location: str) -> str:
    """Return the absolute URL of a redirect from *url*, (scheme, host, port, target), to
    *location* (RFC 3986, 5.2).
    """
    scheme, host, port, target = url
    head = location[
        : len(location)
        - len(location.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."))
    ]
    if head and location[len(head) : len(head) + 1] == ":":
        return location
    if location.startswith("//"):
        return scheme + ":" + location
    origin = "%s://%s" % (scheme, authority(scheme, host, port))
    if location.startswith("/"):
        return origin + location
    location = location.partition("#")[0]
    path = target.partition("?")[0]
    if not location or location.startswith("?"):
        return origin + (path + location if location else target)
    segments = path.split("/")[:-1]
    path, mark, query = location.partition("?")
    steps = path.split("/")
    if steps[-1] in (".", ".."):
        steps.append("")
    for step in steps:
        if step == "..":
            del segments[max(1, len(segments) - 1) :]
        elif step != ".":
            segments.append(step)
    return origin + "/".join(segments) + mark + query


def _kind(headers: dict) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _charset(headers: dict) -> str:
    for parameter in headers.get("content-type", "").lower().split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset":
            return value.strip().strip("\"'")
    return ""


def _binary(kind: str, size) -> ClawError:
    return ClawError(
        "the answer is no text (%s%s)"
        % (kind[:60] or "of no stated type", ", %d bytes" % size if size is not None else ""),
        "web-fetch reads text only",
    )
