"""The loop of an agent on Linux: it carries out the effects that the core asks for.

Imports: audit, channels, files, hardware, io, local, maker, memory, net, rules, secrets, swarm,
tasks, telemetry, terminal, tools.
Used by: admin, monitor.
"""
