"""``board.onewire("freezer")``: thermometers on a 1-wire bus, DS18B20 and its kin.

    freezer.scan()                              the declared devices that are there
    mc = yield from freezer.temperature_mc()    thousandths of a degree Celsius; the conversion
                                                takes up to 800 ms, during which the agent goes on

A device is named as Linux names it: its family and its number in hexadecimal, "28-0316a279d1ff".

A *port* has ``present() -> [name, ...]``, ``start() -> ms`` until a conversion is done, and
``millidegrees(name) -> int``, and ``aside``, as every port has it: None, or, where a transfer may
block, a generator function(function, outcome) that lets it run beside the loop.
``WirePort`` is the port where this program moves the bits itself; below it is a *wire*, with
``search``, ``reset``, ``select``, ``command`` and ``read``, real or simulated.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.buses.busfaults import failure
from clawlite.core.buses.bustable import BUS_DEVICES, BUS_NAME, ONE_WIRE

_CONVERT, _READ, _SKIP = 0x44, 0xBE, 0xCC
_POWER_ON_MC, _SCRATCHPAD = 85000, 9
# 12 bits take up to 750 ms, and the wait counts from a moment before the command was sent
_CONVERSION_MS = 800
# positions in the scratchpad, which has its check at the end
_LOW = const(0)
_HIGH = const(1)
_CONFIG = const(4)
_REMAIN = const(6)
_PER_DEGREE = const(7)
_S_FAMILY = 0x10  # DS18S20: half degrees, and what remains of a count


class OneWireBus:
    kind = ONE_WIRE

    def __init__(self, row: list, port):
        self._row, self.port = row, port

    def scan(self) -> list:
        """Return the names of the declared devices that are there."""
        try:
            there = self.port.present()
        except OSError as e:
            raise failure(self._row, e)
        return [name for name in self._row[BUS_DEVICES] if name in there]

    def temperature_mc(self, device: str = None):
        """A generator that returns what *device* measures, in thousandths of a degree Celsius.

        device  a declared one; None: the only one
        Raises ``SandboxDenied``, ``ClawError``: it is not there, or what it sent is damaged.
        """
        device = self._find(device)
        try:
            wait_ms = self.port.start()
            if wait_ms:
                yield wait_ms
            if self.port.aside is None:
                return self.port.millidegrees(device)
            outcome = []
            for wait_ms in self.port.aside(lambda: self.port.millidegrees(device), outcome):
                yield wait_ms
            return outcome[0]
        except OSError as e:
            raise failure(self._row, e, device)

    def _find(self, device) -> str:
        """Return *device*, or the only declared one.  Raises ``SandboxDenied``."""
        row = self._row
        if device is None and len(row[BUS_DEVICES]) == 1:
            return row[BUS_DEVICES][0]
        if device not in row[BUS_DEVICES]:
            raise SandboxDenied(
                "bus %s: device %s is not declared; declared: %s"
                % (row[BUS_NAME], device, ", ".join(row[BUS_DEVICES])),
                "add it to devices of this bus in clawlite.toml",
                {"bus": row[BUS_NAME], "device": device},
            )
        return device


class WirePort:
    """The port of a *wire*: the commands of the thermometers."""

    aside = None

    def __init__(self, wire):
        self.wire = wire

    def present(self) -> list:
        return [name_of(rom) for rom in self.wire.search() if crc8(rom[:-1]) == rom[-1]]

    def start(self) -> int:
        """Let all thermometers measure."""
        if self.wire.reset():
            self.wire.command(_SKIP)
            self.wire.command(_CONVERT)
        return _CONVERSION_MS

    def millidegrees(self, name: str) -> int:
        """Return what *name* measured.  Raises ``ClawError``."""
        if not self.wire.reset():
            raise ClawError(
                "%s: nobody is on the wire" % name,
                "look at its wires, its power, and the resistor of 4.7 kOhm",
            )
        rom = rom_of(name)
        self.wire.select(rom)
        self.wire.command(_READ)
        data = self.wire.read(_SCRATCHPAD)
        if data == b"\xff" * _SCRATCHPAD:  # nobody pulled the wire low
            raise ClawError(
                "%s: it does not answer" % name,
                "look at its wires; scan() lists which devices are there",
            )
        if crc8(data[:-1]) != data[-1] or data == bytes(_SCRATCHPAD):
            raise ClawError(
                "%s: what it sent was damaged" % name,
                "try again; a bus with such errors wants a shorter wire or a smaller resistor",
            )
        value = thousandths(rom[0], data)
        if value == _POWER_ON_MC and data[_REMAIN] == 0x0C:
            raise ClawError(
                "%s: it has not measured: it lost its power meanwhile" % name,
                "look at its power; a long wire wants 3 wires, not 2",
            )
        return value


def thousandths(family: int, data: bytes) -> int:
    """Return the temperature in the scratchpad *data*.

    Source  datasheets of the DS18B20 ("Operation - Measuring Temperature"; bits below the
            resolution are undefined) and the DS18S20
    """
    raw = data[_LOW] | data[_HIGH] << 8
    raw -= (raw & 0x8000) << 1
    if family == _S_FAMILY:  # half degrees, refined by the count that remains of COUNT_PER_C
        per_degree = data[_PER_DEGREE] or 16
        return (raw >> 1) * 1000 - 250 + 1000 * (per_degree - data[_REMAIN]) // per_degree
    lost = 3 - (data[_CONFIG] >> 5 & 3)
    return (raw >> lost << lost) * 1000 // 16


def crc8(data: bytes) -> int:
    """Return the checksum of Maxim's 1-wire devices: x^8 + x^5 + x^4 + 1, low bit first."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x8C if crc & 1 else crc >> 1
    return crc


def name_of(rom: bytes) -> str:
    """Return the name that Linux gives the device with the 8 bytes *rom*."""
    return "%02x-%s" % (rom[0], "".join(["%02x" % byte for byte in reversed(list(rom[1:7]))]))


def rom_of(name: str) -> bytes:
    """Return the 8 bytes of the device *name*."""
    family, _, number = name.partition("-")
    rom = [int(family, 16)] + [int(number[at : at + 2], 16) for at in range(10, -1, -2)]
    return bytes(rom + [crc8(bytes(rom))])
