"""The image as a file: written, and shown to people.

Imports: no other room.
Used by: bench, build, cli, compiler, firmware, flash, providers.
"""
