"""Tasks that an operator gives to an agent and asks for later (claw.task.create, get, list, cancel
and subscribe), and operators on lines of their own.

Imports: files, io, memory, swarm.
Used by: admin, runtime.
"""
