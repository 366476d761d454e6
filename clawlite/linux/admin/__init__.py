"""The commands of a person on a device: run, ask, serve, service, trace, audit, secrets
and people.

Imports: audit, channels, files, io, mcp, records, rules, runtime, secrets, tasks,
terminal.
Used by: clawlite/command.py, swarm_commands.
"""
