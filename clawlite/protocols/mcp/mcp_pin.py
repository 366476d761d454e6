"""The pin of an MCP tool: its description and its input schema when the agent was built."""

from clawlite.core.base.dialect import sha256
from clawlite.core.base.render import canonical


def pin_of(definition: dict) -> bytes:
    """Return 32 bytes that identify one *definition* of ``tools/list``: half a SHA-256 of its
    description, and half a SHA-256 of its input schema.
    """
    return _half(definition.get("description")) + _half(definition.get("inputSchema"))


def name_changes(old: bytes, new: bytes) -> str:
    """Return the names of the parts that differ between two pins, for a person; "" for none."""
    parts = []
    for name, start in (("description", 0), ("input schema", 16)):
        if old[start : start + 16] != new[start : start + 16]:
            parts.append(name)
    return " and ".join(parts)


def _half(value: object) -> bytes:
    return sha256(canonical(value).encode()).digest()[:16]
