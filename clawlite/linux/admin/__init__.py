"""The commands of a person on a device: run, ask, serve, doctor, service, trace, audit and
secrets.

Imports: audit, channels, files, io, mcp, memory, runtime, sandbox, secrets.
Used by: clawlite/command.py, swarm_commands.
"""
