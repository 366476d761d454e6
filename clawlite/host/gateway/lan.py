"""Devices that reach a gateway over the LAN: TCP, one token each, records as RFC 7464 has them
(0x1E, JSON, LF).

1. The token never goes over the wire: the gateway sends a nonce, the device answers
   HMAC-SHA256(token, nonce), in hex.
2. Without ``--tls-cert`` what follows is not encrypted: for a LAN whose every member is trusted.
3. Who does not answer in time, or wrongly, is told no reason.  Of one token the newest connection
   counts.
4. Until its token is right a device is a stranger (host/proxy/acceptor.py): they are few, and are
   dropped after some seconds.
"""

import asyncio
import hmac
import json
import os
import re
import socket
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD, Framer
from clawlite.core.line.gateway_records import make_note
from clawlite.host.base.problems import make_write_error
from clawlite.host.base.regular_file import make_private, open_regular
from clawlite.host.gateway.answer import json_bytes
from clawlite.host.proxy.acceptor import Acceptor, Strangers
from clawlite.host.proxy.http_server import address_of, tls_of
from clawlite.protocols.secrets.door_token import DOORS, parse

DEVICE = DOORS[0]
MAX_RECORD = 65536
_MAX_AUTH = 4096  # bytes that are kept of a stranger
_ALIVE_S = 60  # of silence, until TCP asks whether somebody is there; or without acknowledgement
_FULL = 262144  # bytes that wait for a device that does not read: it is let go
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


class Tokens:
    """The folder with one file a token (0600): its name is the device's."""

    def __init__(self, folder: str):
        self._folder = folder

    def make(self, name: str, doors=(DEVICE,)) -> str:
        """Return a new token for *name*, which opens *doors* (of ``door_token.DOORS``) alone; an
        earlier one is no longer good.  Raises ``ClawError``.
        """
        if not _NAME.match(name):
            raise ClawError(
                f"{name!r} is no name of a device", "letters, digits, dots and hyphens, at most 63"
            )
        token = os.urandom(32).hex()
        path = os.path.join(self._folder, name)
        try:
            make_private(self._folder)
            # no name ends so
            file = os.open(path + "~", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(file, " ".join((token, *doors)).encode())
            finally:
                os.close(file)
            os.replace(path + "~", path)
        except OSError as e:
            where = "set $CLAWLITE_STATE to a folder that this user may write to"
            raise make_write_error(path, e, where) from None
        return token

    def is_right(self, name, nonce: str, mac) -> bool:
        """Return whether *mac* is what the device *name* answers to *nonce*."""
        token = self._token(name, DEVICE)
        right = hmac.new(token or os.urandom(32), nonce.encode(), "sha256").hexdigest()
        return (
            isinstance(mac, str)
            and hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))
            and bool(token)
        )

    def has(self, door: str, name, token: str) -> bool:
        """Return whether *token* is that of *name*, and opens *door*."""
        right = self._token(name, door)
        given = token.encode("utf-8", "replace")
        return hmac.compare_digest(right or os.urandom(32), given) and bool(right)

    def stamp(self, name: str):
        """Return what differs once the token of *name* is another one."""
        try:
            found = os.stat(os.path.join(self._folder, name))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def doors(self, name: str) -> tuple:
        """Return the doors that the token of *name* opens, () when it has none."""
        return parse(self._read(name))[1]

    def older(self) -> list:
        """Return the names whose tokens are of an older version."""
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return []
        return [name for name in names if parse(self._read(name))[2]]

    def _token(self, name, door: str) -> bytes:
        """Return the token of *name*, b"" when there is none that opens *door*."""
        token, doors, _ = parse(self._read(name))
        return token if door in doors else b""

    def _read(self, name) -> bytes:
        if isinstance(name, str) and _NAME.match(name):
            try:
                with open(os.path.join(self._folder, name), "rb", opener=open_regular) as file:
                    return file.read(256)
            except OSError:
                pass
        return b""


class Listener:
    """What listens on one address.

    device     function(name) -> ``device.Device``
    note       function(text)
    strangers  ``Strangers`` that it shares with other doors, or None
    """

    def __init__(self, tokens: Tokens, device, note, strangers=None):
        self.tokens, self.device, self.note = tokens, device, note
        self.strangers = Strangers() if strangers is None else strangers
        self.peers = {}  # name -> Peer
        self._acceptor = Acceptor(self.strangers, lambda address: Peer(self, address))

    async def open(self, address: str, certificate, key) -> str:
        """Listen on HOST:PORT; return the address with its real port.  Raises ``ClawError``."""
        host, port = address_of("--listen", address)
        try:
            tls = tls_of(certificate, key) if certificate else None
            return await self._acceptor.open(host, port, tls)
        except (OSError, OverflowError) as e:
            raise ClawError(
                f"{address}: {getattr(e, 'strerror', None) or e}",
                "choose an address of this machine, and a free port",
            ) from None

    def close(self) -> None:
        self._acceptor.close()
        for peer in list(self.peers.values()):
            peer.end()


class Peer(asyncio.Protocol):
    """One connection.  As a device's link: ``send``, ``waiting``."""

    def __init__(self, listener: Listener, address: str):
        self._listener, self._address = listener, address
        self._device = self._transport = None
        self._framer = Framer(MAX_RECORD)
        self._nonce = os.urandom(16).hex()
        self._mac = ""  # what the device answered to it
        self._stamp: Any = None  # of its token's file, when that was right
        self._unknown = 0  # bytes that came before the token was right

    @property
    def waiting(self) -> int:
        return self._transport.get_write_buffer_size()

    def send(self, record: bytes) -> None:
        if self._device and not self._is_good():
            return
        self._transport.write(b"\x1e" + record + b"\n")
        if self.waiting > _FULL:
            self.end()

    def end(self) -> None:
        self._transport.abort()

    def connection_made(self, transport) -> None:
        self._transport = transport
        _watch(transport.get_extra_info("socket"))
        self.send(json_bytes({"id": "auth", **make_note("auth", {"nonce": self._nonce})}))

    def data_received(self, data: bytes) -> None:
        self._unknown += len(data)
        self._framer.feed(data)
        while (event := self._framer.next_event()) and not self._transport.is_closing():
            kind, data = event
            if kind == RECORD and self._device:
                if self._is_good():
                    self._device.record(data)
            elif kind == RECORD:
                self._authenticate(data)
        if not self._device and self._unknown > _MAX_AUTH:
            self.end()
        if self._device and not self._transport.is_closing():
            self._device.pump()

    def resume_writing(self) -> None:
        if self._device:
            self._device.pump()

    def connection_lost(self, error) -> None:
        self._listener.strangers.remove(self)
        if self._device and self._listener.peers.get(self._device.name) is self:
            del self._listener.peers[self._device.name]
            self._device.disconnect()
            self._listener.note(f"{self._device.name}: the connection has ended")
        self._device = None

    def _authenticate(self, data: bytes) -> None:
        try:
            answer = json.loads(data)["result"]
            name, mac = answer["name"], answer["mac"]
        except (ValueError, KeyError, TypeError, RecursionError):
            name = mac = None
        if not self._listener.tokens.is_right(name, self._nonce, mac):
            self._listener.note(f"a client at {self._address} has a wrong token")
            self.end()
            return
        self._mac, self._stamp = mac, self._listener.tokens.stamp(name)
        self._listener.strangers.remove(self)
        old = self._listener.peers.pop(name, None)
        if old:
            old.end()
        self._listener.peers[name] = self
        self._device = self._listener.device(name)
        self._device.disconnect()
        self._device.connect(self)

    def _is_good(self) -> bool:
        """Return whether the device's token is still valid; end the connection if it is not."""
        tokens, name = self._listener.tokens, self._device.name
        stamp = tokens.stamp(name)
        if stamp != self._stamp and not tokens.is_right(name, self._nonce, self._mac):
            self._listener.note(f"{name}: its token is no longer valid")
            self.end()
            return False
        self._stamp = stamp
        return True


def _watch(connection) -> None:
    """Let TCP find out that whoever was at the other end of *connection* has gone without a word,
    as far as this system can: the swarm of a board wants to know.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _ALIVE_S),
        ("TCP_KEEPINTVL", _ALIVE_S // 3),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", _ALIVE_S * 1000),
    ):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
