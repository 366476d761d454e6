"""Where an agent's files lie, how a path becomes an open file without a check that comes before
its use, and the log of records that the other rooms append to.

Imports: no other room.
Used by: admin, audit, channels, confinement, doctor, hardware, io, memory, monitor, rules, runtime,
sandbox, secrets, swarm, swarm_commands, tools.
"""
