"""What is on record of an agent, as commands and operators read it: its calls and why each was
decided so, its audit, its memory.

Imports: audit, files, io.
Used by: admin, monitor, tasks.
"""
