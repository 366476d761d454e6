"""``clawlite swarm``: a person starts agents, gives them a task, and sees what became of it.

Imports: admin, confinement, files, io, memory, runtime, swarm.
Used by: clawlite/command.py.
"""
