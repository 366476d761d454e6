"""Wi-Fi of a board: it joins a network in the background, and asks NTP for the time while the clock
is not set.

1. /wifi.json lists the networks (clawlite/host/board_console/provision.py).  They are tried in that
   order, TRY_MS each.  After the last one comes a pause, which doubles up to 5 minutes.  A network
   that is lost is joined again.  The agent goes on serving meanwhile.
2. Switching the radio on blocks (some 2 s on rp2, which loads its firmware), so it is tried before
   the watchdog is armed.  When it fails, it is tried again like a network.
3. An NTP answer counts only when it repeats the random number of the request (RFC 5905, 7.3).
This module is loaded on boards with a radio (``network.WLAN``) and that file.  A password is given
to the radio and to nothing else."""

import select
import socket
import struct

import network
from clawlite.core.base.errors import ClawError
from jsontext import loads
from network import STA_IF, WLAN
from random_bytes import random_bytes

TRY_MS = 20000
_POLL_MS = 500
_WATCH_MS = 5000
_PAUSE_MS, _MAX_PAUSE_MS = 2000, 300000
_MAX_FILE = 2048  # bytes
_HOST, _PORT = range(2)  # positions in the address of a server
_ADDRESS, _DNS = 0, 3  # positions in what ``ifconfig`` returns
_SSID = 0  # position in a network
_NTP, _NTP_MS = ("pool.ntp.org", 123), 30000
_MODE, _STRATUM = range(2)  # positions in an answer (RFC 5905, 7.3)
_SINCE_1900, _ERA = 2208988800, 1 << 32
_SINCE_2024 = 3913056000  # since 1900: a smaller number belongs to the era that begins in 2036


class Wifi:
    """One radio, as a station.

    path    of wifi.json
    device  ``device.Device``, whose clock is set
    """

    def __init__(self, path: str, device):
        self._device, self._networks = device, []
        self._wlan = self._socket = self._nonce = self._country = None
        self._at = self._begun = self._due = 0
        self._names = self._dns = None
        self._pause, self._asked = _PAUSE_MS, -_NTP_MS
        self.state = "off"
        try:
            with open(path, "rb") as file:
                found = loads(file.read(_MAX_FILE))
            networks = [(str(one["ssid"]), str(one["password"])) for one in found["networks"]]
            self._server = _place(found.get("ntp") or _NTP)
            self._dns = _place(found["dns"]) if "dns" in found else None
            country = found.get("country")
            if country is not None and not (isinstance(country, str) and len(country) == 2):
                raise ValueError("country: expected two letters")
            self._country, self._networks = country, networks
        except (OSError, ClawError, KeyError, TypeError, AttributeError, ValueError) as e:
            self.state = (
                "wifi.json cannot be used (%s: %s): mend it, or set the networks anew: clawlite "
                "wifi SSID --port PORT" % (type(e).__name__, e)
            )

    def about(self) -> str:
        """Return the line of /status about Wi-Fi."""
        return "Wi-Fi: " + self.state

    def name_server(self):
        """Return (address, port) of the network's name server, or None while there is no radio."""
        return self._dns or (self._wlan.ifconfig()[_DNS], 53) if self._wlan else None

    def deadline(self):
        """Return the time in ms at which ``tick`` has something to do, or None."""
        return self._due if self._networks else None

    def tick(self, now_ms: int):
        """Do what is due."""
        if not self._networks or now_ms < self._due:
            return
        self._due = now_ms + _POLL_MS
        try:
            self._step(now_ms)
        # raised by the radio: on esp32, for example, for a password that is too short
        except (OSError, ValueError) as e:
            self.state = "the radio says: %s" % e
            self._next(now_ms)

    def _step(self, now_ms: int):
        if self._wlan is None:
            if self._country and hasattr(network, "country"):
                network.country(self._country)
            if self._device.watchdog:
                self._device.watchdog.feed()
            wlan = WLAN(STA_IF)
            wlan.active(True)
            self._wlan = wlan
            self._join(now_ms)
        elif self._begun is None:  # after a pause
            self._join(now_ms)
        elif self._wlan.isconnected():
            self.state = "%s, address %s" % (
                self._networks[self._at][_SSID],
                self._wlan.ifconfig()[_ADDRESS],
            )
            self._begun = now_ms  # when this network is lost, it has TRY_MS from now to come back
            self._pause = _PAUSE_MS
            if self._device.epoch_s() is None:
                self._ask_time(now_ms)
            else:
                self._forget()
                self._due = now_ms + _WATCH_MS
        elif now_ms - self._begun >= TRY_MS or self._wlan.status() == getattr(
            network, "STAT_WRONG_PASSWORD", None
        ):
            self.state = "cannot join %s: check name and password" % self._networks[self._at][_SSID]
            self._next(now_ms)

    def _join(self, now_ms: int):
        ssid, password = self._networks[self._at]
        self.state = "joining " + ssid
        self._begun = now_ms
        self._wlan.connect(ssid, password or None)

    def _next(self, now_ms: int):
        """Try the next network, the first again after a pause."""
        self._forget()
        if self._wlan:
            try:
                self._wlan.disconnect()
            except OSError:  # ``state`` says already what went wrong
                pass
        self._at = (self._at + 1) % len(self._networks)
        self._begun = None
        if self._at == 0:
            self._due = now_ms + self._pause
            self._pause = min(2 * self._pause, _MAX_PAUSE_MS)

    # -- the time

    def _ask_time(self, now_ms: int):
        if self._socket and _is_readable(self._socket):
            seconds = _seconds(self._socket.recv(128), self._nonce)
            if seconds:
                from settime import set_clock

                set_clock(self._device, seconds)
                self._forget()
                return
        try:
            if now_ms - self._asked >= _NTP_MS:
                self._forget()
                self._asked = now_ms
                from lookup import Lookup

                self._names = Lookup(self._server[_HOST], self.name_server())
            address = self._names and self._names.address(now_ms)
            if address:
                self._names = None
                self._nonce = random_bytes() + random_bytes()
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self._socket.sendto(
                    b"\x23" + bytes(39) + self._nonce,
                    socket.getaddrinfo(address, self._server[_PORT])[0][-1],
                )
        # no name server yet, or no such name: asked again after _NTP_MS
        except (OSError, ClawError):
            self._forget()

    def _forget(self):
        if self._names:
            self._names.close()
            self._names = None
        if self._socket:
            self._socket.close()
            self._socket = None


def _is_readable(opened) -> bool:
    """Return whether something has come."""
    poll = select.poll()
    poll.register(opened, select.POLLIN)
    return len(poll.poll(0)) > 0


def _seconds(data: bytes, nonce: bytes):
    """Return the time in seconds since 1970 that a server answered; None when *data* is no answer
    to a request with *nonce*.
    """
    if (
        len(data) < 48
        or data[_MODE] & 7 != 4
        or not 1 <= data[_STRATUM] <= 15
        or data[24:32] != nonce
    ):
        return None
    since = struct.unpack(">I", data[40:44])[0]
    return since + (_ERA if since < _SINCE_2024 else 0) - _SINCE_1900


def _place(given) -> tuple:
    """Return (host, port) of a list of the two.  Raises ``TypeError``, ``ValueError``."""
    if isinstance(given, (list, tuple)) and len(given) == 2:
        host, port = given
        if isinstance(host, str) and isinstance(port, int) and 0 < port < 65536:
            return host, port
    raise ValueError('ntp and dns: expected ["host", port]')
