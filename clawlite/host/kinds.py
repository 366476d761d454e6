"""The kinds of primitives by name, for those who need no models of them.

KINDS    kind -> (slot in the root's spec, word in a URI)
UNBUILT  kinds that this version refuses when an image is built (unbuilt.py)
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
UNBUILT = ("Swarm",)
