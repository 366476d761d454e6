"""Board profiles: what is known of each board.

Imports: base, models.
Used by: board_console, builder, cli, fit, flash, manifest, projects, serial, sim, tools, wiring.
"""
