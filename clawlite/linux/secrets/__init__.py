"""Secrets by the names that a manifest gives them, and the encrypted store that keeps them.

Imports: files.
Used by: admin, audit, channels, doctor, memory, runtime, telemetry, tools.
"""
