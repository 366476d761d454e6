"""Headers that repeat parts of a request's body (2026-07-28, "Custom Headers"), so that a proxy
need not read the body.

1. A property of an input schema with ``x-mcp-header`` is repeated as ``Mcp-Param-NAME``.  That
   works for strings, integers and booleans, and below ``properties`` alone.
2. A value that no header can carry is written as ``=?base64?...?=``.
"""

from binascii import a2b_base64, b2a_base64

from clawlite.core.base.errors import ClawError
from clawlite.core.base.jsonvalue import show

MAX_PARAMS = 32
MAX_DEPTH = 8
_TOKEN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
_TYPES = ("string", "integer", "boolean")


def plain(data: bytes) -> bool:
    """Return whether *data* is visible ASCII, and not empty."""
    return len(data) > 0 and min(data) > 32 and max(data) < 127


def decode(value: str) -> str:
    """Return the decoded *value* of such a header; invalid base64 stays as it is."""
    if value.startswith("=?base64?") and value.endswith("?="):
        try:
            return str(a2b_base64(value[9:-2]), "utf-8")
        except ValueError:  # UnicodeError is one, too
            pass
    return value


def of_arguments(schema: object, arguments: dict) -> list:
    """Return [(name, value), ...] of the *arguments* that *schema* wants repeated; without a schema
    all arguments, under their own names.

    Raises ``ClawError`` when an ``x-mcp-header`` in the schema is invalid.
    """
    if schema is None:
        return [(name, _value(value)) for name, value in arguments.items()]
    found = {}
    _walk(schema, arguments, found, 0)
    return list(found.values())


def _walk(schema: object, values: object, found: dict, depth: int) -> None:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth > MAX_DEPTH:
        return
    for field, part in properties.items():
        value = values.get(field) if isinstance(values, dict) else None
        name = part.get("x-mcp-header") if isinstance(part, dict) else None
        if name is None:
            _walk(part, value, found, depth + 1)
            continue
        is_token = isinstance(name, str) and name and not name.encode().strip(_TOKEN)
        if not is_token or part.get("type") not in _TYPES or name.lower() in found:
            raise ClawError(
                "the MCP server's input schema has an x-mcp-header that no request can carry: %s"
                % show(name),
                "leave the tool out, or report it to the makers of the server",
            )
        if len(found) >= MAX_PARAMS:
            raise ClawError(
                "the MCP server's input schema has more than %d headers" % MAX_PARAMS,
                "leave the tool out, or report it to the makers of the server",
            )
        found[name.lower()] = None if value is None else ("Mcp-Param-" + name, _value(value))
    if depth == 0:
        for name in list(found):
            if found[name] is None:
                del found[name]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else str(value)
    data = text.encode()
    fits = data and min(data) >= 32 and max(data) < 127 and text == text.strip()
    if fits and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return "=?base64?%s?=" % b2a_base64(data).decode().strip()
