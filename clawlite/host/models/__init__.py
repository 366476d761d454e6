"""What the models of the features share, the check of plain data against one, and the face of a
feature.

Imports: base.
Used by: boards, builder, channels, documents, hardware, identity, manifest, mcp, memory, policy,
providers, rules, sandbox, services, skills, swarm, telemetry, tools, wiring, world_models.
"""
