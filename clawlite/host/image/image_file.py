"""Write an image: the inverse of clawlite/core/image/image.py, whose docstring is the layout and
image.cddl the grammar.

cbor2 writes it (deterministic, RFC 8949 4.2.1); the same sections give the same bytes on every
machine."""

import hashlib
import struct
import zlib

from clawlite.core.buses import bustable
from clawlite.core.image import image as layout
from clawlite.core.image.header import FORMAT, MAGIC
from clawlite.core.image.image import AUTOMATA, PROSE, PROVIDERS, RECORDS, RULES, WIRE
from clawlite.core.image.image_signature import sign
from clawlite.core.rules import table as rule_table
from clawlite.core.teach.draft import TEACH
from clawlite.protocols.image.features import APPROVALS
from clawlite.protocols.mcp.tool_definitions import SCHEMAS

# sections that hold bytes of their own layout; the others are one CBOR item
RAW = (RECORDS, RULES, AUTOMATA, PROSE, PROVIDERS, WIRE)
AUTONOMY = ("observer", "supervised", "autonomous")
# What people call the sections.
SECTION_NAMES = {
    layout.AGENT: "agent",
    layout.TOOLS: "tool index",
    layout.RECORDS: "tool records",
    layout.RULES: "rules",
    layout.AUTOMATA: "automata",
    layout.PROSE: "prose",
    layout.REFLEX: "reflex",
    layout.REPLAY: "replay",
    layout.PINS: "pins",
    layout.PROVIDERS: "providers",
    layout.WIRE: "wire",
    layout.SANDBOX: "sandbox",
    layout.TELEMETRY: "telemetry",
    layout.LOCAL: "local",
    layout.GUARD: "guard",
    layout.MEMORY: "memory",
    layout.SKILLS: "skills",
    layout.CHANNELS: "channels",
    layout.CONTEXT: "context",
    layout.WORLDS: "world models",
    layout.NETWORK: "network",
    layout.MCP: "MCP servers",
    layout.SWARM: "swarm",
    layout.SERVICES: "services",
    layout.STOPPED_WITH: "swarm whose stop holds",
    SCHEMAS: "schemas for MCP clients",
    rule_table.SECTION: "readings and rules",
    APPROVALS: "who is asked for approvals",
    rule_table.CONFIRMS: "effects that are checked",
    TEACH: "what taught rules may",
    bustable.BUSES: "buses",
    bustable.SIMULATED: "simulated devices",
}


def encode(value: object) -> bytes:
    """Return *value* as deterministic CBOR."""
    import cbor2

    return cbor2.dumps(value, canonical=True)


def table(rows: list) -> bytes:
    """Return *rows* (list of bytes) behind their (rows + 1) big-endian u32 offsets."""
    offset, offsets = 4 * (len(rows) + 1), []
    for row in rows:
        offsets.append(offset)
        offset += len(row)
    return struct.pack(">%dI" % (len(rows) + 1), *offsets, offset) + b"".join(rows)


def write(
    sections: dict,
    compiler: str,
    requires: list,
    sources: bytes,
    companions: list,
    key: bytes = None,
) -> bytes:
    """Return the image.

    sections    section number -> bytes (those in ``RAW``) or any CBOR-able value; None leaves one
                out
    compiler    name and version of what builds
    requires    sorted abilities that a device must have
    sources     SHA-256 over the manifest's files
    companions  [[name, SHA-256], ...] of files that travel with the image (tools.py)
    key         device key to sign with, or None
    """
    body = {
        number: value if number in RAW else encode(value)
        for number, value in sections.items()
        if value is not None
    }
    directory = [[number, len(body[number])] for number in sorted(body)]
    head = encode([compiler, requires, sources, companions, directory])
    data = (
        MAGIC
        + b"\x86"
        + encode(FORMAT)
        + encode(head)
        + encode(b"".join(body[number] for number, _ in directory))
    )
    data += encode(struct.pack(">I", zlib.crc32(data)))
    data += encode(hashlib.sha256(data).digest())
    if key is None:
        return data + b"\xf6"
    return data + encode(sign(lambda offset, size: data[offset : offset + size], len(data), key))
