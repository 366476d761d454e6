"""``clawlite swarm``: a person starts agents, gives them a task, and sees what became of it.

Imports: admin, confinement, files, io, memory, net, runtime, secrets, swarm, swarm_engines.
Used by: clawlite/command.py.
"""
