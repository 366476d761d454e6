"""Digital lines by the kernel's own interface: /dev/gpiochip*, version 2 of linux/gpio.h, by ioctl.
No package.

1. A line is this program's while its request is open; the kernel gives it to nobody else, and says
   by name who holds one.
2. An output begins in its safe state, before the request returns.  A test compiles the kernel's
   header and reads what is packed here.
"""

import errno
import fcntl
import os
import struct

from clawlite.core.base.errors import ClawError, ImageMismatch

CHIPINFO = 0x8044B401  # GPIO_GET_CHIPINFO_IOCTL
LINEINFO = 0xC100B405  # GPIO_V2_GET_LINEINFO_IOCTL
GET_LINE = 0xC250B407  # GPIO_V2_GET_LINE_IOCTL
SET_CONFIG = 0xC110B40D  # GPIO_V2_LINE_SET_CONFIG_IOCTL
GET_VALUES = 0xC010B40E  # GPIO_V2_LINE_GET_VALUES_IOCTL
SET_VALUES = 0xC010B40F  # GPIO_V2_LINE_SET_VALUES_IOCTL
# GPIO_V2_LINE_FLAG_*
INPUT, OUTPUT, OPEN_DRAIN, PULL_UP, PULL_DOWN = 1 << 2, 1 << 3, 1 << 6, 1 << 8, 1 << 9
EDGES = 1 << 4 | 1 << 5  # both of them
RISING = 1  # GPIO_V2_LINE_EVENT_RISING_EDGE
OUTPUT_VALUES = 2  # GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES
CHIP = struct.Struct("=32s32sI")  # gpiochip_info: name, label, lines
# gpio_v2_line_info: name, consumer, offset, num_attrs, flags
INFO = struct.Struct("=32s32sIIQ160x16x")
# gpio_v2_line_request: offsets, consumer, config (flags, num_attrs, one attribute: id, value,
# mask), num_lines, event_buffer_size, fd
REQUEST = struct.Struct("=I252x32sQI20xI4xQQ216xII20xi")
# gpio_v2_line_config: flags, num_attrs, attributes
CONFIG = struct.Struct("=QI20x240x")
EVENT = struct.Struct("=QI36x")  # gpio_v2_line_event: timestamp_ns, id
VALUES = struct.Struct("=QQ")  # gpio_v2_line_values: bits, mask
# of the 40-pin header: up to 3 and Zero, 4, 5
LABELS = (b"pinctrl-bcm2835", b"pinctrl-bcm2711", b"pinctrl-rp1")
_CLAWLITE = b"clawlite"


class Kernel:
    """The system calls that are needed; tests pass another object with the same methods.

    root  the folder that its file system begins in
    """

    def __init__(self, root: str = ""):
        self.root = root

    def chips(self) -> list:
        """Return the paths of all chips."""
        folder = self.root + "/dev"
        return sorted(
            folder + "/" + name for name in os.listdir(folder) if name.startswith("gpiochip")
        )

    def open(self, path: str) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def ioctl(self, fd: int, request: int, data: bytearray):
        fcntl.ioctl(fd, request, data, True)

    def close(self, fd: int):
        os.close(fd)


class Chip:
    """The chip behind the header of a Raspberry Pi, open until ``close``.  A line's number is that
    of the GPIO.

    Raises ``ClawError``: there is none, or this user may not open it.
    """

    def __init__(self, kernel: Kernel):
        self._kernel = kernel
        self.fd, self.path, self.lines = -1, "", 0
        closed = ""
        for path in kernel.chips():
            try:
                fd = kernel.open(path)
            except PermissionError:
                closed = path
                continue
            info = bytearray(CHIP.size)
            kernel.ioctl(fd, CHIPINFO, info)
            _, label, lines = CHIP.unpack(info)
            if label.rstrip(b"\0") in LABELS:
                self.fd, self.path, self.lines = fd, path, lines
                return
            kernel.close(fd)
        if closed:
            raise ClawError(
                "%s: this user may not open it" % closed,
                "sudo usermod -aG gpio $USER, then log in again",
            )
        raise ClawError(
            "no chip of /dev/gpiochip* has the pins of the header: expected one "
            "labelled %s" % b", ".join(LABELS).decode(),
            "clawlite doctor tells what is here",
        )

    def line(self, name: str, number: int, flags: int, level: int) -> "Line":
        """Request line *number* for the pin *name*; an output begins at *level*.  Raises
        ``ImageMismatch``: there is no such line, or somebody else holds it.
        """
        if number >= self.lines:
            raise ImageMismatch(
                "pin %s: %s has GPIO 0 to %d, expected %d among them"
                % (name, self.path, self.lines - 1, number),
                "choose another pin in clawlite.toml",
            )
        data = bytearray(
            REQUEST.pack(
                number,
                b"%s %s" % (_CLAWLITE, name.encode()[:22]),
                flags,
                1 if flags & OUTPUT else 0,
                OUTPUT_VALUES if flags & OUTPUT else 0,
                level if flags & OUTPUT else 0,
                1 if flags & OUTPUT else 0,
                1,
                0,
                -1,
            )
        )
        try:
            self._kernel.ioctl(self.fd, GET_LINE, data)
        except OSError as e:
            if e.errno == errno.EBUSY:
                raise ImageMismatch(
                    "pin %s: GPIO %d is held by %s" % (name, number, self.holder(number)),
                    "stop that program (gpioinfo lists it), or choose another pin in clawlite.toml",
                ) from None
            raise ImageMismatch(
                "pin %s: GPIO %d is refused: %s" % (name, number, e.strerror),
                "choose another pin in clawlite.toml",
            ) from None
        return Line(self._kernel, REQUEST.unpack(data)[-1], flags)

    def holder(self, number: int) -> str:
        """Return who holds line *number*, in the kernel's words."""
        info = bytearray(INFO.pack(b"", b"", number, 0, 0))
        self._kernel.ioctl(self.fd, LINEINFO, info)
        said = INFO.unpack(info)[1].rstrip(b"\0").decode("utf-8", "replace")
        return '"%s"' % said if said else "the kernel, for another function"

    def close(self):
        self._kernel.close(self.fd)


class Line:
    """One requested line; *flags* are those of its request."""

    def __init__(self, kernel: Kernel, fd: int, flags: int):
        self._kernel = kernel
        self._fd, self._flags = fd, flags

    def fileno(self) -> int:
        return self._fd

    def note_edges(self):
        """Let the kernel note its edges, which can be read from its descriptor from now on.  Raises
        ``OSError``.
        """
        data = bytearray(CONFIG.pack(self._flags | EDGES, 0))
        self._kernel.ioctl(self._fd, SET_CONFIG, data)

    def read(self) -> int:
        """Return its level, 0 or 1, as the hardware has it, also of an output."""
        data = bytearray(VALUES.pack(0, 1))
        self._kernel.ioctl(self._fd, GET_VALUES, data)
        return VALUES.unpack(data)[0] & 1

    def write(self, value: int):
        self._kernel.ioctl(self._fd, SET_VALUES, bytearray(VALUES.pack(1 if value else 0, 1)))

    def close(self):
        self._kernel.close(self._fd)
