"""The command line: declarations and printing, no work.

Imports: base, bench, board_console, boards, build, firmware, flash, gateway,
image, manifest, projects, serial, sim.
Used by: clawlite/command.py.
"""
