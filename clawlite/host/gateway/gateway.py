"""``clawlite gateway``: keys and network for devices that have neither (docs/gateway.md).

A device asks for a provider of its image by name; host, key, limits and the API's format are known
here alone."""

import asyncio
import dataclasses
import functools
import os
import signal
import sys
import time

from clawlite.core.base.errors import ClawError, ParseError
from clawlite.core.base.printable import escape_ends
from clawlite.host.a2a.a2a import A2A
from clawlite.host.base.problems import error_sentence
from clawlite.host.gateway.answer import json_bytes
from clawlite.host.gateway.device import Device
from clawlite.host.gateway.feeds import Feeds
from clawlite.host.gateway.images import Images
from clawlite.host.gateway.lan import Listener, Tokens
from clawlite.host.gateway.mcp_servers import MCPServers
from clawlite.host.gateway.program import Programs
from clawlite.host.gateway.runner_tools import RunnerTools
from clawlite.host.gateway.serial import SerialPort
from clawlite.host.gateway.store import Store
from clawlite.host.gateway_channels.relays import Relays
from clawlite.host.gateway_operators.people import People
from clawlite.host.gateway_swarm.members import Members
from clawlite.host.gateway_swarm.stops import Stops
from clawlite.host.proxy.acceptor import Strangers
from clawlite.host.proxy.mediation import Managed
from clawlite.host.proxy.proxy import Proxy
from clawlite.host.serial import ports
from clawlite.host.sim.registry import registry
from clawlite.host.systems.loop import on_end, run
from clawlite.protocols.secrets.door_token import DOORS

PROXY, AGENTS = DOORS[1:3]
_OLDER = (
    "the token of {0} opens every door, as tokens of an older version do; the next version takes "
    "it from this machine alone: clawlite gateway token {0} --for DOOR makes one for one door"
)
MAX_SAID = 4096  # characters of a question or an answer that the history keeps


def folder() -> str:
    """Return where a gateway keeps what it keeps: a name that no agent's state folder can have."""
    return os.path.join(os.path.dirname(registry()), ".gateway")


@dataclasses.dataclass
class Doors:
    """Where a gateway listens, beside serial ports.

    listen, proxy, a2a, page  "ADDRESS:PORT", or None
    a2a_url, approvers  see ``a2a.A2A``
    certificate, key    files for TLS there, or None
    """

    listen: str = None
    proxy: str = None
    a2a: str = None
    a2a_url: str = None
    approvers: tuple = ()
    certificate: str = None
    key: str = None
    page: str = None


def serve(
    projects: list, port_names: list, doors: Doors, secret, sandboxes, uncontained, local=None
) -> int:
    """Serve devices until Ctrl-C or SIGTERM; return the exit code.

    projects    folders or images; none: the current folder
    port_names  of serial ports; with none and no door, the only board
    secret      function(agent, name) -> value of a secret; raises ``ClawError``
    sandboxes   function(folder) -> as ``program.Programs`` has it; *uncontained*: see there
    local       function() -> ``clawlite.linux.local.shared.SharedModels`` or None
    Raises ``ClawError`` when it cannot begin.
    """
    if doors.a2a and sys.platform == "win32":
        raise ClawError(
            "--a2a starts the agent, and agents do not run on Windows",
            "start this gateway in WSL (wsl --install), or on Linux",
        )
    programs = Programs(sandboxes(folder()), uncontained)
    models = local() if local else None
    return run(_serve(projects, port_names, doors, secret, programs, models))


async def _serve(projects: list, port_names: list, doors: Doors, secret, programs, models) -> int:
    codes, over = [], asyncio.Event()
    on_end(asyncio.get_running_loop(), lambda number: (codes.append(number), over.set()))
    gateway = Gateway(
        Images(projects or ["."], note, seen=os.path.join(folder(), "images")),
        await Store.open(os.path.join(folder(), "gateway.db"), note),
        secret,
        note,
        programs,
        models,
    )
    try:
        gateway.note("agents: " + (", ".join(gateway.images.agents()) or "none that could be read"))
        entries = [ports.choose(name) for name in port_names] or (
            [] if doors.listen or doors.proxy or doors.a2a else [ports.choose()]
        )
        for entry in entries:
            port = gateway.attach(entry)
            shared = f"; its console: clawlite console --port {port.console}"
            gateway.note(f"serves {entry['port']}" + (shared if port.console else ""))
        certificate, key = doors.certificate, doors.key
        if doors.listen:
            where = await gateway.listen(doors.listen, certificate, key)
            gateway.note(
                f"listens on "
                f"{where}{'' if certificate else ', not encrypted: for a LAN that you trust'}"
            )
        if doors.proxy:
            where = await gateway.mediate(doors.proxy, certificate, key)
            gateway.note(f"proxy for runners on http{'s' if certificate else ''}://{where}")
        if doors.a2a:
            where = await gateway.serve_agents(projects or ["."], doors)
            gateway.note(f"A2A on {where}")
        if doors.page:
            await gateway.show(doors)
        for name in _tokens().older():
            gateway.note(_OLDER.format(name))
        for line in await gateway.servers.warnings(gateway.images.current().values()):
            gateway.note(line)
        await over.wait()
    finally:
        await gateway.close()
    return 130 if codes == [signal.SIGINT] else 0


class Gateway:
    """All devices, and what they share.

    images  ``Images``
    store   ``Store``
    secret  function(agent, name) -> value; may block.  For people who sign in it has more
            (mcp_servers.py)
    note    function(text) for who runs it
    programs  ``Programs``
    models  the local models of boards (``clawlite.linux.local.shared.SharedModels``), or None
    """

    def __init__(self, images: Images, store: Store, secret, note, programs=None, models=None):
        self.models = models
        self.images, self.store, self.secret, self.note = images, store, secret, note
        self.codecs = (loads, lambda value: json_bytes(value).decode())
        self.servers = MCPServers(self.codecs, programs or Programs(), note, secret)
        self._devices = {}
        self._ports = []
        self._listener = self._proxy = self._a2a = self._page = None
        self._strangers = Strangers()  # of all doors
        self.stops = Stops(images, self._tell_stop, note)
        self.members = Members(images, self._deliver, self._note_member, note)
        self.relays = Relays(images, self._hand_over, self._note_event, note)
        self.people = People(folder(), self.codecs, self._hand_over, note, self.members.list_swarm)

    def device(self, name: str) -> Device:
        """Return the device *name*, made when it comes for the first time."""
        if name not in self._devices:
            self._devices[name] = Device(name, self)
        return self._devices[name]

    def attach(self, entry: dict, watch=None) -> SerialPort:
        """Serve the port *entry* (host/serial/ports.py).  Raises ``ClawError``."""
        port = SerialPort(entry, self.device(entry["id"]), self.note, watch)
        self._ports.append(port)
        return port

    def port_of(self, device: Device):
        """Return the id of the serial port that *device* is at, or None."""
        return device.name if any(port.serves(device) for port in self._ports) else None

    async def listen(self, address: str, certificate=None, key=None) -> str:
        """Serve the LAN; return the address with its port.  Raises ``ClawError``."""
        listener = Listener(_tokens(), self.device, self.note, self._strangers)
        where = await listener.open(address, certificate, key)
        self._listener = listener
        return where

    async def mediate(self, address: str, certificate=None, key=None) -> str:
        """Serve runners at the proxy; return the address with its port.  Raises ``ClawError``."""
        proxy = Proxy(
            self.images.current,
            functools.partial(_tokens().has, PROXY),
            self.store,
            self.secret,
            self.note,
            self.codecs,
            self.manage,
            self._strangers,
        )
        where = await proxy.open(address, certificate, key)
        self._proxy = proxy
        return where

    def manage(self, runner) -> Managed:
        """Return what the proxy runs and fetches for *runner*."""
        agent = runner.image.agent.name
        secret = lambda name: self.secret(agent, name)
        mine = RunnerTools(runner, self.codecs, self.servers, secret, self.store)
        feeds = Feeds(runner.image, runner.name, self.codecs, secret)
        return Managed(mine.tools, mine.call, mine.budget, feeds.text if feeds else None)

    async def serve_agents(self, projects: list, doors: Doors) -> str:
        """Serve the agent of *projects*, which are one, over A2A; return the door's URL.  Raises
        ``ClawError``.
        """
        if len(projects) != 1:
            raise ClawError(
                f"--a2a serves the agent of one project, found {len(projects)}",
                "start one gateway for each, with a port of its own",
            )
        is_right = functools.partial(_tokens().has, AGENTS)
        a2a = A2A(projects[0], is_right, doors.approvers, self.note, loads, self._strangers)
        self._a2a = a2a
        return await a2a.open(doors.a2a, doors.a2a_url, doors.certificate, doors.key)

    async def show(self, doors: Doors) -> None:
        """Start the page, a process of its own that says itself where it is, and ends with this
        one.
        """
        options = [("--listen", doors.page), ("--tls-cert", doors.certificate)]
        options.append(("--tls-key", doors.key))
        words = [f"{option}={text}" for option, text in options if text]
        start = [sys.executable, "-m", "clawlite", "page", "--child", *words]
        self._page = await asyncio.create_subprocess_exec(
            *start, stdin=asyncio.subprocess.PIPE, start_new_session=True
        )

    def _tell_stop(self, swarm: str) -> None:
        for device in self._devices.values():
            device.tell_stop(swarm)

    def _deliver(self, name: str, method: str, params: dict) -> None:
        """Hand the device *name* what its swarm has for it."""
        refusal = self.device(name).deliver(method, params)
        if refusal:
            self.members.report(name, params["id"], "failed", "", refusal)

    def _hand_over(self, name: str, method: str, params: dict) -> str:
        """Hand the device *name* what channels or people have for it; return why it cannot take
        it.
        """
        return self.device(name).deliver(method, params)

    def _note_event(self, name: str, event: dict) -> None:
        """Keep an *event* of the channels of the device *name*."""
        self.store.event(name, **event)

    def _note_member(self, name: str, event: dict) -> None:
        """Keep an *event* of the member that the device *name* is."""
        self.store.event(name, **event)
        if "reason" in event:
            self.note(f"{name}: {event['event']}: {event['reason']}")

    async def close(self) -> None:
        await self.people.close()
        await self.relays.close()
        await self.members.close()
        await self.stops.close()
        if self._page:
            self._page.stdin.close()
            await self._page.wait()
        if self._a2a:
            await self._a2a.close()
        for port in self._ports:
            port.close()
        if self._proxy:
            await self._proxy.close()
        if self._listener:
            self._listener.close()
        for device in self._devices.values():
            device.close()
        if self.models:
            self.models.close()
        await self.servers.close()
        await self.store.close()

    # -- what devices tell

    def note_greeting(self, device: Device, digest: str, refusal) -> None:
        """*device* runs the image with this *digest*; *refusal*: what it is told, when nobody
        knows that.
        """
        if refusal:
            self.note(
                f"{device.name}: runs an image that no project has: {error_sentence(refusal)}"
            )
        else:
            self.images.ran(digest)
            self.note(
                f"{device.name}: runs {device.agent}"
                + ("" if self.images.is_now(digest) else f", as it was before: image {digest[:12]}")
            )
        self.store.note_device(device.name, device.agent, digest)
        self.store.event(device.name, "device.greeted", agent=device.agent, image=digest)

    def note_left(self, device: Device, digest: str) -> None:
        """The link to *device* is over."""
        self.store.note_device(device.name, device.agent, digest)

    def note_begin(self, device: Device, job, messages: list) -> None:
        job.asked = next(
            (message.text for message in reversed(messages) if message.role == "user"), ""
        )[:MAX_SAID]
        self.store.event(device.name, "request.began", request=job.id, provider=job.provider)

    def note_end(self, device: Device, job) -> None:
        self.store.event(
            device.name, "request.ended", request=job.id, provider=job.provider, outcome=job.outcome
        )
        self.store.note_request(
            device.name,
            device.agent,
            job.provider,
            job.id,
            job.asked,
            job.said[:MAX_SAID],
            job.outcome,
        )
        if job.outcome != "ok":
            self.note(f"{device.name}: {job.provider}: {job.outcome}")

    def note_call(self, device: Device, job) -> None:
        """The call of a service's tool has ended: ADR-020's trace of it, without what it said."""
        self.store.event(
            device.name,
            "tool.ended",
            agent=device.agent,
            request=job.id,
            tool=job.provider,
            arguments=job.asked[:MAX_SAID],
            outcome=job.outcome,
            result_bytes=len(job.said.encode()),
            latency_ms=int((time.monotonic() - job.began_s) * 1000),
        )
        if job.outcome != "ok":
            self.note(f"{device.name}: {job.provider}: {job.outcome}")


def loads(data: bytes):
    """Return the value of strict JSON.  Raises ``ParseError``."""
    import msgspec

    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise ParseError(str(e)) from None


def note(text: str) -> None:
    print("clawlite: " + escape_ends(text), file=sys.stderr, flush=True)


def _tokens() -> Tokens:
    return Tokens(os.path.join(folder(), "tokens"))


def doors_of(name: str) -> tuple:
    """Return the doors that the token of *name* opens, () when it has none."""
    return _tokens().doors(name)


def make_token(name: str, doors=DOORS[:1]) -> str:
    """Return a new token for *name*, which opens *doors* alone: a device's, unless
    they are named.  Raises ``ClawError``.
    """
    return _tokens().make(name, doors)
