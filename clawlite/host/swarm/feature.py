"""Swarms, as the compiler sees them."""

from clawlite.core.image.image import STOPPED_WITH, SWARM
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.swarm import swarms


def check(manifest, at_use: bool) -> None:
    if at_use:
        return
    if manifest.swarm:
        swarms.refuse(manifest)
    for tool in manifest.tools:
        if tool.origin == "registry" and tool.name == "delegate" and not swarms.is_built(manifest):
            message = "this agent is in no swarm that could do what delegate asks"
            manifest.problem(tool, (), message, hint="add a Swarm")


def compile_sections(manifest, work) -> dict:
    gateway = manifest.settings.gateway
    stopped_with = gateway.obeys_stop_of if gateway else None
    return {SWARM: swarms.section(manifest), STOPPED_WITH: stopped_with}


def find_needs(manifest) -> list[Requirement]:
    found = []
    if swarms.is_built(manifest):
        found.append(Requirement("swarm", manifest.swarm.place))
    gateway = manifest.settings.gateway
    if gateway and gateway.obeys_stop_of:
        path = ("gateway", "obeys_stop_of")
        found.append(Requirement("stop-of-swarm", manifest.settings.place, path))
    return found


def fit(manifest, board, other, problems) -> None:
    """A board is a member of a swarm through its gateway, which speaks to the engine."""
    if board.runtime != "micropython" or not swarms.is_built(manifest):
        return
    if not manifest.settings.gateway:
        message = f"{board.name} is in a swarm through its gateway"
        hint = "add [gateway] to clawlite.toml"
        problems.add(manifest.swarm.place, (), message, hint=hint)
    elif manifest.swarm.spec.coordination.backend == "in-process":
        path, message = ("coordination", "backend"), "no gateway can speak for one process alone"
        problems.add(manifest.swarm.place, path, message, '"sqlite-wal"', '"in-process"')


FEATURE = Feature("swarm", check=check, compile=compile_sections, needs=find_needs, fit=fit)
