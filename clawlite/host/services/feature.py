"""Services, and MCP servers that a gateway calls, as the compiler sees them."""

from clawlite.core.image.image import SERVICES
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.services import context, image_section


def check(manifest, at_use: bool) -> None:
    image_section.refuse(manifest)


def compile_sections(manifest, work) -> dict:
    work.texts.append(context.text)
    return {SERVICES: image_section.section(manifest)}


def find_needs(manifest) -> list[Requirement]:
    place = manifest.settings.place
    served = [tool for tool in manifest.tools if tool.served and not tool.service]
    of_gateways = {"gateway": (place, ("gateway",)), "lan": (place, ("gateway", "wire"))}
    for tool in served[:1]:
        of_gateways.update(
            dict.fromkeys(("mediated", "mediated-line"), (tool.report_place, ("mcp_source",)))
        )
    found = []
    for ability in image_section.abilities(manifest):
        services = [(service.place, ("mode",)) for service in manifest.services]
        found.append(Requirement(ability, *(of_gateways.get(ability) or services[0])))
    return found


FEATURE = Feature("service", check=check, compile=compile_sections, needs=find_needs)
