"""Serial ports: what is attached and which board it is.

Imports: base, boards, sim.
Used by: bench, board_console, cli, flash, gateway.
"""
