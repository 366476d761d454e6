"""What the core needs of both dialects, in one place.

``const`` marks an integer that MicroPython's compiler folds away; CPython sees a plain int.
"""

try:
    from micropython import const
except ImportError:  # CPython: the constant stays a plain int

    def const(value):
        return value
