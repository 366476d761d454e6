"""The image as a file: written, and shown to people.

Imports: base.
Used by: bench, build, cli, compiler, firmware, flash, providers.
"""
