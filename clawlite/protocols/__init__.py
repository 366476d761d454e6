"""What Linux and the host share and no board loads: protocols without I/O, on CPython alone."""
