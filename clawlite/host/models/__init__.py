"""The primitives of CKP as typed models, and the check of plain data against them.

Imports: base, schema.
Used by: boards, builder, channels, compiler, documents, hardware, manifest, mcp, memory, policy,
providers, rules, sandbox, services, skills, swarm, telemetry, tools, wiring, world_models.
"""

from clawlite.host.base import kinds
from clawlite.host.models.channel import ChannelSpec
from clawlite.host.models.identity import IdentitySpec
from clawlite.host.models.memory import MemorySpec
from clawlite.host.models.policy import PolicySpec
from clawlite.host.models.provider import ProviderSpec
from clawlite.host.models.sandbox import SandboxSpec
from clawlite.host.models.skill import SkillSpec
from clawlite.host.models.swarm import SwarmSpec
from clawlite.host.models.telemetry import TelemetrySpec
from clawlite.host.models.tool import ToolSpec
from clawlite.host.models.world_model import WorldModelSpec

_SPECS = {
    "Identity": IdentitySpec,
    "Provider": ProviderSpec,
    "Channel": ChannelSpec,
    "Tool": ToolSpec,
    "Skill": SkillSpec,
    "Memory": MemorySpec,
    "Sandbox": SandboxSpec,
    "Policy": PolicySpec,
    "Swarm": SwarmSpec,
    "Telemetry": TelemetrySpec,
    "WorldModel": WorldModelSpec,
}
# kind -> (slot in the root's spec, word in a URI, spec)
KINDS = {kind: (*words, _SPECS[kind]) for kind, words in kinds.KINDS.items()}
