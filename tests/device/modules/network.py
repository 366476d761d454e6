"""Stands where a board has its module ``network``: what the documentation of MicroPython says of
WLAN as a station, no more.

What the radio finds is the file ``air`` in $PINS, a network a line: SSID, password and address,
parted by tabs.  What it was told is in ``radio``.  Loopback is the network that is joined.  While
there is a file ``dead``, the radio cannot be switched on.  ``without`` names parts that this board
lacks, such as ``network.country``."""

import os

STA_IF = 0
STAT_IDLE, STAT_CONNECTING, STAT_WRONG_PASSWORD, STAT_NO_AP_FOUND, STAT_GOT_IP = 0, 1, -3, -2, 3
_FOLDER = os.getenv("PINS")


def _told(*what):
    with open(_FOLDER + "/radio", "a") as file:
        file.write(" ".join([str(one) for one in what]) + "\n")


def country(code):
    _told("country", code)


class WLAN:
    def __init__(self, interface):
        self._ssid = self._key = None
        self._is_active = False

    def active(self, is_active):
        _told("active", is_active)
        if "dead" in os.listdir(_FOLDER):
            raise OSError("Wifi Internal Error")
        self._is_active = is_active

    def _check(self):
        if not self._is_active:
            raise OSError("STA is not active")

    def connect(self, ssid, key=None):
        self._check()
        _told("connect", ssid, key)
        self._ssid, self._key = ssid, key

    def disconnect(self):
        self._check()
        _told("disconnect")
        self._ssid = None

    def _found(self):
        try:
            with open(_FOLDER + "/air") as file:
                for line in file.read().split("\n"):
                    words = line.split("\t")
                    if words[0] == self._ssid:
                        return words
        except OSError:
            pass

    def status(self):
        words = self._found()
        if words is None:
            return STAT_CONNECTING
        return STAT_GOT_IP if words[1] == (self._key or "") else STAT_WRONG_PASSWORD

    def isconnected(self):
        return self.status() == STAT_GOT_IP

    def ifconfig(self):
        return (self._found()[2], "255.0.0.0", "127.0.0.1", "127.0.0.1")


try:
    with open(_FOLDER + "/without") as _file:
        for _part in _file.read().split():
            if _part.startswith("network."):
                del globals()[_part[8:]]
except OSError:
    pass
