"""PWM and ADC by the kernel's files: /sys/class/pwm and /sys/bus/iio/devices.

A Pi has PWM on GPIO 12, 13, 18 and 19, where an overlay says so (dtoverlay=pwm-2chan), and no ADC
of its own: chips such as an MCP3008 are IIO devices by an overlay (dtoverlay=mcp3008), and the
number of such a pin is the channel."""

import errno
import fcntl
import os
import time

from clawlite.core.base.errors import ClawError, ImageMismatch
from clawlite.core.image.pins import FULL
from clawlite.linux.files.files import list_folder

_CHANNELS = {12: 0, 13: 1, 18: 0, 19: 1}
_CHANNELS_RP1 = {12: 0, 13: 1, 18: 2, 19: 3}
# how the controller's address ends: on BCM283x and BCM2711, on RP1
_CONTROLLERS = ("20c000.pwm", "1f00098000.pwm")
# Bits of converters whose driver does not say: the most that a raw value is.
_MOST = {
    "mcp3001": 1023,
    "mcp3002": 1023,
    "mcp3004": 1023,
    "mcp3008": 1023,
    "mcp3201": 4095,
    "mcp3202": 4095,
    "mcp3204": 4095,
    "mcp3208": 4095,
    "ads1015": 2047,
    "ads1115": 32767,
}
_WAIT_S, _TRIES = 0.02, 100  # udev sets the group of an exported channel a moment after it appears


class PWM:
    """One PWM output of *hertz*, which begins at *duty*. A lock on a file of its channel keeps
    other agents away; programs that do not ask for the lock are not kept away.

    Raises ``ImageMismatch``: this GPIO has no PWM, or no controller is on; ``ClawError``: this user
    may not use it, or somebody else does."""

    def __init__(self, name: str, number: int, hertz: int, duty: int, root: str = ""):
        chip, rp1 = _controller(root + "/sys/class/pwm")
        channel = (_CHANNELS_RP1 if rp1 else _CHANNELS).get(number)
        if channel is None:
            raise ImageMismatch(
                "pin %s: GPIO %d has no PWM, expected 12, 13, 18 or 19" % (name, number),
                "choose another pin in clawlite.toml",
            )
        if chip is None:
            raise ImageMismatch(
                "pin %s: no PWM controller is on" % name,
                "add dtoverlay=pwm-2chan to /boot/firmware/config.txt and start again",
            )
        self._folder = "%s/pwm%d" % (chip, channel)
        self._value, self._period_ns = duty, 1000000000 // hertz
        try:
            _put(chip + "/export", channel)
        except PermissionError:
            raise ClawError(
                "pin %s: %s: this user may not use it" % (name, chip),
                "sudo usermod -aG gpio $USER, then log in again",
            ) from None
        except OSError as e:
            # A killed run leaves its channel exported. Without a folder the kernel itself uses it.
            if e.errno != errno.EBUSY or not os.path.isdir(self._folder):
                raise ImageMismatch(
                    "pin %s: channel %d of %s is refused: %s" % (name, channel, chip, e.strerror),
                    "choose another pin in clawlite.toml",
                ) from None
        self._lock = os.open(self._folder + "/period", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._patiently("duty_cycle", 0)
            self._patiently("period", self._period_ns)
            self._patiently("duty_cycle", duty * self._period_ns // FULL)
            self._patiently("enable", 1)
        except BlockingIOError:
            self.close()
            raise ImageMismatch(
                "pin %s: channel %d of %s is in use by another agent or pin"
                % (name, channel, chip),
                "end that, or choose another pin (12 and 18 share a channel up to "
                "Pi 4, 13 and 19 too)",
            ) from None
        except OSError:
            self.close()
            raise

    def _patiently(self, file: str, value: int):
        for left in range(_TRIES - 1, -1, -1):
            try:
                return _put("%s/%s" % (self._folder, file), value)
            except PermissionError:
                if not left:
                    raise
                time.sleep(_WAIT_S)
            except OSError as e:  # the duty cycle is still 0 and fits any period
                if file == "duty_cycle" and e.errno == errno.EINVAL:
                    return None
                raise

    def read(self) -> int:
        return self._value

    def write(self, value: int):
        """Set its duty, 0..65535 of full."""
        _put(self._folder + "/duty_cycle", value * self._period_ns // FULL)
        self._value = value

    def drive(self, hertz: int, duty: int):
        """Set its frequency and its duty, 0..65535 of full; the duty never exceeds the period."""
        period_ns = 1000000000 // hertz
        _put(self._folder + "/duty_cycle", 0)
        _put(self._folder + "/period", period_ns)
        _put(self._folder + "/duty_cycle", duty * period_ns // FULL)
        self._period_ns, self._value = period_ns, duty

    def close(self):
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


class ADC:
    """One channel of a converter.  Raises ``ImageMismatch``: there is none, several have it, or
    its full scale is not known.
    """

    def __init__(self, name: str, number: int, root: str = ""):
        folder = root + "/sys/bus/iio/devices"
        file = "in_voltage%d_raw" % number
        chips = list_folder(folder)
        found = [one for one in chips if os.path.exists("%s/%s/%s" % (folder, one, file))]
        if len(found) != 1:
            said = (
                "converters have a channel %d: %s, expected one" % (number, ", ".join(found))
                if found
                else "no converter has a channel %d" % number
            )
            raise ImageMismatch(
                "pin %s: %s" % (name, said),
                "a Pi has no ADC of its own: add its "
                "overlay, such as "
                "dtoverlay=mcp3008,spi0-0-present, "
                "to config.txt",
            )
        folder += "/" + found[0]
        self._file = "%s/%s" % (folder, file)
        self._most = _most(folder, number)
        if self._most is None:
            raise ImageMismatch(
                'pin %s: the full scale of the converter "%s" is not known'
                % (name, _read(folder + "/name")),
                "use one of %s" % ", ".join(sorted(_MOST)),
            )

    def read(self) -> int:
        """Return 0..65535 of full scale."""
        value = int(_read(self._file))
        return 0 if value < 0 else min(value * FULL // self._most, FULL)

    def close(self):
        """Nothing is held."""


def _controller(folder: str) -> tuple:
    """Return (path of the header's PWM controller or None, whether it is the RP1's)."""
    for name in list_folder(folder):
        device = os.path.basename(os.path.realpath("%s/%s/device" % (folder, name)))
        if device.endswith(_CONTROLLERS):
            return "%s/%s" % (folder, name), device == _CONTROLLERS[1]
    return None, False


def _most(folder: str, number: int):
    """Return the largest raw value of a channel, or None: "le:s12/16>>4" of scan_elements has
    its bits, else the converter's name.
    """
    try:
        said = _read("%s/scan_elements/in_voltage%d_type" % (folder, number))
        sign, bits = (
            said.partition(":")[2][:1].lower(),
            int(said.partition(":")[2][1:].partition("/")[0]),
        )
        return (1 << (bits - 1 if sign == "s" else bits)) - 1
    except (OSError, ValueError):
        return _MOST.get(_read(folder + "/name"))


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(64).strip().decode("ascii", "replace")


def _put(path: str, value: int):
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % value)
    finally:
        os.close(fd)
