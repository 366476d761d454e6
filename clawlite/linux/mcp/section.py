"""The section MCP of an image: its shape, and which servers are trusted.  It loads nothing else of
MCP, so that a start may ask."""

from clawlite.core.image.header import check_shape
from clawlite.core.image.image import MCP

# core/image/header.py: where tokens come from, and the section
_PLACE = (bool, str, int, str)
_TOKENS = [None, (*_PLACE, str, str, str, str, [None, (*_PLACE, str)])]
_RULES = ([None, [str]], int, int, int)
# the folders are a gateway's (linux/tools/gateway_server.py)
_LIFE = [_RULES, (*_RULES, [(str, bool)])]
_ROWS = [(str, [str], [str], bool, [(str, bytes)], [(str, str)], _TOKENS, _LIFE)]


def rows_of(image) -> list:
    """Return the rows of section MCP (linux/mcp/servers.py ``MCPServers``), [] where there is none.
    Raises ``ImageError``.
    """
    rows = image.section(MCP) or []
    check_shape(rows, _ROWS, "MCP servers")
    return rows


def list_trusted(image) -> list:
    """Return the names of the servers of which nothing is pinned (``trust = "start"``).  Raises
    ``ImageError``.
    """
    return [name for name, _, _, _, pins, *_ in rows_of(image) if not all(pin for _, pin in pins)]
