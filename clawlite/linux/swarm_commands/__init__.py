"""``clawlite swarm``: a person starts agents, gives them a task, and sees what became of it.

Imports: admin, files, io, memory, runtime, swarm.
Used by: clawlite/command.py.
"""
