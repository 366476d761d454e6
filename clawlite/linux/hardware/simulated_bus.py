"""Simulated buses, for machines that have none. They have the methods of bus_io.py, and their
devices hold the values that clawlite.toml gives.
"""

import errno
import os

_PLACE, _REGISTERS = range(2)  # positions in a chip


def device(bus, simulated: bytes):
    """Return the simulated port of *bus* (``buses.Bus``)."""
    return (I2C, SPI, OneWire)[bus.kind](bus, simulated)


class I2C:
    """Each declared address is a chip of 256 registers: the first byte that is written is the
    place where what follows is written or read.
    """

    def __init__(self, bus, simulated: bytes):
        self._chips = {
            address: [0, bytearray(simulated.ljust(256, b"\0"))] for address in bus.addresses
        }

    def transfer(self, address: int, data: bytes, read: int) -> bytes:
        chip = self._chips.get(address)
        if chip is None:
            raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))
        if data:
            chip[_PLACE] = data[0]
            for byte in data[1:]:
                chip[_REGISTERS][chip[_PLACE]] = byte
                chip[_PLACE] = (chip[_PLACE] + 1) % 256
        found = bytes([chip[_REGISTERS][(chip[_PLACE] + at) % 256] for at in range(read)])
        chip[_PLACE] = (chip[_PLACE] + read) % 256
        return found


class SPI:
    """A device that answers with the same bytes each time, then with zeros."""

    def __init__(self, bus, simulated: bytes):
        self._answer = simulated

    def transfer(self, data: bytes) -> bytes:
        return self._answer[: len(data)].ljust(len(data), b"\0")


class OneWire:
    """Thermometers that all measure the same."""

    def __init__(self, bus, simulated: bytes):
        self._devices, self._value = bus.devices, int(simulated)

    def present(self) -> list:
        return list(self._devices)

    def millidegrees(self, name: str) -> int:
        return self._value
