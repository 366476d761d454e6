"""The front end: claw.yaml and clawlite.toml become one checked Manifest, or a list of problems.

Imports: base, boards, channels, documents, drivers, mcp, memory, models, policy, providers,
services, swarm, telemetry, tools.
Used by: a2a, builder, cli, compiler, flash, gateway, wiring.
"""
