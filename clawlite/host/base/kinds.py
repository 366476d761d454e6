"""Names of CKP, for modules that need no models of them.

KINDS    kind -> (slot in the root's spec, word in a URI)
LEVELS   of conformance, the highest first: (name, kinds that it requires; section 11)
LIMITS   fields of resource_limits of a Sandbox
"""

KINDS = {
    "Identity": ("identity", "identity"),
    "Provider": ("providers", "provider"),
    "Channel": ("channels", "channel"),
    "Tool": ("tools", "tool"),
    "Skill": ("skills", "skill"),
    "Memory": ("memory", "memory"),
    "Sandbox": ("sandbox", "sandbox"),
    "Policy": ("policies", "policy"),
    "Swarm": ("swarm", "swarm"),
    "Telemetry": ("telemetry", "telemetry"),
    "WorldModel": ("world_models", "world-model"),
}
_LEVEL_1 = ("Identity", "Provider")
_LEVEL_2 = (*_LEVEL_1, "Channel", "Tool", "Sandbox", "Policy")
LEVELS = (
    ("level-3", (*_LEVEL_2, "Skill", "Memory", "Swarm")),
    ("level-2", _LEVEL_2),
    ("level-1", _LEVEL_1),
)
LIMITS = (
    "memory_mb",
    "cpu_shares",
    "max_processes",
    "max_open_files",
    "timeout_ms",
    "max_output_bytes",
)
