"""``clawlite page``: the process that people's browsers and operators reach (docs/page.md)."""

import asyncio
import dataclasses
import gc
import os
import signal
import sys

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_ends
from clawlite.host.base.home import base_folder
from clawlite.host.page.guard import Guard
from clawlite.host.page.known_people import KnownPeople
from clawlite.host.page.logins import Logins
from clawlite.host.page.site import Site
from clawlite.host.proxy.http_server import HTTPServer, address_of, is_loopback
from clawlite.host.systems.loop import on_end, run

ADDRESS = "127.0.0.1:7430"


@dataclasses.dataclass
class Place:
    """Where a page listens, and how it is reached.

    address      "ADDRESS:PORT"
    certificate, key  files for TLS, or None
    proxied      the host of the proxy that speaks TLS in front of it, or None
    names        further hosts by which it is reached
    """

    address: str = ADDRESS
    certificate: str | None = None
    key: str | None = None
    proxied: str | None = None
    names: tuple = ()

    @property
    def is_secure(self) -> bool:
        return bool(self.certificate or self.proxied)

    def check(self):
        """Raise ``ClawError`` where tokens would go over a network unencrypted."""
        host, _ = address_of("--listen", self.address)
        if not is_loopback(host) and not self.is_secure:
            raise ClawError(
                f"--listen {self.address}: tokens would go over the network unencrypted",
                "give --tls-cert FILE, or --behind-proxy HOST where a proxy speaks TLS, or an "
                "address of this machine alone: 127.0.0.1:PORT",
            )


def serve(place: Place, agents, is_child: bool = False) -> int:
    """Serve until Ctrl-C or SIGTERM; return the exit code.  Raises ``ClawError``.

    agents    names of the agents that are served alone; none: all of this machine
    is_child  it ends with the end of stdin, which is a pipe of the process that started it
    """
    place.check()
    return run(_serve(place, agents, is_child))


async def _serve(place: Place, agents, is_child: bool) -> int:
    codes, over = [], asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(number=None):
        codes.append(number)
        over.set()

    on_end(loop, end)
    if is_child:
        loop.add_reader(0, lambda: None if os.read(0, 512) else end())
    page = Page(place, agents)
    where = await page.open()
    print_note("the page is at %s" % where)
    gc.collect()
    gc.freeze()  # nothing of what is loaded is garbage later
    if not any(page.people.of(one) for one in page.people.places()):
        print_note("nobody may use it yet - clawlite people add NAME --role admin")
    try:
        await over.wait()
    finally:
        await page.close()
    return 130 if codes[:1] == [signal.SIGINT] else 0


class Page:
    """One page of this process."""

    def __init__(self, place: Place, agents=(), root=None):
        self._place = place
        self.people = KnownPeople(root or state_root(), agents)
        guard = Guard(place.names, place.is_secure, place.proxied)
        self._site = Site(self.people, Logins(self.people), guard)
        self._server = HTTPServer(self._site.routes(), self._site.missing, print_note)
        self._sweeper: asyncio.Task | None = None

    async def open(self) -> str:
        """Listen; return the URL.  Raises ``ClawError``."""
        place = self._place
        where = await self._server.open(
            "clawlite page",
            place.address,
            place.certificate,
            place.key,
            bool(place.proxied),
            "page",
        )
        self._sweeper = asyncio.get_running_loop().create_task(self._site.sessions.sweep())
        if place.proxied:
            return f"https://{place.proxied}/ (here http://{where}/)"
        return f"http{'s' if place.certificate else ''}://{where}/"

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._site.setup.close()
        await self._site.sessions.close()
        await self._server.close()


def state_root() -> str:
    """Return the folder of the state folders of all agents (linux/files/files.py)."""
    named = os.environ.get("CLAWLITE_STATE")
    if named:
        return os.path.expanduser(named)
    return os.path.join(base_folder("XDG_STATE_HOME", ".local", "state"), "clawlite")


def print_note(text: str) -> None:
    print("clawlite: " + escape_ends(text), file=sys.stderr, flush=True)
