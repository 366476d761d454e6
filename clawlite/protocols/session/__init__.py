"""Groups of methods that only Linux has, in an operator's session, and the parameters of tasks.

Imports: no other room.
Used by: host, linux, swarm.
"""
