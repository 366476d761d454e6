"""MCP servers, as the compiler sees them."""

from clawlite.core.image.image import MCP
from clawlite.host.mcp import image_section
from clawlite.host.models.feature import Feature, Requirement


def check(manifest, at_use: bool) -> None:
    image_section.refuse(manifest)


def compile_sections(manifest, work) -> dict:
    return {MCP: image_section.section(manifest)}


def find_needs(manifest) -> list[Requirement]:
    instead = 'let a gateway call it: mode = "mediated" under [mcp.NAME], and [gateway]'
    return [
        Requirement("mcp", tool.report_place, ("mcp_source",), instead)
        for tool in manifest.tools
        if tool.served and not tool.served.server.is_mediated
    ][:1]


FEATURE = Feature("mcp", check=check, compile=compile_sections, needs=find_needs)
