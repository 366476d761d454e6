"""Real buses, through MicroPython's ``machine`` and its own drivers: the ports below core/buses.

1. I2C and SPI are bit-banged (``SoftI2C``, ``SoftSPI``): so any pin will do, and a clock line that
   is held low ends a transfer after ``_STRETCH_US`` with an error, on every port.
2. A port is made at the first use of its bus, and stays.
"""

import machine
from clawlite.core.base.errors import ImageMismatch
from clawlite.core.buses.busboard import BusBoard
from clawlite.core.buses.bustable import (
    BUS_KIND,
    BUS_MODE,
    BUS_MOST,
    BUS_NAME,
    BUS_NUMBER,
    BUS_PINS,
    BUS_SPEED,
    DHT,
    I2C,
    ONE_WIRE,
    PIXELS,
    SPI,
)

_STRETCH_US = 50000
_SPARE_HZ = 8  # the least that PWM does on an RP2040 at 125 MHz


def make_board(bank, section: list) -> BusBoard:
    """Return the pins *bank* with the buses of the image's section BUSES."""
    return BusBoard(bank, section, None, open_port, drive)


def drive(bank, pin: str, hertz: int, duty: int):
    """Drive a PWM pin of *bank*."""
    bank.drive(pin, max(hertz, _SPARE_HZ), duty)


def open_port(row: list):
    """Return the port of the bus *row*.  Raises ``ImageMismatch``: this board cannot."""
    kind, pins = row[BUS_KIND], row[BUS_PINS]
    try:
        if kind == I2C:
            return _I2CPort(pins, row[BUS_SPEED])
        if kind == SPI:
            return _SPIPort(pins, row[BUS_MODE], row[BUS_SPEED])
        if kind == ONE_WIRE:
            from clawlite.core.buses.wirebus import WirePort

            return WirePort(_Wire(pins))
        if kind == PIXELS:
            return _PixelPort(pins, row[BUS_MOST])
        if kind == DHT:
            return _DHTPort(pins)
        return _UARTPort(pins, row[BUS_NUMBER], row[BUS_SPEED])
    except (AttributeError, ImportError, IndexError, TypeError, ValueError) as e:
        raise ImageMismatch(
            "bus %s: this board cannot have it on the pins %s: %s" % (row[BUS_NAME], pins, e),
            "choose other pins in clawlite.toml, and name the board: clawlite build --board B",
        )


class _I2CPort:
    aside = None

    def __init__(self, pins: list, speed_hz: int):
        sda, scl = pins
        self._bus = machine.SoftI2C(
            scl=machine.Pin(scl), sda=machine.Pin(sda), freq=speed_hz, timeout=_STRETCH_US
        )

    def transfer(self, address: int, data: bytes, read: int) -> bytes:
        if data:
            self._bus.writeto(address, data, not read)
        return self._bus.readfrom(address, read) if read else b""

    def values(self, address: int) -> dict:
        return {}


class _SPIPort:
    aside = None

    def __init__(self, pins: list, mode: int, speed_hz: int):
        sck, mosi, miso, select = pins
        self._select = machine.Pin(select, machine.Pin.OUT, value=1)
        self._bus = machine.SoftSPI(
            baudrate=speed_hz,
            polarity=mode >> 1,
            phase=mode & 1,
            sck=machine.Pin(sck),
            mosi=machine.Pin(mosi),
            miso=machine.Pin(miso),
        )

    def transfer(self, data: bytes) -> bytes:
        back = bytearray(len(data))
        self._select.value(0)
        try:
            self._bus.write_readinto(data, back)
        finally:
            self._select.value(1)
        return bytes(back)


class _Wire:
    """The wire below ``WirePort``."""

    def __init__(self, pins: list):
        import onewire

        self._bus = onewire.OneWire(machine.Pin(pins[0]))

    def search(self) -> list:
        return [bytes(rom) for rom in self._bus.scan()]

    def reset(self) -> bool:
        return bool(self._bus.reset())

    def select(self, rom: bytes):
        self._bus.select_rom(rom)

    def command(self, code: int):
        self._bus.writebyte(code)

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        self._bus.readinto(buffer)
        return bytes(buffer)


class _UARTPort:
    aside = None

    def __init__(self, pins: list, number: int, baud: int):
        sends, receives = pins
        self._line = machine.UART(
            number, baudrate=baud, tx=machine.Pin(sends), rx=machine.Pin(receives), rxbuf=512
        )

    def write(self, data: bytes) -> int:
        return self._line.write(data) or 0

    def any(self) -> int:
        return self._line.any()

    def read(self, count: int) -> bytes:
        return self._line.read(count) or b""


class _PixelPort:
    aside = None

    def __init__(self, pins: list, count: int):
        import neopixel

        self._strip = neopixel.NeoPixel(machine.Pin(pins[0]), count)

    def show(self, colours: bytes):
        for pixel in range(len(colours) // 3):
            self._strip[pixel] = tuple(colours[3 * pixel : 3 * pixel + 3])
        self._strip.write()


class _DHTPort:
    aside = None

    def __init__(self, pins: list):
        import dht

        self._sensor = dht.DHT22(machine.Pin(pins[0]))

    def frame(self) -> bytes:
        try:
            self._sensor.measure()
        except Exception as e:
            # its driver says "checksum error" by a plain Exception
            if isinstance(e, OSError):
                raise
            return bytes(5)
        return bytes(self._sensor.buf)
