"""Secrets by the names that a manifest gives them, and the encrypted store that keeps them.

Imports: files.
Used by: admin, channels, doctor, memory, net, runtime, tools.
"""
