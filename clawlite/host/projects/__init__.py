"""New projects from templates.

Imports: base, boards, build, fit, providers.
Used by: bench, cli.
"""
