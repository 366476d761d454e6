"""Random bytes on every port."""

import os
import struct
import time


def random_bytes() -> bytes:
    """Return 4 random bytes; on a port without a source of them (WebAssembly), from the clock."""
    try:
        return os.urandom(4)
    except AttributeError:
        return struct.pack(">I", time.ticks_us() & 0x3FFFFFFF)
