"""What went wrong on a bus, in words: one clear error for each kind of fault."""

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.buses.bustable import BUS_MOST, BUS_NAME

_ETIMEDOUT = (110, 116)  # esp32's network has another number for it
_NOBODY = (6, 19, 121)  # ENXIO, ENODEV, EREMOTEIO: no acknowledgement


def failure(row: list, e, what: str = "") -> ClawError:
    """Return the error of a transfer on the bus *row* that failed with *e*, an ``OSError``.

    what  who was asked, such as "0x76"
    """
    number = e.args[0] if e.args else 0
    where = "bus %s%s" % (row[BUS_NAME], ": " + what if what else "")
    if number in _NOBODY:
        return ClawError(
            "%s: nobody answers" % where,
            "look at its wires and its power, and whether it has this address",
        )
    if number in _ETIMEDOUT:
        return ClawError(
            "%s: the bus hangs: a line is held low, or the device is too slow" % where,
            "look for a short circuit, or cut the power of its devices for a moment",
        )
    place = getattr(e, "filename", None)
    return ClawError(
        "%s: %s%s" % (where, place + ": " if place else "", getattr(e, "strerror", None) or e),
        "check that the bus is enabled, that the device is wired to it, and that this user is in "
        "the group that may use it",
    )


def refuse_count(row: list, count: int, most: int = 0):
    """Raise ``SandboxDenied`` for a transfer of more bytes than is allowed."""
    most = most or row[BUS_MOST]
    if not 0 < count <= most:
        raise SandboxDenied(
            "bus %s: %d bytes at once, expected 1 to %d" % (row[BUS_NAME], count, most),
            "make several smaller transfers",
            {"bus": row[BUS_NAME]},
        )
