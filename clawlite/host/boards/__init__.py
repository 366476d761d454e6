"""Board profiles: what is known of each board.

Imports: base, models.
Used by: build, cli, console, fit, flash, manifest, projects, serial, sim.
"""
