"""The command line: declarations and printing, no work.

Imports: base, bench, boards, build, console, firmware, flash, gateway, image, manifest, projects,
serial, sim.
Used by: clawlite/command.py.
"""
