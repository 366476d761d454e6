"""Sensors that the kernel drives: IIO, hwmon and 1-Wire devices by their names, and those that an
overlay names and that do not answer.
"""

import os
import re

from clawlite.linux.doctor.doctor_checks import NONE, OK, WRONG

_IIO, _HWMON, _W1 = "/sys/bus/iio/devices", "/sys/class/hwmon", "/sys/bus/w1/devices"
_I2C = "/sys/bus/i2c/devices"
_AT = re.compile(r"[0-9]+-[0-9a-f]{4}\Z")  # what the kernel calls a chip on I2C: bus, address
_SLAVE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{12}\Z")
_MASTER = re.compile(r"w1_bus_master[0-9]+\Z")
_MOST = 20  # that are named


def sensors(here) -> list:
    """What the kernel of a Raspberry Pi measures with, by name."""
    if not here.text("/proc/device-tree/model").startswith("Raspberry Pi"):
        return [("sensors", NONE, "this is no Raspberry Pi", "")]
    rows = _silent_chips(here) + _silent_bus(here)
    found = _find_named(here, _IIO, "iio:device") + _find_named(here, _HWMON, "hwmon")
    found += ["%s (%s)" % (name, _W1) for name in here.names(_W1) if _SLAVE.match(name)]
    if found:
        more = ", and %d more" % (len(found) - _MOST) if len(found) > _MOST else ""
        rows.append(("sensors", OK, "the kernel drives " + ", ".join(found[:_MOST]) + more, ""))
    return rows or [("sensors", NONE, "the kernel drives none", "")]


def _find_named(here, folder: str, prefix: str) -> list:
    """Return "name (path)" of each device in *folder*."""
    found = []
    for device in here.names(folder):
        if device.startswith(prefix):
            name = here.text("%s/%s/name" % (folder, device))
            if _AT.match(name):  # some drivers take the chip's address for its name
                name = here.text("%s/%s/name" % (_I2C, name)) or name
            found.append("%s (%s/%s)" % (name.partition("@")[0] or "?", folder, device))
    return found


def _silent_chips(here) -> list:
    """Return a row for each chip on I2C that the kernel was told of and has no driver for: it did
    not answer, or there is none.
    """
    rows = []
    for device in here.names(_I2C):
        place = "%s/%s" % (_I2C, device)
        name = here.text(place + "/name")
        if _AT.match(device) and name and not os.path.exists(here.path(place + "/driver")):
            bus, address = device.split("-")
            what = "%s at address 0x%s of I2C bus %s does not answer" % (name, address[2:], bus)
            mend = "look at its wires, and for another address: i2cdetect -y %s" % bus
            rows.append(("sensors", WRONG, what, mend))
    return rows


def _silent_bus(here) -> list:
    names = here.names(_W1)
    if any(_SLAVE.match(name) for name in names) or not any(_MASTER.match(name) for name in names):
        return []
    what = "the 1-Wire bus is on, and no sensor on it answers"
    mend = "look at its wires, and for a resistor of 4.7 kOhm between data and 3.3 V"
    return [("sensors", WRONG, what, mend)]


CHECKS = (sensors,)
