"""Benchmarks: what this machine and a board do, as rows.

Imports: base, build, compiler, firmware, fit, flash, image, manifest, models, policy, projects,
serial, targets.
Used by: cli.
"""
