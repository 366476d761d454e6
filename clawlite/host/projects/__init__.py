"""New projects from templates.

Imports: base, boards, fit, providers.
Used by: bench, cli.
"""
