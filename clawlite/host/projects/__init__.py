"""New projects from templates.

Imports: base, boards, builder, fit, providers.
Used by: bench, cli.
"""
