"""What drivers for MicroPython import that Python has not, or has under another name: so a driver
in plain Python runs on Linux as on a board.  Loaded when such a driver is there.

    micropython             const, and decorators that change nothing here
    utime, ustruct, ...     the module of Python without the u
    time, in a driver       with sleep_ms, sleep_us, ticks_ms, ticks_us, ticks_diff, ticks_add
"""

import sys
import time
from importlib import import_module

RENAMED = ("utime", "ustruct", "ubinascii", "uos", "ujson", "uio", "ucollections")
_PERIOD = 1 << 30  # of ticks, as on MicroPython


def find(name: str, in_driver: bool):
    """Return the module that *name* means here, or None: it is not of these."""
    if name == "micropython":
        return _micropython()
    plain = name[1:] if name in RENAMED else name
    if plain == "time" and (in_driver or plain != name):
        return _time()
    return import_module(plain) if plain != name else None


def _module(name: str, names: dict):
    module = type(sys)(name)
    module.__dict__.update(names)
    return module


def _micropython():
    same, nothing = (lambda one: one), (lambda *values: None)
    quiet = ("opt_level", "alloc_emergency_exception_buf", "mem_info", "heap_lock", "heap_unlock")
    return _module(
        "micropython",
        {
            **dict.fromkeys(("const", "native", "viper", "bytecode"), same),
            **dict.fromkeys(quiet, nothing),
            "schedule": lambda function, argument: function(argument),
        },
    )


def _time():
    return _module(
        "time",
        {
            **{name: one for name, one in vars(time).items() if name[:2] != "__"},
            "sleep_ms": lambda ms: time.sleep(max(0, ms) / 1000),
            "sleep_us": lambda us: time.sleep(max(0, us) / 1000000),
            "ticks_ms": lambda: time.monotonic_ns() // 1000000 % _PERIOD,
            "ticks_us": lambda: time.monotonic_ns() // 1000 % _PERIOD,
            "ticks_add": lambda ticks, delta: (ticks + delta) % _PERIOD,
            "ticks_diff": _ticks_diff,
        },
    )


def _ticks_diff(later: int, earlier: int) -> int:
    return (later - earlier + _PERIOD // 2) % _PERIOD - _PERIOD // 2
