"""A virtual board: real MicroPython on a pseudo-terminal.

Imports: base, boards, fit.
Used by: cli, gateway, serial.
"""
