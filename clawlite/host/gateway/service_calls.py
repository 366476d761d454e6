"""Tools of services that a gateway calls for a device (Clawdapus ADR-020, "mediated").

1. The image that the device runs says which tools there are, and how they are called; arguments are
   checked against its schemas here too.  What it does not grant is refused.
2. The credential is that of the device, NAME.DEVICE, or else the service's own, NAME.  It leaves
   this machine in the request alone.
3. ``{claw_id}`` is the device as the gateway knows it: the name of its token, or of its port.
4. A device that wants to know how a call goes on is told while it is connected, and never twice: of
   progress only the newest matters.
5. What a server asks a person goes to a device that can ask one, as a record of the answer, so it
   outlasts a line that breaks.
"""

import asyncio
import functools
import re
import time

from clawlite.core.base.errors import ClawError, ProviderError, wrap_error
from clawlite.core.base.render import canonical
from clawlite.core.formats.schema import check
from clawlite.core.image.image import HANDLER_KIND, HANDLER_NAME, SERVICE, SERVICES
from clawlite.core.line.gateway_records import make_note
from clawlite.core.net import http1
from clawlite.core.net.exchange import without
from clawlite.host.gateway.answer import Answer, json_bytes
from clawlite.host.gateway.http import Connection
from clawlite.protocols.net.netrules import authority
from clawlite.protocols.services.feed import PREFIX, Feed, feeds_of
from clawlite.protocols.services.service_call import (
    MAX_BODY,
    MEDIATED,
    SERVED,
    TIMEOUT_MS,
    BadArgument,
    Service,
    failure,
    make_timeout,
    refusal,
    request_of,
    result_of,
)

CONNECT_MS = 10000
MAX_ARGUMENTS = 262144  # bytes
TELL_S = 0.25  # between two records of a call's progress
# what a device's decoder of JSON takes (linux/io/jsontext.py): arrays and objects open at once, and
# numbers of 40 characters, a sign among them
MAX_DEPTH, MAX_INTEGER = 32, 10**39
_NOT_TAKEN = (
    f"The tool has ended, but its result cannot be handed on: it is nested deeper than "
    f"{MAX_DEPTH - 1} levels, or has a whole number of more than {len(str(MAX_INTEGER)) - 1} digits"
)
MAX_NAME = 128  # characters of a secret's name
_ODD = re.compile("[^A-Za-z0-9_.-]")  # what such a name cannot hold


class Caller:
    """Whoever a tool is called for.  This one wants to know nothing before the end."""

    watches = False  # whether it wants to know of the call's progress
    asks = False  # whether it can ask a person during the call

    def report(self, progress: tuple) -> None:
        """Take the call's *progress*: (number, total or None, message)."""

    async def ask(self, server: str, params) -> tuple:
        """Put the question *params* (``elicitation/create``) of *server* to a person; return (what
        the server is told, or None: it was not put, and why).
        """
        return None, "nobody can be asked"


NOBODY = Caller()


class ToolJob(Answer, Caller):
    """One call.  ``began_s``: the loop's time.  The others as in ``Answer``.

    params  of the device's request (docs/gateway.md, ``claw.gateway.tool``)
    tell    function(record): sends what may be lost to the device, if it is there
    limit   bytes of one record that the device takes
    """

    def __init__(self, id: str, params: dict, moved, tell, limit: int):
        super().__init__(id, str(params.get("tool")), moved)
        self.watches, self.asks = params.get("watches") is True, params.get("asks") is True
        self._tell, self._limit = tell, limit
        self._question: tuple | None = None  # the number of the one that waits, and its future
        self._progress: tuple | None = None  # what is to be told, not before the timer's end
        self._timer: asyncio.TimerHandle | None = None

    def report(self, progress: tuple) -> None:
        if not all(_is_taken(part, 0) for part in progress):
            return
        self._progress = progress
        if self._timer is None:
            self._tell_progress()

    def _tell_progress(self) -> None:
        """Tell the device the newest progress; the next not before ``TELL_S``."""
        self._timer = None
        if self._progress is None or self.is_done:
            return
        number, total, message = self._progress
        self._progress = None
        params = {"id": self.id, "progress": number, "total": total, "message": message}
        self._tell(make_note("progress", params))
        self._timer = asyncio.get_running_loop().call_later(TELL_S, self._tell_progress)

    async def ask(self, server: str, params) -> tuple:
        if not _is_taken(params, MAX_DEPTH - 2):  # the record, and its params
            return None, "its form is nested too deep, or has a number that is too long"
        number = len(self.records)
        about = {"id": self.id, "number": number, "server": server, "params": params}
        record = make_note("asks", about)
        size = len(json_bytes(record))
        if size > self._limit:
            return None, f"its form takes {size} bytes, and the device takes {self._limit}"
        future = asyncio.get_running_loop().create_future()
        self._question = number, future
        self._keep(record)
        return await future

    def take_answer(self, params: dict) -> None:
        """Take what the device says to a question; one that comes again changes nothing."""
        number, future = self._question or (None, None)
        if future is None or future.done() or params.get("number") != number:
            return
        result, why = params.get("result"), params.get("why")
        is_told = isinstance(result, dict) and isinstance(result.get("action"), str)
        why = why if isinstance(why, str) else "the device does not say what a person answered"
        future.set_result((result, "") if is_told else (None, why))

    def give_up(self, e: ClawError) -> None:
        """End the call with *e*, which a device that comes back is told."""
        self.cancel()
        self._error(e)
        self.ended_s = asyncio.get_running_loop().time()

    def start(self, image, device: str, text: str, codecs: tuple, servers, secret, ended) -> None:
        """Begin; *ended(job)* is called once at the end, unless it is cancelled.

        image   ``image.Image`` that the device runs;  device: its name
        text    the arguments, JSON
        codecs  (loads, dumps)
        servers ``mcp_servers.MCPServers``
        secret  function(name) -> value; raises ``ClawError``; may block
        """
        self.asked, self.began_s = text, time.monotonic()
        work = functools.partial(self._run, image, device, text, codecs, servers, secret)
        self._begin(work, ended)

    async def _run(self, image, device: str, text: str, codecs: tuple, servers, secret) -> None:
        try:
            result = await call_tool(
                image, self.provider, device, text, codecs, servers, secret, self
            )
        except Exception as e:  # a bug: the device is told, the gateway goes on
            self._error(wrap_error(e))
            return
        finally:
            self._progress = None  # nothing is told after the end
        if not _is_taken(result, MAX_DEPTH):
            result = failure("failed", _NOT_TAKEN)
        self.said = canonical(result)
        self.outcome = "ok" if result["ok"] else result["error"]["code"]
        self._pieces(self.said)
        ended = {"ok": result["ok"]} if result.ran else {"ok": False, "ran": False}
        self._keep({"jsonrpc": "2.0", "id": self.id, "result": ended})


def _is_taken(value, levels: int) -> bool:
    """Return whether the decoder of a device takes *value*, which has *levels* arrays and objects
    at most.  A record that it does not take ends the connection.
    """
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_taken(part, levels - 1) for part in parts)
    return type(value) is not int or abs(value) < MAX_INTEGER


async def call_tool(
    image, name: str, device: str, text: str, codecs: tuple, servers, secret, caller=NOBODY
):
    """Return the ``ServiceResult`` of a call of the tool *name*, or of a fetch of the feed, for
    *caller* (``Caller``); see ``ToolJob.start``.
    """
    loads, dumps = codecs
    services = list(map(Service, image.section(SERVICES) or ()))
    if name.startswith(PREFIX):
        feeds = feeds_of(services, MEDIATED, device)
        tool = next((feed for feed in feeds if feed.name == name), None)
    else:
        tool = image.tool(name)
    if tool is None or tool.handler[HANDLER_KIND] != SERVICE:
        return refusal("unknown_tool", f"{name[:80]} is not a tool of a granted service")
    of, _, verb = tool.handler[HANDLER_NAME].partition(".")
    service = next(one for one in services if one.name == of)
    most = tool.max_output
    if service.mode != MEDIATED or service.devices and device not in service.devices:
        return refusal("unknown_tool", f"{tool.name} is not for the device {device}", most)
    try:
        arguments = loads(text.encode()) if len(text) <= MAX_ARGUMENTS else None
    except ClawError:
        arguments = None
    if not isinstance(arguments, dict):
        wrong = "expected an object"
    else:
        is_feed = isinstance(tool, Feed)
        wrong = None if is_feed else check(tool.schema, arguments, image.automaton)
    if wrong:
        return failure("bad_argument", wrong, most)
    if service.scheme == SERVED:
        find = functools.partial(_secret, service, device, secret)
        ms = tool.timeout_ms or TIMEOUT_MS
        return await servers.call(image, of, verb, arguments, device, find, ms, most, caller)
    try:
        value = await _credential(service, device, secret)
        row = tool.row if isinstance(tool, Feed) else service.tools[verb]
        request = request_of(service, row, arguments, device, value, dumps)
    except BadArgument as e:
        return failure("bad_argument", e.message, most)
    except ClawError as e:
        return refusal("no_credential", e.message, most)
    return await send_request(service, request, loads, tool.timeout_ms or TIMEOUT_MS, most)


def own_name(name: str, device: str) -> str:
    """Return the name of the secret that is *device*'s own *name*."""
    return f"{name}.{_ODD.sub('-', device)}"[:MAX_NAME]


async def _credential(service: Service, device: str, secret):
    """Return what the service is shown, None where it wants nothing.  Raises ``ClawError``."""
    return None if service.auth is None else await _secret(service, device, secret, service.auth[2])


async def _secret(service: Service, device: str, secret, name: str):
    """Return the value of the credential *name* that *device* has for *service*."""
    loop = asyncio.get_running_loop()
    try:
        return await loop.run_in_executor(None, secret, own_name(name, device))
    except ClawError as e:
        if not getattr(e, "is_missing", False):  # it is there, and cannot be used
            raise
    try:
        return await loop.run_in_executor(None, secret, name)
    except ClawError:
        raise ClawError(
            f"the gateway has no credential {name} for {service.name}",
            f"give it: clawlite secrets set {name}",
        ) from None


async def send_request(service: Service, request, loads, timeout_ms: int, max_bytes: int):
    """Send *request* (``service_call.Request``) to *service*; return the ``ServiceResult``."""
    body = request.body
    place = authority(service.scheme, service.host, service.port)
    headers = [*request.headers, ("User-Agent", "clawlite"), ("Accept-Encoding", "identity")]
    try:
        head = http1.request(
            request.method, request.target, place, headers, None if body is None else len(body)
        )
    except ValueError as e:
        return refusal("no_credential", f"it cannot be sent: {e}", max_bytes)
    connection = Connection(
        service.scheme, service.host, service.port, [head, body or b""], CONNECT_MS
    )
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            status, kept, size = await _answer(connection, timeout_ms)
    except TimeoutError:
        return make_timeout(timeout_ms, max_bytes)
    except ProviderError as e:  # of the codec: here nobody is a provider
        return failure("unreachable", f"{service.name}: {e.message}", max_bytes)
    finally:
        connection.close()
    # a service may repeat what it refuses, and neither the device nor a model may read that
    said = without(request.secret, bytes(kept))
    return result_of(status, said, loads, max_bytes, size + len(said) - len(kept))


async def _answer(connection: Connection, timeout_ms: int) -> tuple:
    """Return (status, the first MAX_BODY bytes of the body, how many there were)."""
    response, status, kept, size = http1.Response(), 0, bytearray(), 0
    while True:
        event = response.next_event()
        if event is None:
            done, data = await connection.receive(timeout_ms)
            if not done:
                raise data
            response.feed(data) if data else response.at_end()
        elif event[0] == "head":
            status = event[1]
        elif event[0] == "data":
            size += len(event[1])
            kept += event[1][: MAX_BODY - len(kept)]
        else:
            return status, kept, size
