"""``board.spi("display")``, ``board.uart("meter")`` and ``board.dht("shed")``.

display.transfer(b"...")        exchanges bytes for as many; also write, read, readinto and
                                write_readinto, as MicroPython's machine.SPI has them
meter.write(b"..."), meter.read(count), meter.any(), meter.readline()
                                never waits: read returns what has arrived
values = shed.measure()         (thousandths of a degree, thousandths of a percent)
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.buses.busfaults import failure, refuse_count
from clawlite.core.buses.bustable import BUS_NAME, DHT, SPI, UART

_MOST_SPI = 4096
_MOST_LINE = 512


class SPIBus:
    kind = SPI

    def __init__(self, row: list, port):
        self._row, self.port = row, port

    def transfer(self, data) -> bytes:
        """Exchange *data* for as many bytes."""
        refuse_count(self._row, len(data), _MOST_SPI)
        try:
            return self.port.transfer(bytes(data))
        except OSError as e:
            raise failure(self._row, e)

    def write(self, data):
        self.transfer(data)

    def read(self, count: int, filler: int = 0) -> bytes:
        return self.transfer(bytes([filler]) * count)

    def readinto(self, buffer, filler: int = 0):
        buffer[:] = self.read(len(buffer), filler)

    def write_readinto(self, data, buffer):
        buffer[:] = self.transfer(data)


class UARTBus:
    kind = UART

    def __init__(self, row: list, port):
        self._row, self.port = row, port
        self._line = b""

    def write(self, data) -> int:
        """Send *data*; return how many bytes were taken."""
        refuse_count(self._row, len(data))
        try:
            return self.port.write(bytes(data))
        except OSError as e:
            raise failure(self._row, e)

    def any(self) -> int:
        """Return how many bytes have arrived."""
        try:
            return len(self._line) + self.port.any()
        except OSError as e:
            raise failure(self._row, e)

    def read(self, count: int) -> bytes:
        """Return at most *count* bytes of those that have arrived."""
        refuse_count(self._row, count)
        try:
            found = self._line[:count]
            self._line = self._line[count:]
            left = count - len(found)
            return found + (self.port.read(left) or b"") if left else found
        except OSError as e:
            raise failure(self._row, e)

    def readline(self):
        """Return a line without its end, or None while none is complete; one of more than 512
        bytes comes in parts.
        """
        try:
            self._line += self.port.read(_MOST_LINE) or b""
        except OSError as e:
            raise failure(self._row, e)
        at = self._line.find(b"\n")
        if at < 0 and len(self._line) < _MOST_LINE:
            return None
        end = at + 1 if at >= 0 else _MOST_LINE
        line = self._line[:end]
        self._line = self._line[end:]
        return line.rstrip(b"\r\n") if at >= 0 else line


class DHTBus:
    """A DHT22.  A port has ``frame()``: its 5 bytes, or (mC, m%) where a kernel's driver reads the
    sensor.
    """

    kind = DHT

    def __init__(self, row: list, port):
        self._row, self.port = row, port

    def measure(self) -> tuple:
        """Return (temperature in thousandths of a degree, humidity in thousandths of a percent).
        The sensor measures every 2 s."""
        row = self._row
        try:
            data = self.port.frame()
            if isinstance(data, tuple):
                return data
        except OSError as e:
            raise failure(row, e)
        if sum(data[:-1]) & 255 != data[-1] or data == bytes(5):
            raise ClawError(
                "bus %s: what the sensor sent was damaged" % row[BUS_NAME],
                "try again after 2 s; a bus with such errors wants a shorter wire",
            )
        high, low, sign, degrees, _ = data
        degrees |= (sign & 0x7F) << 8
        return (-degrees if sign & 0x80 else degrees) * 100, (high << 8 | low) * 100
