"""New projects from templates.

Imports: base, boards, builder, hardware, providers.
Used by: bench, cli.
"""
