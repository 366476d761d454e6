"""The image as a file: written, and read.

Imports: base.
Used by: bench, builder, compiler, firmware, flash, identity, policy, providers, tools.
"""
