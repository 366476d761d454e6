"""An agent or MicroPython itself onto a board, a folder or a Raspberry Pi.

Imports: base, boards, builder, firmware, image, manifest, serial.
Used by: bench, board_console, cli.
"""
