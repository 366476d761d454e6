"""The image as a file: written, and read.

Imports: base.
Used by: bench, board_console, builder, compiler, firmware, fit, flash, gateway, identity, policy,
providers, tools.
"""
