"""Stands where a board has its module ``machine``: what the documentation of MicroPython says of
Pin, ADC, PWM, RTC, WDT, no more.

The unix port has no pins.  What drives a pin here, and what it reads, are files in the folder
$PINS: ``15`` holds a level or a duty, ``26.adc`` what a converter reads, ``watchdog`` the lines of
a watchdog, ``clock`` what the clock was set to; with 1 in ``15.broken`` that pin takes nothing;
``15.slow`` is for how many reads a level that was written to it does not show.
A number from 90 on is no pin.  ``without`` names parts that this board lacks, such as
``machine.RTC``."""

import os

_FOLDER = os.getenv("PINS")


def _write(name, value):
    with open("%s/%s" % (_FOLDER, name), "w") as file:
        file.write(str(value))
    with open(_FOLDER + "/all", "a") as file:
        file.write("%s=%s\n" % (name, value))


def _read(name):
    try:
        with open("%s/%s" % (_FOLDER, name)) as file:
            return int(file.read())
    except OSError:
        return 0


class Pin:
    IN, OUT, OPEN_DRAIN, PULL_UP, PULL_DOWN = 0, 1, 2, 1, 2

    def __init__(self, id, mode=-1, pull=-1, *, value=None):
        if id >= 90:
            raise ValueError("invalid pin")
        self.id = id
        self._late = 0  # reads that show the level before
        if mode == Pin.OPEN_DRAIN:
            _write("%d.open" % id, 1)
        if mode == Pin.IN:
            _write("%d.pull" % id, pull)
        if value is not None:
            self.value(value)

    def value(self, x=None):
        if x is None:
            self._late -= 1
            return 1 - _read(self.id) if self._late >= 0 else _read(self.id)
        if _read("%d.broken" % self.id):
            raise OSError(5)
        self._late = _read("%d.slow" % self.id) if x else 0
        _write(self.id, 1 if x else 0)


class ADC:
    ATTN_11DB = 3

    def __init__(self, pin):
        if pin.id < 26:
            raise ValueError("Pin doesn't have ADC capabilities")
        self._id = pin.id

    def atten(self, atten):
        _write("%d.atten" % self._id, atten)

    def read_u16(self):
        return _read("%d.adc" % self._id)


class PWM:
    def __init__(self, dest, *, freq, duty_u16):
        self._id = dest.id
        self.freq(freq)
        self.duty_u16(duty_u16)

    def freq(self, value):
        _write("%d.freq" % self._id, value)

    def duty_u16(self, value=None):
        if value is None:
            return _read(self._id)
        _write(self._id, value)


class WDT:
    def __init__(self, id=0, timeout=5000):
        if not 1 <= timeout <= 8388:
            raise ValueError("timeout exceeds 8388")
        _write("watchdog", timeout)

    def feed(self):
        with open(_FOLDER + "/fed", "a") as file:
            file.write(".")


class RTC:
    def datetime(self, when):
        _write("clock", when)


try:
    with open(_FOLDER + "/without") as _file:
        for _part in _file.read().split():
            if _part.startswith("machine."):
                del globals()[_part[8:]]
except OSError:
    pass
