"""Every feature of a manifest, each declared by the ``feature.py`` of its room
(host/models/feature.py).  The order is that in which an image is compiled.
"""

from clawlite.host.channels import feature as channels
from clawlite.host.hardware import feature as hardware
from clawlite.host.identity import feature as identity
from clawlite.host.mcp import feature as mcp
from clawlite.host.memory import feature as memory
from clawlite.host.models.feature import Requirement
from clawlite.host.policy import feature as policy
from clawlite.host.providers import feature as providers
from clawlite.host.rules import feature as rules
from clawlite.host.sandbox import feature as sandbox
from clawlite.host.services import feature as services
from clawlite.host.skills import feature as skills
from clawlite.host.swarm import feature as swarm
from clawlite.host.telemetry import feature as telemetry
from clawlite.host.tools import feature as tools
from clawlite.host.world_models import feature as world_models

FEATURES = tuple(
    room.FEATURE
    for room in (
        tools,
        identity,
        sandbox,
        policy,
        skills,
        hardware,
        memory,
        channels,
        world_models,
        mcp,
        swarm,
        services,
        telemetry,
        rules,
        providers,  # what a model is shown is compiled last
    )
)
MODELS = {feature.name: feature.model for feature in FEATURES if feature.model}


def find_needs(manifest) -> dict[str, list[Requirement]]:
    """Return {ability: what of the first feature that needs it}, of all that a device must have to
    run *manifest*.
    """
    found: dict = {}
    for feature in FEATURES:
        own: dict = {}
        for one in feature.needs(manifest):
            own.setdefault(one.ability, []).append(one)
        found = own | found
    return found
