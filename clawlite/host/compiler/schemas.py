"""The section of an image with the schemas of tools as their maker wrote them, for MCP clients.

An image has a schema as it was written where a remote provider is sent it.  Otherwise it has the
check program, which lacks descriptions and patterns.  The section has what is missing, and nothing
else; it is the last one, and only ``clawlite mcp serve`` reads it
(protocols/mcp/tool_definitions.py).
"""

import json

from clawlite.core.image import image as layout
from clawlite.protocols.mcp.tool_definitions import definitions


def section(specs: dict, data: bytes) -> list | None:
    """Return the section, or None where nothing is missing.

    specs  name of each tool in the image -> (input schema, output schema or None) as written
    data   the image without it
    """
    image = layout.Image(lambda offset, length: data[offset : offset + length], len(data), 1024)
    rows = []
    for found in definitions(image, json.JSONDecoder().raw_decode):
        given, gives = specs[found["name"]]
        row = [
            found["name"],
            _missing(given, found["inputSchema"]),
            _missing(gives, found["outputSchema"]) if "outputSchema" in found else "",
        ]
        if row[1:] != ["", ""]:
            rows.append(row)
    return rows or None


def _missing(written: dict, found: dict) -> str:
    """Return *written* as JSON, "" when *found* says the same."""
    if _whole(written) == _whole(found):
        return ""
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def _whole(schema: dict) -> dict:
    return {**schema, "type": "object", "properties": schema.get("properties", {})}
