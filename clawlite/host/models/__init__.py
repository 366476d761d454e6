"""Typed models of the CKP primitives, one module a kind, and the table of kinds."""
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

# kind -> (slot in the root's spec, word in a URI, spec)
KINDS = {
    "Identity": ("identity", "identity", IdentitySpec),
    "Provider": ("providers", "provider", ProviderSpec),
    "Channel": ("channels", "channel", ChannelSpec),
    "Tool": ("tools", "tool", ToolSpec),
    "Skill": ("skills", "skill", SkillSpec),
    "Memory": ("memory", "memory", MemorySpec),
    "Sandbox": ("sandbox", "sandbox", SandboxSpec),
    "Policy": ("policies", "policy", PolicySpec),
    "Swarm": ("swarm", "swarm", SwarmSpec),
    "Telemetry": ("telemetry", "telemetry", TelemetrySpec),
    "WorldModel": ("world_models", "world-model", WorldModelSpec),
}
