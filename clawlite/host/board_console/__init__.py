"""A person or a command at the far end of a board's serial line.

Imports: base, boards, firmware, flash, image, serial, systems.
Used by: cli, gateway.
"""
