"""What a person sees of the agents of this machine from a shell: ``clawlite top``, ``clawlite
logs`` and ``clawlite report``.

Imports: admin, audit, files, io, records, rules, runtime, tasks, terminal.
Used by: clawlite/command.py.
"""
