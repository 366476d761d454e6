"""The commands of a person on a device: run, ask, serve, service, trace, audit and secrets.

Imports: audit, channels, files, io, mcp, rules, runtime, secrets.
Used by: clawlite/command.py, swarm_commands.
"""
