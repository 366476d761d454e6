"""The image as a file: written, and shown to people.

Imports: base.
Used by: bench, builder, cli, compiler, firmware, flash, policy, providers, tools.
"""
