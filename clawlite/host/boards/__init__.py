"""Board profiles: what is known of each board.

Imports: base, models.
Used by: board_console, builder, cli, fit, flash, hardware, projects, sandbox, serial, sim, tools,
wiring.
"""
