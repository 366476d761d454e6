"""The front end: claw.yaml and clawlite.toml become one checked Manifest, or a list of problems.

Imports: base, channels, documents, drivers, hardware, identity, mcp, memory, models, policy,
providers, rules, sandbox, services, skills, swarm, telemetry, tools, world_models.
Used by: a2a, builder, cli, compiler, fit, flash, gateway, wiring.
"""
