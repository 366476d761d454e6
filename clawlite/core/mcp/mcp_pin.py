"""What of an MCP tool is pinned when an agent is built: its description and its input schema."""

from clawlite.core.base.dialect import sha256
from clawlite.core.base.render import canonical


def pin_of(definition: dict) -> bytes:
    """Return 32 bytes that tell one *definition* of ``tools/list`` from another: half a SHA-256 of
    its description, and one of its input schema.
    """
    return _half(definition.get("description")) + _half(definition.get("inputSchema"))


def changed(old: bytes, new: bytes) -> str:
    """Return which part differs between two pins, for a person; "" when none does."""
    parts = []
    for name, start in (("description", 0), ("input schema", 16)):
        if old[start : start + 16] != new[start : start + 16]:
            parts.append(name)
    return " and ".join(parts)


def _half(value) -> bytes:
    return sha256(canonical(value).encode()).digest()[:16]
