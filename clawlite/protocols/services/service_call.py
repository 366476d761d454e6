"""One call of a service's tool, without I/O: its HTTP request, and the result that is made of the
answer (docs/services.md).  The executor of a call (a device, a gateway or a proxy) sends the
request and passes the answer back.

    request = request_of(service, tool, arguments, claw_id, secret, dumps)
    result = result_of(status, body, loads, max_bytes)          or failure(code, message, max_bytes)

1. ``{claw_id}`` is the caller's identity as the executor knows it, never as the caller gives it.
   Other placeholders are arguments, percent-encoded; none can leave its part of the path.
2. A credential is an argument of ``request_of`` and is not stored anywhere.
3. A result is ``{"ok": true, "data": ...}``, with ``"truncated": true, "original_bytes": n`` when
   *data* is the beginning of a longer text; or ``{"ok": false, "error": {"code", "message"}}``.  As
   JSON it has at most the bytes that its tool may return.

Codes of errors: ``timeout``; ``unreachable``: no answer that is HTTP; ``http_NNN``: an answer with
another status than 2xx; ``bad_argument``; ``no_credential``; ``unknown_tool``; ``busy``.
Source: Clawdapus ADR-020, "Path placeholders", "Tool execution errors", ``max_tool_result_bytes``.
"""

from clawlite.core.base.errors import ClawError, ParseError
from clawlite.core.base.render import canonical
from clawlite.core.base.text import decode_utf8
from clawlite.core.net.oauth2 import percent_encode

MAX_RESULT = 16384  # bytes of a result as JSON (ADR-020)
TIMEOUT_MS = 30000  # of one call (ADR-020)
MAX_BODY = 1048576  # bytes of an answer that an executor needs to keep; it counts the rest
MAX_TARGET = 8192  # bytes of path and query together
CLAW_ID = "claw_id"
NATIVE, MEDIATED = 0, 1  # who calls: the device, or its gateway
SERVED = "mcp"  # the scheme of a row for an MCP server, which section MCP describes
QUERY, JSON, FORM = 0, 1, 2  # where the arguments without a placeholder go
BEARER, HEADER = 0, 1  # how a credential is sent
_EXCERPT = 512  # bytes of the body of an error


class BadArgument(ClawError):
    """An argument that the request cannot carry; nothing was sent."""


class Service:
    """A row of the section SERVICES of an image.

    name      str
    mode      NATIVE or MEDIATED
    scheme, host, port, base   its address: "http" or "https", and a prefix of every path; SERVED:
              section MCP has the address
    auth      [BEARER, "Authorization", secret's name], [HEADER, header, secret's name], or None
    devices   names of the devices that a gateway calls for; []: all devices that run the image
    tools     {name: [name, method, path, QUERY | JSON | FORM, whether claw_id is an argument too]}
    feeds     [[name, path, seconds], ...]
    """

    def __init__(self, row: list) -> None:
        (
            self.name,
            self.mode,
            self.scheme,
            self.host,
            self.port,
            self.base,
            self.auth,
            self.devices,
            tools,
            self.feeds,
        ) = row
        self.tools = {tool[0]: tool for tool in tools}


class Request:
    """The HTTP request of a call.

    method, target   target: path and query, percent-encoded
    headers          [(name, value), ...], the credential's last
    body             bytes, or None
    secret           the credential, or ""
    """

    def __init__(
        self, method: str, target: str, headers: list, body: bytes | None, secret: str = ""
    ) -> None:
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.secret = secret


class ServiceResult(dict):
    """A result; ``is_error`` is for the tool pipeline; *ran*: the service may have got it."""

    ran = True

    @property
    def is_error(self) -> bool:
        return not self["ok"]


def request_of(
    service: Service, tool: list, arguments: dict, claw_id: str, secret: str | None, dumps
) -> Request:
    """Return the ``Request`` of one call.

    tool       one of ``service.tools``
    arguments  that fit its schema; a claw_id among them is ignored
    claw_id    str, the identity of the caller
    secret     str, the credential of ``service.auth``, or None: none is sent
    dumps      function(value) -> str, JSON
    Raises ``BadArgument``.
    """
    _, method, path, where, says_id = tool
    given = dict(arguments)
    given[CLAW_ID] = claw_id
    target, used = _fill(path, given)
    if not says_id:
        used.append(CLAW_ID)
    rest = [(name, given[name]) for name in sorted(given) if name not in used]
    headers, body = [("Accept", "application/json")], None
    if where == QUERY:
        pairs = _pairs(rest)
        target += ("&" if "?" in target else "?") + pairs if pairs else ""
    elif where == FORM:
        headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        body = _pairs(rest).encode()
    else:
        headers.append(("Content-Type", "application/json"))
        body = dumps(dict(rest)).encode()
    target = service.base + target
    if len(target) > MAX_TARGET:
        raise BadArgument(
            "path and query have %d bytes, expected at most %d" % (len(target), MAX_TARGET)
        )
    if secret is not None and service.auth:
        value = "Bearer " + secret if service.auth[0] == BEARER else secret
        headers.append((service.auth[1], value))
    return Request(method, target, headers, body, secret or "")


def placeholders(path: str) -> list:
    """Return the names in braces in *path*, in order.  Raises ``ValueError`` for a single brace."""
    found = []
    parts = path.split("{")
    if "}" in parts[0]:
        raise ValueError("a } without {")
    for part in parts[1:]:
        name, mark, after = part.partition("}")
        if not mark or not name or "}" in after:
            raise ValueError("expected {name}")
        found.append(name)
    return found


def _fill(path: str, given: dict) -> tuple:
    """Return (*path* with its placeholders filled, their names)."""
    names = placeholders(path)
    for name in names:
        if name not in given or given[name] is None:
            raise BadArgument("%s: the path needs it" % name)
        value = _text(given[name])
        if value is None:
            raise BadArgument("%s: the path takes a text, a number or a boolean" % name)
        path = path.replace("{%s}" % name, percent_encode(value))
    for part in path.partition("?")[0].split("/")[1:] if names else ():
        if part in ("", ".", "..") or "%00" in part:
            raise BadArgument("a part of the path would be empty, a dot or two, or hold a NUL")
    return path, names


def _pairs(rest: list) -> str:
    pairs = []
    for name, value in rest:
        for one in value if isinstance(value, list) else (value,):
            if one is not None:
                text = _text(one)
                pairs.append(
                    "%s=%s"
                    % (
                        percent_encode(name),
                        percent_encode(canonical(one) if text is None else text),
                    )
                )
    return "&".join(pairs)


def _text(value: object) -> str | None:
    """Return *value* as text for a path or a query; None when it is an array or an object."""
    if isinstance(value, str):
        return value
    return None if isinstance(value, (dict, list)) else canonical(value)


def result_of(status: int, body: bytes, loads, max_bytes: int = MAX_RESULT, size: int = 0) -> dict:
    """Return the ``ServiceResult`` of a complete answer.

    body   the bytes that were kept: all, or at least MAX_BODY of them
    loads  function(bytes) -> value of JSON; raises ``ParseError``
    size   bytes of the whole body, when fewer were kept
    """
    body = bytes(body)
    if not 200 <= status < 300:
        said = _decode(body[:_EXCERPT]).strip()
        why = ", which is not followed" if 300 <= status < 400 else ""
        return failure(
            "http_%d" % status,
            "The service answered %d%s%s" % (status, why, ": " + said if said else ""),
            max_bytes,
        )
    size = max(size, len(body))
    value = None
    if size == len(body) and body.strip():
        try:
            value = loads(body)
        except ParseError:
            value = _decode(body)
        found = ServiceResult(ok=True, data=value)
        if len(canonical(found).encode()) <= max_bytes:
            return found
    elif not body:
        return ServiceResult(ok=True, data=None)
    found = ServiceResult(ok=True, data="", truncated=True, original_bytes=size)
    room = max_bytes - len(canonical(found).encode())
    data = body[: max(room, 0)]
    found["data"] = _decode(data)
    over = len(canonical(found).encode()) - max_bytes  # escapes make the JSON longer
    if over > 0:
        found["data"] = _decode(data[: max(len(data) - over, 0)])
    return found


def failure(code: str, message: str, max_bytes: int = MAX_RESULT) -> ServiceResult:
    """Return the ``ServiceResult`` of a call that failed."""
    found = ServiceResult(ok=False, error={"code": code, "message": message})
    over = len(canonical(found).encode()) - max_bytes
    if over > 0:
        data = message.encode()
        found["error"]["message"] = _decode(data[: max(len(data) - over, 0)])
    return found


def refusal(code: str, message: str, max_bytes: int = MAX_RESULT) -> ServiceResult:
    """Return the ``ServiceResult`` of a call that was refused before the service was called."""
    found = failure(code, message, max_bytes)
    found.ran = False
    return found


def make_timeout(ms: int, max_bytes: int = MAX_RESULT) -> ServiceResult:
    """Return the ``ServiceResult`` of a service that did not answer within *ms*."""
    seconds = "%ds" % (ms // 1000) if ms >= 1000 else "%dms" % ms
    return failure("timeout", "Service did not respond within " + seconds, max_bytes)


def _decode(data: bytes) -> str:
    """Return *data* as text, without a character that is cut at its end.  When *data* is no UTF-8,
    each byte that is neither printable ASCII nor white space becomes a question mark.
    """
    end = len(data)
    while 0 < end and len(data) - end < 3 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    if end and data[end - 1] >= 0xC0:  # the last character begins here: is it complete?
        first = data[end - 1]
        length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        if len(data) - end + 1 < length:
            data = data[: end - 1]
    try:
        return decode_utf8(data)
    except ValueError:
        return str(bytes([b if 32 <= b < 127 or b in (9, 10, 13) else 63 for b in data]), "utf-8")
