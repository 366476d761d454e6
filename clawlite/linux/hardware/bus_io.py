"""Buses by the kernel's own interfaces: i2c-dev and spidev by ioctl, 1-wire by sysfs.  Their Python
packages have no 32-bit wheels.

Layouts are those of linux/i2c.h, linux/i2c-dev.h and linux/spi/spidev.h; a test compiles these and
compares."""

import fcntl
import os
import struct

from clawlite.core.base.errors import ClawError, SandboxDenied

I2C_RDWR = 0x0707
I2C_M_RD = 1
I2C_MSG = struct.Struct("@HHHP")  # addr, flags, len, buf
I2C_RDWR_DATA = struct.Struct("@PI0P")  # msgs, nmsgs
SPI_MODE = 0x40016B01  # SPI_IOC_WR_MODE
SPI_MESSAGE = 0x40206B00  # SPI_IOC_MESSAGE(1)
# tx, rx, len, speed, delay, bits, cs_change, tx_nbits, rx_nbits, word_delay, pad
SPI_TRANSFER = struct.Struct("=QQIIHBBBBBB")
W1 = "/sys/bus/w1/devices"


def device(bus):
    """Return the port of *bus* (``buses.Bus``), which opens its device at the first transfer."""
    return (I2C, SPI, OneWire)[bus.kind](bus)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError) as e:
        raise SandboxDenied(
            "%s: %s" % (path, e.strerror),
            "switch the bus on (raspi-config, "
            "Interface Options), or add simulate "
            "to it for this machine"
            if isinstance(e, FileNotFoundError)
            else "add this user to the group of %s" % path,
            {"reason": "no bus", "missing": [path]},
        ) from None


class I2C:
    """An I2C bus."""

    def __init__(self, bus):
        self._path = "/dev/i2c-%d" % bus.number

    def transfer(self, address: int, data: bytes, read: int) -> bytes:
        """Write *data*, then read *read* bytes, in one transaction.  Raises ``OSError``: nobody
        answers, or the bus is stuck.
        """
        import ctypes

        fd = _opened(self._path)
        try:
            parts = [(0, ctypes.create_string_buffer(data, len(data)))] if data else []
            if read:
                parts.append((I2C_M_RD, ctypes.create_string_buffer(read)))
            messages = b"".join(
                [
                    I2C_MSG.pack(address, flags, len(part), ctypes.addressof(part))
                    for flags, part in parts
                ]
            )
            held = ctypes.create_string_buffer(messages, len(messages))
            fcntl.ioctl(fd, I2C_RDWR, I2C_RDWR_DATA.pack(ctypes.addressof(held), len(parts)))
            return parts[-1][1].raw if read else b""
        finally:
            os.close(fd)


class SPI:
    """One device on an SPI bus."""

    def __init__(self, bus):
        self._path, self._mode, self._speed_hz = (
            "/dev/spidev%d.%d" % (bus.number, bus.device),
            bus.mode,
            bus.speed_hz,
        )

    def transfer(self, data: bytes) -> bytes:
        """Exchange *data* for as many bytes."""
        import ctypes

        fd = _opened(self._path)
        try:
            fcntl.ioctl(fd, SPI_MODE, struct.pack("=B", self._mode))
            out, back = (
                ctypes.create_string_buffer(data, len(data)),
                ctypes.create_string_buffer(len(data)),
            )
            fcntl.ioctl(
                fd,
                SPI_MESSAGE,
                SPI_TRANSFER.pack(
                    ctypes.addressof(out),
                    ctypes.addressof(back),
                    len(data),
                    self._speed_hz,
                    0,
                    8,
                    0,
                    0,
                    0,
                    0,
                    0,
                ),
            )
            return back.raw
        finally:
            os.close(fd)


class OneWire:
    """The 1-wire bus; *place*: where its devices are."""

    def __init__(self, bus, place: str = W1):
        self._devices, self._place = bus.devices, place

    def present(self) -> list:
        """Return the declared devices that are there."""
        if not os.path.isdir(self._place):
            raise SandboxDenied(
                "%s: no 1-wire bus" % self._place,
                "add dtoverlay=w1-gpio to config.txt",
                {"reason": "no bus", "missing": [self._place]},
            )
        return [name for name in self._devices if os.path.exists(os.path.join(self._place, name))]

    def millidegrees(self, name: str) -> int:
        """Return what the thermometer *name* measures, in thousandths of a degree Celsius; it
        takes some 750 ms.
        """
        with open(os.path.join(self._place, name, "w1_slave"), "rb") as file:
            lines = file.read(512).decode("ascii", "replace").split("\n")
        at = lines[1].rfind("t=") if len(lines) > 1 else -1
        if at < 0 or not lines[0].endswith("YES"):
            raise ClawError(
                "%s: what it sent was damaged" % name,
                "try again; a bus with such errors wants a shorter wire or a smaller resistor",
            )
        return int(lines[1][at + 2 :])
