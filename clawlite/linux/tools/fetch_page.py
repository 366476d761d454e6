"""What a fetched page is as a text for a model, and where its redirects lead.

A result is a few lines of the answer's head, a blank line, and the text.  What is no text is
refused, never shown broken."""

from clawlite.core.base.errors import ClawError
from clawlite.protocols.net.netrules import authority

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
# What pages mean by a name where it is more than Python's codec of that name (WHATWG Encoding, 4.2)
_MEANT = {
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-9": "cp1254",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "sjis": "cp932",
    "windows-31j": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "big5": "big5hkscs",
    "tis-620": "cp874",
    "windows-874": "cp874",
    "ibm866": "cp866",
    "cp866": "cp866",
    "x-mac-cyrillic": "mac_cyrillic",
    "x-x-big5": "big5hkscs",
    "x-euc-jp": "euc_jp",
}
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_PRESCAN = (
    4096  # bytes in which a page's own word for its charset is looked for (HTML asks for 1024)
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
        raise _binary(kind, read_length(headers))


def read_length(headers: dict):
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
    if fetch.method == "HEAD" and read_length(fetch.answer) is not None:
        lines.append("content-length: %d" % read_length(fetch.answer))
    if fetch.cut:
        lines.append(
            "truncated: the first %d bytes%s"
            % (len(fetch.body), "" if size is None else " of %d" % size)
        )
    return "%s\n\n%s" % ("\n".join(lines), text(fetch.answer, fetch.body, fetch.cut))


def text(headers: dict, body, is_cut: bool = False) -> str:
    """Return *body* as text: by its byte order mark, else by the charset of the Content-Type, else
    (also when that is none) by that of its XML declaration or ``<meta>``, else as UTF-8, else (of
    text/...) as windows-1252.

    is_cut  its last character may be incomplete, and is dropped then
    Raises ``ClawError``.  Source  HTML standard, 13.2.3.2
    """
    kind, named = _kind(headers), _charset(headers)
    charset = ""
    if kind.startswith("text/") or kind.endswith(("xml", "json")) or not kind or named:
        charset = next((name for mark, name in _BYTE_ORDER_MARKS if body.startswith(mark)), "")
    if not charset and named:
        charset = _codec(named)
    is_unknown = named and not charset
    charset = charset or _own_charset(kind, bytes(body[:_PRESCAN]))
    if b"\0" in body and not charset.startswith("utf-16"):
        raise _binary(kind, len(body))
    if charset and not charset.startswith(("utf-8", "utf8")):
        return body.decode(charset, "replace")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        if is_cut and e.start >= len(body) - 3:
            return body[: e.start].decode("utf-8-sig")
    if is_unknown and not charset:
        raise ClawError("the answer's text is in %.40r, which is not supported" % named)
    if not charset and not kind.startswith("text/"):
        raise _binary(kind, len(body))
    return body.decode("utf-8-sig" if charset else "windows-1252", "replace")


def _codec(charset: str) -> str:
    """Return Python's codec for the name *charset* of a text encoding, "" for one that it has not
    or that is none of pages.
    """
    from codecs import lookup

    charset = charset.replace("iso8859", "iso-8859")
    name = _MEANT.get(charset, charset if charset.startswith(_CHARSETS) else "")
    try:
        return name and lookup(name).name
    except LookupError:
        return ""


def _own_charset(kind: str, head: bytes) -> str:
    """Return the codec that the page which begins with *head* names by itself, or ""."""
    import re

    if kind and "html" not in kind and not kind.endswith("xml"):
        return ""
    if head.startswith((b"<\0?\0", b"\0<\0?")):
        return "utf-16-le" if head[:1] == b"<" else "utf-16-be"
    found = re.match(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""", head)
    names = [found.group(1)] if found else []
    if "xml" not in kind or "html" in kind:
        head = re.sub(rb"<!--.*?-->", b"", head, flags=re.DOTALL)
        names += map(_charset_of_meta, re.findall(rb"<meta[\s/][^>]*>?", head, re.IGNORECASE))
    for name in names:
        codec = _codec(name.strip().lower().decode("ascii", "replace"))
        if codec.startswith("utf-16"):  # its own bytes were no ASCII
            return "utf-8"
        if codec:
            return codec
    return ""


def _charset_of_meta(tag: bytes) -> bytes:
    """Return the charset that a ``<meta>`` *tag* names, or b""."""
    import re

    pairs = re.findall(rb"""([\w-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", tag)
    values = {name.lower(): value.strip(b"\"'") for name, value in reversed(pairs)}
    if values.get(b"charset"):
        return values[b"charset"]
    if values.get(b"http-equiv", b"").strip().lower() != b"content-type":
        return b""
    found = re.search(rb"""charset\s*=\s*["']?([^\s"';]+)""", values.get(b"content", b""), re.I)
    return found.group(1) if found else b""


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
