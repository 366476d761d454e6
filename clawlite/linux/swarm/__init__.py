"""The swarm of an agent: tasks that one agent gives another, over a file or
an engine that they share (CKP 5.9).

Imports: files, io, memory, secrets, swarm_engines.
Used by: runtime, swarm_commands, tasks.
"""
