"""Positions in the tuples of MicroPython's ``os`` and ``time``, whose fields have no names there.
The linker writes the numbers where they are used: on a board this module does not exist.
"""

STAT_SIZE = 6  # of os.stat: bytes of the file
# of os.statvfs: bytes of a block, blocks of the file system, free ones
BLOCK_BYTES, BLOCKS, FREE_BLOCKS = 0, 2, 3
# of time.gmtime: Monday is weekday 0
YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, WEEKDAY = range(7)
