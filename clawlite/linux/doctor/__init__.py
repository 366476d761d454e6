"""``clawlite doctor``: what is wrong on this machine, and the command that mends it.

Imports: confinement, files, io, local, memory, sandbox, secrets.
Used by: clawlite/command.py.
"""
