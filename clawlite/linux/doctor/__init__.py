"""``clawlite doctor``: what is wrong on this machine, and the command that mends it.

Imports: files, io, memory, sandbox, secrets.
Used by: clawlite/command.py.
"""
