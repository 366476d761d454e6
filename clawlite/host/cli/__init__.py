"""What the verbs of the command line call on the host: printing, no work.

Imports: base, bench, board_console, boards, builder, firmware, flash, gateway, manifest, page,
projects, serial, sim, wiring.
Used by: clawlite/command.py.
"""
