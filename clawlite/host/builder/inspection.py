"""Show the contents of an image, for people and for ``--json``."""

from clawlite.core.base.printable import join_lines
from clawlite.core.image import header, image_signature
from clawlite.host.hardware import show as pins
from clawlite.host.image.image_file import AUTONOMY, SECTION_NAMES
from clawlite.host.image.image_reader import read_checked, read_named
from clawlite.host.mcp import show as mcp
from clawlite.host.memory import show as memory
from clawlite.host.policy import show as policy
from clawlite.host.services import show as services
from clawlite.host.skills import show as skills
from clawlite.host.tools import show as tools

# What the features show, in the order in which a person reads it: key -> (heading,
# function(image) -> (what stands under the key, lines for people)).  None of these modules needs a
# package: a device shows an image, too.
PARTS = {
    "stores": ("stores", memory.show),
    "pins": ("pins", pins.show),
    "audit": ("audit", policy.show_audit),
    "tools": ("tools", tools.show),
    "services": ("services", services.show),
    "mcp_servers": ("MCP servers", mcp.show),
    "skills": ("skills", skills.show),
    "rules": ("rules, first match wins", policy.show_rules),
}


def inspect_file(path: str) -> tuple:
    """Return (facts, text) of the image in the file *path* (see ``inspect``).  Raises
    ``ImageError``, which names the file.
    """
    return read_named(path, inspect)


def inspect(data: bytes) -> tuple:
    """Return (facts, text for people) of the image *data*, its digest checked.  Raises
    ``ImageError``.

    Keys of the facts: agent, version, identity, compiler, format, bytes, signed, autonomy, level,
    sandbox, tool_calls_per_minute, requires, sources, companions, sections, and those of ``PARTS``.
    """
    image = read_checked(data)
    agent = image.agent
    found = {
        "agent": agent.name,
        "version": agent.version,
        "identity": agent.identity,
        "compiler": image.compiler,
        "format": header.FORMAT,
        "bytes": len(data),
        "signed": len(data) - image.seal_at == image_signature.SIGNED,
        "autonomy": AUTONOMY[agent.autonomy],
        "level": f"level-{agent.level}",
        "sandbox": agent.sandbox or None,
        "tool_calls_per_minute": agent.calls_per_minute,
        "requires": image.requires,
        "sources": image.sources.hex(),
        "companions": [{"file": name, "sha256": digest.hex()} for name, digest in image.companions],
        "sections": [
            {"name": SECTION_NAMES.get(number, f"section {number}"), "bytes": image.size_of(number)}
            for number in image.sections()
        ],
    }
    lines = _head(found)
    for key, (heading, show) in PARTS.items():
        found[key], shown = show(image)
        lines += [heading, *("  " + line for line in shown)] if shown else []
    return found, join_lines(lines)


def _head(found: dict) -> list:
    lines = [
        f"{found['agent']} {found['version']}".rstrip() + f" - {found['bytes']} bytes, "
        f"format {found['format']}, "
        f"built by {found['compiler']}, {'signed' if found['signed'] else 'not signed'}",
        f"  {found['level']}, {found['autonomy']}, sandbox "
        f"{found['sandbox'] or 'none declared'}, "
        f"needs: {', '.join(found['requires']) or 'nothing special'}",
        "sections",
    ]
    lines += [f"  {part['name']:14}{part['bytes']:7} bytes" for part in found["sections"]]
    lines += ["files that travel with it"] if found["companions"] else []
    lines += [f"  {one['file']}, SHA-256 {one['sha256'][:16]}..." for one in found["companions"]]
    return lines
