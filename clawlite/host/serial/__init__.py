"""Serial ports: what is attached and which board it is.

Imports: base, boards, sim, systems.
Used by: bench, board_console, cli, flash, gateway.
"""
