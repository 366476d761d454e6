"""Benchmarks: what this machine and a board do, as rows.

Imports: base, build, firmware, fit, flash, image, projects, serial.
Used by: cli.
"""
