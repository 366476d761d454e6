"""What a person sees of the agents of this machine from a shell: ``clawlite top``, ``clawlite
logs`` and ``clawlite report``.

Imports: files, io, records, terminal.
Used by: clawlite/command.py.
"""
