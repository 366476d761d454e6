"""What a MicroPython board gets: modules linked, shortened and compiled (README.md here has each
pass).

Imports: base, image.
Used by: bench, board_console, cli, drivers, fit, flash, tools.
"""
