"""An HTTP server on one address: what every door of a gateway that speaks HTTP shares.

1. Routes are what a door has of its own; anything else is its ``missing``.
2. A request whose client goes away is cancelled.
3. A connection is a stranger (``acceptor``) while no request of it is answered.
4. Who is not on this machine is served with TLS alone: what opens a door goes over the wire.
"""

import asyncio
import ipaddress
import logging
import ssl

from clawlite.core.base.errors import ClawError
from clawlite.host.proxy.acceptor import Acceptor, Strangers

MAX_BODY = 8 << 20  # bytes of a request's body
BODY_S = 60  # within which it comes
_IDLE_S = 75  # that a connection stays open between two requests


def address_of(option: str, address: str) -> tuple[str, int]:
    """Return (host, port) of *address*, "HOST:PORT".  Raises ``ClawError`` that names *option*."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or not host or int(port[:6]) > 65535:
        raise ClawError(
            f"{option}: expected ADDRESS:PORT, found {address}", "such as 192.168.1.2:7420"
        )
    return host.strip("[]"), int(port)


def tls_of(certificate: str, key) -> ssl.SSLContext:
    """Return what serves TLS with the file *certificate*, and its *key*, None when that is in the
    same file.  Raises ``OSError``.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.load_cert_chain(certificate, key)
    return tls


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class HTTPServer:
    """One server.

    routes     [(method, path, coroutine function(request) -> response), ...], of aiohttp; who may
               not ask is to be answered before the body is read
    missing    the same for any other request
    note       function(text) for who runs the gateway
    strangers  ``Strangers`` that it shares with other doors, or None
    """

    def __init__(self, routes: list, missing, note, strangers=None):
        self._routes, self._missing, self._note = routes, missing, note
        self._strangers = Strangers() if strangers is None else strangers
        self._acceptor = self._runner = None

    async def open(
        self,
        option: str,
        address: str,
        certificate=None,
        key=None,
        is_proxied: bool = False,
        extra: str = "host,proxy",
    ) -> str:
        """Listen on *address*, which *option* gave; return it with its real port.  Raises
        ``ClawError``.

        is_proxied  a proxy in front of it speaks TLS
        extra       of clawlite, which installs what it needs
        """
        try:
            from aiohttp import web
        except ImportError:
            raise ClawError(
                f"{option} needs the package aiohttp", f"pip install 'clawlite[{extra}]'"
            ) from None

        host, port = address_of(option, address)
        if not certificate and not is_proxied and not is_loopback(host):
            raise ClawError(
                f"{option} {address}: tokens of runners would go over the network unencrypted",
                "give --tls-cert FILE, or an address of this machine alone: 127.0.0.1:PORT",
            )

        @web.middleware
        async def answer(request, handler):
            with self._strangers.exempt(request.protocol):
                try:
                    return await handler(request)
                except (web.HTTPException, ConnectionError):
                    raise
                except Exception as e:
                    self._note(f"a request failed: {type(e).__name__}: {e}")
                    said = {"error": "the server failed at this request; it says why"}
                    return web.json_response(said, status=500)

        app = web.Application(client_max_size=MAX_BODY, middlewares=[answer])
        for method, path, handle in self._routes:
            app.router.add_route(method, path, handle)
        app.router.add_route("*", "/{rest:.*}", self._missing)
        runner = web.AppRunner(
            app,
            handler_cancellation=True,
            access_log=None,
            logger=_quiet(),
            keepalive_timeout=_IDLE_S,
            shutdown_timeout=1,
        )
        await runner.setup()
        try:
            tls = tls_of(certificate, key) if certificate else None
            acceptor = Acceptor(self._strangers, lambda _: runner.server())
            where = await acceptor.open(host, port, tls)
        except (OSError, OverflowError) as e:
            await runner.cleanup()
            raise ClawError(
                f"{address}: {getattr(e, 'strerror', None) or e}",
                "choose an address of this machine, and a free port",
            ) from None
        self._acceptor, self._runner = acceptor, runner
        return where

    async def close(self) -> None:
        if self._runner:
            self._acceptor.close()
            await self._runner.cleanup()


def _quiet() -> logging.Logger:
    """Return a logger that says nothing.  aiohttp writes a traceback for each request that is no
    HTTP, and strangers can send any number of them.
    """
    logger = logging.Logger("clawlite.door")
    logger.addHandler(logging.NullHandler())
    return logger


def bearer_of(request) -> str | None:
    """Return the token that *request* has as a bearer, None where it has none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def body_of(request) -> bytes:
    """Return the whole body of *request*.  Raises ``Unread``."""
    from aiohttp import web

    try:
        async with asyncio.timeout(BODY_S):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(
            f"expected a body of at most {MAX_BODY} bytes", "send less of the conversation"
        ) from None
    except web.RequestPayloadError as e:
        raise Broken(f"the body: {e}", "send it whole, and in the Content-Encoding that it has")
    except TimeoutError:
        raise TooSlow(f"the body was not whole after {BODY_S} s", "send it again") from None


class Unread(ClawError):
    """A body that nobody reads.  ``status``: what HTTP calls it."""

    status: int


class TooLarge(Unread):
    status = 413


class Broken(Unread):
    status = 400


class TooSlow(Unread):
    status = 408
