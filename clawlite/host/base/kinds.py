"""Names of CKP, for modules that need no models of them.

KINDS    kind -> (slot in the root's spec, word in a URI)
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
LIMITS = (
    "memory_mb",
    "cpu_shares",
    "max_processes",
    "max_open_files",
    "timeout_ms",
    "max_output_bytes",
)
