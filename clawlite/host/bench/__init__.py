"""Benchmarks: what this machine and a board do, as rows.

Imports: base, builder, firmware, fit, flash, image, projects, serial.
Used by: cli.
"""
