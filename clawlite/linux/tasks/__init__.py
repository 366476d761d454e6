"""Tasks that an operator gives to an agent and asks for later (claw.task.create, get, list, cancel
and subscribe), operators on lines of their own, and what the log has of turns.

Imports: files, io, memory, records, swarm.
Used by: admin, monitor, runtime.
"""
