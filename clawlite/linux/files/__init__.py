"""Where an agent's files lie, and how a path becomes an open file without a check that comes
before its use.

Imports: no other room.
Used by: admin, audit, channels, memory, runtime, sandbox, secrets, swarm,
swarm_commands, tools.
"""
