"""The stores of an agent's memory in SQLite and in files (CKP 5.6).

Imports: files, io, secrets.
Used by: channels, doctor, runtime, swarm, swarm_commands.
"""
