"""A gateway's connections to providers: one for each attempt of ``core.exchange``, over asyncio.

The device names no host: it names a provider of its image, and the image says where that is.  Names
are looked up here, and no answer leads anywhere else: redirects are not followed
(core/net/exchange.py)."""

import asyncio
import functools
import ssl

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE
from clawlite.core.base.errors import ProviderError
from clawlite.host.base.problems import network_reason

PIECE = 16384


class Connection:
    """One connection.

    scheme   "http" or "https"
    parts    list of bytes, sent as soon as it stands
    timeout_ms   for look-up, connecting and the TLS handshake together
    """

    def __init__(self, scheme: str, host: str, port: int, parts: list, timeout_ms: int):
        self._host, self._port = host, port
        self._tls = context() if scheme == "https" else None
        self._parts, self._timeout_s = parts, timeout_ms / 1000
        self._reader = self._writer = None

    async def receive(self, timeout_ms: int) -> tuple:
        """Return (True, bytes), b"" at the end, or (False, ``ProviderError``)."""
        try:
            if self._reader is None:
                await asyncio.wait_for(self._open(), self._timeout_s)
            async with asyncio.timeout(timeout_ms / 1000):
                return True, await self._reader.read(PIECE)
        except TimeoutError:
            silent = self._reader is not None
            why = (
                f"it said nothing for {timeout_ms // 1000} s"
                if silent
                else f"timed out after {self._timeout_s:g} s"
            )
        except ssl.SSLCertVerificationError as e:
            why = f"certificate of {self._host}: {e.verify_message}"
        except OSError as e:
            why = (
                f"no connection to {self._host}: {network_reason(e)}"
                if self._reader is None
                else f"the connection broke: {network_reason(e)}"
            )
        return False, ProviderError(why)

    async def _open(self) -> None:
        reader, self._writer = await asyncio.open_connection(
            self._host,
            self._port,
            ssl=self._tls,
            limit=PIECE,
            server_hostname=self._host if self._tls else None,
        )
        self._writer.writelines(self._parts)
        self._parts = None
        self._reader = reader  # what stands now

    def close(self) -> None:
        if self._writer:
            self._writer.transport.abort()


async def carry_out(work):
    """Carry out the effects of *work*, a generator that connects (core/net/exchange.py); return its
    result.
    """
    connection, outcome = None, None
    try:
        while True:
            kind, *details = work.send(outcome)
            outcome = None
            if kind == OPEN:
                connection = Connection(*details)
            elif kind == RECEIVE:
                outcome = await connection.receive(*details)
            elif kind == CLOSE:
                connection.close()
    except StopIteration as e:
        return e.value
    finally:
        work.close()
        if connection is not None:
            connection.close()


@functools.cache
def context() -> ssl.SSLContext:
    """Return what checks certificates and host names; $SSL_CERT_FILE and $SSL_CERT_DIR are
    honoured.
    """
    made = ssl.create_default_context()
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made
