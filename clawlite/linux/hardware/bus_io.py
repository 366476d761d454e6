"""Buses by the kernel's own interfaces: i2c-dev and spidev by ioctl, tty by termios, 1-wire, IIO
and hwmon by sysfs.  Their Python packages have no 32-bit wheels.  The classes are ports of
core/buses: where a chip has a driver in the kernel, that is found by the chip's address or name.

Layouts are those of linux/i2c.h, linux/i2c-dev.h and linux/spi/spidev.h; a test compiles these and
compares."""

import _thread
import errno
import fcntl
import os
import struct

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.buses.bustable import (
    BUS_DEVICE,
    BUS_DEVICES,
    BUS_KIND,
    BUS_MODE,
    BUS_NUMBER,
    BUS_SPEED,
)
from clawlite.linux.files.files import list_folder

I2C_RDWR = 0x0707
I2C_TIMEOUT = 0x0702
I2C_M_RD = 1
I2C_MSG = struct.Struct("@HHHP")  # addr, flags, len, buf
I2C_RDWR_DATA = struct.Struct("@PI0P")  # msgs, nmsgs
SPI_MODE = 0x40016B01  # SPI_IOC_WR_MODE
SPI_MESSAGE = 0x40206B00  # SPI_IOC_MESSAGE(1)
# tx, rx, len, speed, delay, bits, cs_change, tx_nbits, rx_nbits, word_delay, pad
SPI_TRANSFER = struct.Struct("=QQIIHBBBBBB")
W1 = "/sys/bus/w1/devices"
I2C_DEVICES = "/sys/bus/i2c/devices"
IIO = "/sys/bus/iio/devices"
_TIMEOUT_10MS = 25  # of an I2C transfer: a bus whose clock is held low ends then
_POLL_MS = 2


def open_port(row: list):
    """Return the port of the bus *row* (core/buses/bustable.py), which opens its device at the
    first transfer.
    """
    return (I2C, SPI, OneWire, UART, Pixels, DHT)[row[BUS_KIND]](row)


class Port:
    """What all ports have: one transfer at a time, beside the loop where it may block."""

    def __init__(self):
        self._lock = _thread.allocate_lock()

    def aside(self, function, outcome: list):
        """A generator that runs *function* in a thread, yields until it ends, and puts its result
        into *outcome*.  Raises what *function* raises.
        """
        ended: list = []

        def work():
            with self._lock:
                try:
                    ended.append((True, function()))
                except Exception as e:
                    ended.append((False, e))

        _thread.start_new_thread(work, ())
        while not ended:
            yield _POLL_MS
        is_done, value = ended[0]
        if not is_done:
            raise value
        outcome.append(value)


def _open_bus(path: str) -> int:
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


class I2C(Port):
    """An I2C bus."""

    def __init__(self, row: list):
        super().__init__()
        self._number = row[BUS_NUMBER]
        self._path = "/dev/i2c-%d" % self._number

    def transfer(self, address: int, data: bytes, read: int) -> bytes:
        """Write *data*, then read *read* bytes, in one transaction.  Raises ``OSError``: nobody
        answers, or the bus is stuck.
        """
        import ctypes

        fd = _open_bus(self._path)
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
            self._limit(fd)
            fcntl.ioctl(fd, I2C_RDWR, I2C_RDWR_DATA.pack(ctypes.addressof(held), len(parts)))
            return parts[-1][1].raw if read else b""
        finally:
            os.close(fd)

    def _limit(self, fd: int):
        """Let the bus give up early; an adapter that has no such limit keeps its own."""
        try:
            fcntl.ioctl(fd, I2C_TIMEOUT, _TIMEOUT_10MS)
        except OSError:
            pass

    def values(self, address: int) -> dict:
        """Return what a driver of the kernel measures with the chip there, {"temp": 21500, ...}, in
        thousandths; {} when none has it.
        """
        folder = "%s/%d-%04x" % (I2C_DEVICES, self._number, address)
        found: dict = {}
        for name in list_folder(folder):
            if name.startswith("iio:device"):
                found.update(read_inputs("%s/%s" % (folder, name)))
        for name in list_folder(folder + "/hwmon"):
            found.update(read_inputs("%s/hwmon/%s" % (folder, name)))
        return found


class SPI(Port):
    """One device on an SPI bus."""

    def __init__(self, row: list):
        super().__init__()
        self._path = "/dev/spidev%d.%d" % (row[BUS_NUMBER], row[BUS_DEVICE])
        self._mode, self._speed_hz = row[BUS_MODE], row[BUS_SPEED]

    def transfer(self, data: bytes) -> bytes:
        """Exchange *data* for as many bytes."""
        import ctypes

        fd = _open_bus(self._path)
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


class OneWire(Port):
    """The 1-wire bus; the kernel lists its devices in the folder W1."""

    def __init__(self, row: list):
        super().__init__()
        self._devices, self._place = row[BUS_DEVICES], W1

    def start(self) -> int:
        """The kernel begins a conversion when its file is read."""
        return 0

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


class UART(Port):
    """A serial line: /dev/serial0, or another that clawlite.toml names."""

    def __init__(self, row: list):
        super().__init__()
        names = row[BUS_DEVICES]
        self._path = "/dev/" + (names[0] if names else "serial%d" % row[BUS_NUMBER])
        self._baud, self._fd = row[BUS_SPEED], -1

    def _open(self) -> int:
        import termios
        import tty

        if self._fd < 0:
            fd = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                tty.setraw(fd)
                settings = termios.tcgetattr(fd)
                speed = getattr(termios, "B%d" % self._baud, None)
                if speed is None:
                    raise ClawError(
                        "%s: no line has %d baud" % (self._path, self._baud),
                        "choose a usual speed_hz, such as 9600 or 115200",
                    )
                settings[4] = settings[5] = speed
                termios.tcsetattr(fd, termios.TCSANOW, settings)
            except BaseException:
                os.close(fd)
                raise
            self._fd = fd
        return self._fd

    def write(self, data: bytes) -> int:
        """Send what the line takes now; return how many bytes that were."""
        try:
            return os.write(self._open(), data)
        except BlockingIOError:
            return 0

    def any(self) -> int:
        """Return how many bytes wait."""
        import termios

        return struct.unpack("i", fcntl.ioctl(self._open(), termios.FIONREAD, bytes(4)))[0]

    def read(self, count: int) -> bytes:
        """Return what has arrived, at most *count* bytes."""
        try:
            return os.read(self._open(), count)
        except BlockingIOError:
            return b""


class Pixels(SPI):
    """WS2812 pixels at the data line of an SPI bus (GPIO 10): three bits of the bus for each bit,
    as long as the pixels expect: 110 is a one, 100 a zero.
    """

    _SPEED_HZ = 2400000
    _REST = bytes(90)  # 300 us of silence: now they show it

    def __init__(self, row: list):
        super().__init__(row)
        self._mode, self._speed_hz = 0, self._SPEED_HZ

    def show(self, colours: bytes):
        """Show *colours*: red, green and blue of each pixel."""
        bits = 0
        for at in range(0, len(colours), 3):
            red, green, blue = colours[at : at + 3]
            for byte in (green, red, blue):  # as the pixels expect them
                for place in range(7, -1, -1):
                    bits = bits << 3 | (6 if byte >> place & 1 else 4)
        data = bits.to_bytes(3 * len(colours), "big") + self._REST
        if len(data) > 4096:
            raise ClawError("a strip of %d pixels" % (len(colours) // 3), "declare fewer pixels")
        self.transfer(data)


class DHT(Port):
    """A DHT22, which the kernel's driver reads (dtoverlay=dht11); found by its name among the IIO
    devices."""

    def __init__(self, row: list):
        super().__init__()
        self._name = row[BUS_DEVICES][0] if row[BUS_DEVICES] else "dht11"

    def frame(self) -> tuple:
        """Return (thousandths of a degree, thousandths of a percent)."""
        found = [
            "%s/%s" % (IIO, one)
            for one in list_folder(IIO)
            if _text("%s/%s/name" % (IIO, one)).split("@")[0] == self._name
        ]
        if len(found) != 1:
            raise SandboxDenied(
                "%s: expected one device with the name %s, found %d"
                % (IIO, self._name, len(found)),
                "add dtoverlay=dht11,gpiopin=N to config.txt, with the number of its pin",
                {"reason": "no bus", "missing": [IIO]},
            )
        values = read_inputs(found[0])
        if "temp" not in values or "humidityrelative" not in values:
            raise OSError(errno.EIO, "the sensor did not answer", found[0])
        return values["temp"], values["humidityrelative"]


def read_inputs(folder: str) -> dict:
    """Return {quantity: thousandths} of an IIO or hwmon device: in_temp_input and temp1_input are
    "temp"; a value that cannot be read is left out.
    """
    found: dict = {}
    for name in list_folder(folder):
        if not name.endswith("_input"):
            continue
        quantity = name[: -len("_input")].removeprefix("in_").rstrip("0123456789")
        try:
            text = _text("%s/%s" % (folder, name))
            # IIO has pressure in kilopascals with a fraction, the others in thousandths
            found[quantity] = int(float(text) * 1000) if "." in text else int(text)
        except (OSError, ValueError):
            continue
    return found


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(64).strip().decode("ascii", "replace")
    except OSError:
        return ""
