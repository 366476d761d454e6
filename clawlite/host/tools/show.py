"""What ``clawlite inspect`` shows of an image's tools."""

from clawlite.core.image import image as layout
from clawlite.core.image.image import HANDLER_KIND, HANDLER_NAME, MAKER
from clawlite.core.policy.policy_preview import preview

# by what answers a tool
HANDLERS = (
    "built in: ",
    "tools.py: ",
    "skill: ",
    "composite, by the skill ",
    "MCP server: ",
    "service: ",
)


def handler(tool) -> str:
    """Return what answers *tool* (``image.Tool``), for a person."""
    kind, name = tool.handler[HANDLER_KIND], tool.handler[HANDLER_NAME]
    if kind == MAKER:  # without the pin of a tool provider's
        name = "/".join(name.split("/")[:2])
    return HANDLERS[kind] + name


def show(image) -> tuple:
    """Return ([{"name", "description", "category", "read_only", "timeout_ms" or None,
    "max_attempts", "handler", "record_bytes", "policy"}], lines of them).
    """
    found, lines = [], []
    for name in image.names:
        tool, size, policy = image.tool(name), image.row(name)[2], preview(image, image.tool(name))
        found.append(
            {
                "name": name,
                "description": image.prose(tool.about),
                "category": tool.category,
                "read_only": bool(tool.flags & layout.READ_ONLY),
                "timeout_ms": tool.timeout_ms or None,
                "max_attempts": tool.retry[0] if tool.retry else 1,
                "handler": handler(tool),
                "record_bytes": size,
                "policy": policy,
            }
        )
        lines += [f"{name:20} {policy}", f"{'':20} {handler(tool)}, record of {size} bytes"]
    return found, lines
