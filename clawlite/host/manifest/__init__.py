"""The front end: claw.yaml and clawlite.toml become one checked Manifest, or a list of problems.

Imports: base, channels, documents, drivers, hardware, mcp, memory, models, policy, providers,
rules, sandbox, services, swarm, tools.
Used by: a2a, builder, cli, compiler, flash, gateway, wiring.
"""
