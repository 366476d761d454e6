"""Bytes, lines and signals between the process and the outside.

Imports: files.
Used by: admin, audit, channels, doctor, hardware, memory, monitor, rules, runtime, sandbox, swarm,
swarm_commands, telemetry, terminal, tools.
"""
