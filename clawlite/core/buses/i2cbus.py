"""``board.i2c("room")``: an I2C bus, with the method names of MicroPython's ``machine.I2C``, so
that drivers that are written for it work.

    room.readfrom_mem(0x76, 0xD0, 1)    bytes of a register
    room.writeto_mem(0x76, 0xF4, data)
    room.readfrom(0x76, count), room.writeto(0x76, data)
    room.scan()                         the declared addresses that answer
    room.kernel_values(0x76)            on a Raspberry Pi: what the kernel's driver of that chip
                                        measures, {"temp": 21500, ...} in thousandths; {} without

An address must be in ``addresses``, the register in ``registers`` where the bus has any, and one
that is written in ``writable`` where the bus has any.

A *port* has ``transfer(address, data, read) -> bytes``, which writes, then reads, in one
transaction, and raises ``OSError``; ``values(address)``, what ``kernel_values`` returns; and
``aside`` (wirebus.py).
"""

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.buses.busfaults import failure, refuse_count
from clawlite.core.buses.bustable import BUS_ADDRESSES, BUS_NAME, BUS_REGISTERS, BUS_WRITABLE, I2C


class I2CBus:
    kind = I2C

    def __init__(self, row: list, port):
        self._row, self.port = row, port

    def readfrom_mem(self, address: int, register: int, count: int) -> bytes:
        """Return *count* bytes from *register* on."""
        return self.exchange(address, bytes([register]), count)

    def writeto_mem(self, address: int, register: int, data):
        """Write *data* to *register*."""
        self.exchange(address, bytes([register]) + bytes(data), 0)

    def readfrom(self, address: int, count: int) -> bytes:
        """Return *count* bytes."""
        return self.exchange(address, b"", count)

    def writeto(self, address: int, data) -> int:
        """Write *data*; return its length."""
        self.exchange(address, bytes(data), 0)
        return len(data)

    def readfrom_into(self, address: int, buffer):
        buffer[:] = self.readfrom(address, len(buffer))

    def readfrom_mem_into(self, address: int, register: int, buffer):
        buffer[:] = self.readfrom_mem(address, register, len(buffer))

    def scan(self) -> list:
        """Return the declared addresses where somebody answers."""
        found = []
        for address in self._row[BUS_ADDRESSES]:
            try:
                self.port.transfer(address, b"", 1)
                found.append(address)
            except OSError:
                pass
        return found

    def kernel_values(self, address: int) -> dict:
        """Return what a kernel's driver of the chip measures, in thousandths; {} without one."""
        self._check(address, b"", 1)
        return self.port.values(address)

    def exchange(self, address: int, data: bytes, read: int) -> bytes:
        """Write *data*, then read *read* bytes, in one transaction.  Raises ``SandboxDenied``,
        ``ClawError``.
        """
        self._check(address, data, read)
        try:
            return self.port.transfer(address, data, read)
        except OSError as e:
            raise failure(self._row, e, "0x%02x" % address)

    def _check(self, address: int, data: bytes, read: int):
        row = self._row
        if address not in row[BUS_ADDRESSES]:
            raise SandboxDenied(
                "bus %s: address 0x%02x is not declared; declared: %s"
                % (row[BUS_NAME], address, ", ".join(["0x%02x" % a for a in row[BUS_ADDRESSES]])),
                "add it to addresses of this bus in clawlite.toml",
                {"bus": row[BUS_NAME], "address": address},
            )
        refuse_count(row, len(data) + read)
        if data:
            self._check_registers("registers", row[BUS_REGISTERS], data[0], max(read, 1))
        if len(data) > 1:
            self._check_registers("writable", row[BUS_WRITABLE], data[0], len(data) - 1)

    def _check_registers(self, field: str, spans, register: int, count: int):
        """Raise ``SandboxDenied`` unless all registers from *register* on are in one of *spans*."""
        if spans is None:
            return
        for first, last in spans:
            if first <= register and register + count - 1 <= last:
                return
        raise SandboxDenied(
            "bus %s: register 0x%02x%s is not in %s: %s"
            % (
                self._row[BUS_NAME],
                register,
                " to 0x%02x" % (register + count - 1) if count > 1 else "",
                field,
                ", ".join(
                    [
                        "0x%02x" % one[0] if one[0] == one[-1] else "0x%02x-0x%02x" % tuple(one)
                        for one in spans
                    ]
                )
                or "none",
            ),
            "add it to %s of this bus in clawlite.toml" % field,
            {"bus": self._row[BUS_NAME], "register": register},
        )
