"""What a MicroPython board gets: modules linked, shortened and compiled (README.md here has each
pass).

Imports: base, image.
Used by: bench, cli, console, fit, flash.
"""
