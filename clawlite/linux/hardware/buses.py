"""I2C, SPI and 1-wire, as ``[[buses]]`` of clawlite.toml declare them: the handlers of
i2c-transfer, spi-transfer and one-wire-read.

1. A bus, an address or a device that is not declared is refused (-32010) before anything is opened.
2. A transfer may block for a second, so it runs in a thread, and its tool yields until it is done.
   Each bus runs one transfer at a time.
3. A bus with ``simulate`` is real only on a Raspberry Pi, and simulated on any other machine: the
   buses of a laptop have its monitor and its battery on them.
"""

import _thread

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.image.header import shaped

I2C, SPI, ONE_WIRE = range(3)  # host/tools/buses.py, KINDS
SHAPE = (str, 3, 256, 256, 4, 1 << 30, [128], [str], [None, bytes])  # core/image/header.py
_KINDS = ("i2c", "spi", "one-wire")
_POLL_MS = 2
_MODEL = "/proc/device-tree/model"


class Bus:
    """One declared bus; *row*: its row in the image (``SHAPE``)."""

    def __init__(self, row: list, is_pi: bool):
        (
            self.name,
            self.kind,
            self.number,
            self.device,
            self.mode,
            self.speed_hz,
            self.addresses,
            self.devices,
            simulated,
        ) = row
        self.lock = _thread.allocate_lock()
        if simulated is not None and not is_pi:
            from clawlite.linux.hardware.simulated_bus import device

            self.port = device(self, simulated)
        else:
            from clawlite.linux.hardware.bus_io import device

            self.port = device(self)


class Buses:
    """The buses of one agent; *rows*: the rows of buses in the image's section LOCAL."""

    def __init__(self, rows: list, is_pi: bool = None):
        is_pi = is_raspberry_pi() if is_pi is None else is_pi
        self._buses = {row[0]: Bus(row, is_pi) for row in shaped(rows, [SHAPE], "the buses")}

    def handlers(self) -> dict:
        """Return {name of a tool: generator function}."""
        return {"i2c-transfer": self.i2c, "spi-transfer": self.spi, "one-wire-read": self.one_wire}

    def i2c(self, bus: str, address: int, write: list = (), read: int = 0):
        """Write bytes, then read some, with a repeated start between."""
        one = self._bus(bus, I2C)
        if address not in one.addresses:
            raise SandboxDenied(
                "bus %s: address 0x%02x is not declared; declared: %s"
                % (bus, address, ", ".join(["0x%02x" % a for a in one.addresses])),
                "add it to addresses of this bus in clawlite.toml",
                {"bus": bus, "address": address},
            )
        if not write and not read:
            raise ClawError("nothing to write and nothing to read", "give write, read or both")
        data = yield from _aside(one, lambda: one.port.transfer(address, bytes(write), read))
        return {"bus": bus, "address": address, "data": list(data)}

    def spi(self, bus: str, data: list):
        """Exchange bytes."""
        one = self._bus(bus, SPI)
        return {
            "bus": bus,
            "data": list((yield from _aside(one, lambda: one.port.transfer(bytes(data))))),
        }

    def one_wire(self, bus: str, device: str = None):
        """Read a thermometer, or list the declared devices that are there."""
        one = self._bus(bus, ONE_WIRE)
        if device is None:
            return {"bus": bus, "devices": (yield from _aside(one, one.port.present))}
        if device not in one.devices:
            raise SandboxDenied(
                "bus %s: device %s is not declared; declared: %s"
                % (bus, device, ", ".join(one.devices)),
                "add it to devices of this bus in clawlite.toml",
                {"bus": bus, "device": device},
            )
        value = yield from _aside(one, lambda: one.port.millidegrees(device))
        return {"bus": bus, "device": device, "temperature_mc": value}

    def _bus(self, name: str, kind: int) -> Bus:
        one = self._buses.get(name)
        if one is None or one.kind != kind:
            known = [bus.name for bus in self._buses.values() if bus.kind == kind]
            raise SandboxDenied(
                "no %s bus is called %s; declared: %s"
                % (_KINDS[kind], name, ", ".join(known) or "none"),
                "declare it in clawlite.toml under [[buses]]",
                {"bus": name},
            )
        return one


def is_raspberry_pi() -> bool:
    """Return whether this machine is a Raspberry Pi."""
    try:
        with open(_MODEL, "rb") as file:
            return file.read(64).startswith(b"Raspberry Pi")
    except OSError:
        return False


def _aside(bus: Bus, function):
    """A generator that runs *function* in a thread, yields until it ends and returns its result.
    Raises what *function* raises, but an ``OSError`` as a ``ClawError``.
    """
    outcome = []

    def work():
        with bus.lock:
            try:
                outcome.append((True, function()))
            except Exception as e:
                outcome.append((False, e))

    _thread.start_new_thread(work, ())
    while not outcome:
        yield _POLL_MS
    done, value = outcome[0]
    if done:
        return value
    if isinstance(value, OSError):
        raise ClawError(
            "bus %s: %s%s"
            % (
                bus.name,
                (value.filename + ": ") if value.filename else "",
                value.strerror or value,
            ),
            "check that the bus is enabled, that the device is wired to it, and that this user is "
            "in the group that may use it",
        )
    raise value
