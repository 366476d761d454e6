"""One device of a gateway: what it asks, whatever wire it comes over, and however often that
breaks.

1. A device is known by its name: the id of its port, or that of its token.  The wire under it is a
   *link*.
2. It says which image it runs, and a number of its boot.  Another boot: nobody waits for what was
   asked before, that ends.
3. A request is known by its id.  One that comes again, after the link broke, is not asked again:
   what is missing is sent.
4. Answers are kept for KEPT_S, the last KEPT of them.
5. When a device is away for AWAY_S, its calls of tools end: whoever waited for them has most likely
   gone.
"""

import asyncio
import json
import time

from clawlite.core.base.errors import ClawError, InvalidRequest, ProviderError
from clawlite.core.image.image import STOPPED_WITH, SWARM
from clawlite.core.line.gateway_records import make_note
from clawlite.core.policy.ledger import count_use
from clawlite.core.policy.meter import Meter
from clawlite.core.providers.provider import Provider
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message
from clawlite.host.base.problems import client_sentence
from clawlite.host.board_console.line import the_time
from clawlite.host.gateway.answer import json_bytes
from clawlite.host.gateway.feeds import Feeds
from clawlite.host.gateway.job import Job, Opaque, Services
from clawlite.host.gateway.service_calls import ToolJob
from clawlite.host.gateway_channels.relays import METHODS, is_carried
from clawlite.protocols.image.features import LOCAL_API
from clawlite.protocols.mcp.mcp_client import OUTCOME_UNKNOWN
from clawlite.protocols.providers.repetition import Repetition
from clawlite.protocols.swarm.swarm import Swarm

VERSION = 1  # of the records, docs/gateway.md
KEPT, KEPT_S = 8, 600  # answers that are done; seconds
MAX_ID = 64  # characters of a request's id
AWAY_S = 60  # until the calls of a device that does not come back are cancelled
RUNNING = 4  # requests of one device at once
AHEAD = 2048  # bytes that wait for the link before more records go to it
MAX_ASKED = 1 << 20  # bytes of a request's conversation
# bytes of an answer that a provider holds; what the device remembers of it is its own
_KEEP = 65536
# after which a device is told again that nobody has read yet whether its swarm is stopped
_STOP_READ_S = 60.0
_RECORD = (1024, 1 << 20)  # how long a record it may take
_API = 1  # of a row of PROVIDERS
MAX_SPEAKER = 128  # characters of a person's name
_PREFIX = "claw.gateway."
_OF_MEMBERS = [_PREFIX + name for name in ("member", "begins", "report", "swarm")]


class _Result:
    """What a codec asks of a tool's result."""

    def __init__(self, is_error: bool):
        self.is_error = is_error


class Device:
    """One device.

    name     str
    gateway  ``gateway.Gateway``: images, store, codecs and secrets
    Public, to be read: ``agent`` (its agent's name, or ""), ``is_up``.
    """

    def __init__(self, name: str, gateway):
        self.name, self.agent = name, ""
        self._gateway = gateway
        self._link = self._image = self._boot = self._meter = None
        self._opaque = Opaque()
        self._stop_of = None  # the swarm whose stop holds for it, as its image says
        self._digest = self._calls_itself = None  # its image's, and its agent, as it says
        self._record = 0
        self._is_greeted = False  # over this link
        self._providers = {}  # name -> Provider
        self._feeds = None  # ``feeds.Feeds`` of its image, once it has asked
        self._jobs = {}  # id -> Job, the oldest first
        self._sent = {}  # id -> records of it that went over this link
        self._asked = {}  # id -> [messages, bytes] of requests that are still coming
        self._spent = {}  # what it has used, as core.ledger has it
        self._away: asyncio.TimerHandle | None = None  # until its calls are cancelled

    @property
    def is_up(self) -> bool:
        return self._link is not None

    # -- the link

    def connect(self, link) -> None:
        """A link stands: ask who is there.  *link* has ``send(record)``, ``waiting``."""
        self._link, self._sent, self._is_greeted = link, {}, False
        if self._away is not None:
            self._away.cancel()
            self._away = None
        link.send(json_bytes({"id": "hello", **make_note("hello", {"version": VERSION})}))

    def disconnect(self) -> None:
        """The link is gone; what is under way goes on."""
        if self._link and self._is_greeted:
            self._gateway.note_left(self, self._digest)
        self._link = None
        self._sent, self._asked = {}, {}
        if self._away is None:
            self._away = asyncio.get_running_loop().call_later(AWAY_S, self._end_calls)
        self._gateway.members.note_away(self.name)
        self._gateway.relays.note_away(self.name)
        self._gateway.people.note_away(self.name)

    def _end_calls(self) -> None:
        self._away = None
        for job in list(self._jobs.values()):
            if isinstance(job, ToolJob) and not job.is_done:
                why = f"the call was cancelled, because {self.name} was away for {AWAY_S} s"
                job.give_up(ClawError(why, OUTCOME_UNKNOWN))
                self._end_call(job)

    def close(self) -> None:
        """End all that is under way."""
        if self._away is not None:
            self._away.cancel()
        for job in self._jobs.values():
            job.cancel()

    def pump(self) -> None:
        """Hand on what the link has room for."""
        for id, at in list(self._sent.items()):
            records = self._jobs[id].records
            while at < len(records) and self._link and self._link.waiting < AHEAD:
                self._link.send(records[at])
                at += 1
            self._sent[id] = at

    # -- from the device

    def record(self, data: bytes) -> bool:
        """Take a record; return False when it is none for a gateway."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(message, dict):
            return False
        if message.get("id") == "hello" and "method" not in message:
            if not self._is_greeted:
                self._is_greeted = True
                self._take_greeting(message.get("result"))
            return True
        method, params = message.get("method"), message.get("params")
        if method == "claw.clock":
            self._link.send(the_time())
            return True
        if not isinstance(method, str) or not method.startswith(_PREFIX):
            return False
        if not isinstance(params, dict):
            params = {}
        if method == _PREFIX + "provider" and _is_id(message.get("id")):
            self._request(message["id"], params, self._begin)
        elif method == _PREFIX + "tool" and _is_id(message.get("id")):
            self._request(message["id"], params, self._call)
        elif method == _PREFIX + "message":
            self._message(params)
        elif method == _PREFIX + "cancel" and _is_id(params.get("id")):
            self._forget(params["id"])
            if _is_id(message.get("id")):
                self._link.send(json_bytes({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
        elif method == _PREFIX + "answer" and _is_id(params.get("id")):
            job = self._jobs.get(params["id"])
            if isinstance(job, ToolJob):
                job.take_answer(params)
        elif method.removeprefix(_PREFIX) in METHODS:
            self._gateway.relays.take(self.name, method.removeprefix(_PREFIX), params)
        elif method in _OF_MEMBERS:
            self._take_member(method, params)
        elif method == _PREFIX + "operator":
            self._gateway.people.take(self.name, params)
        elif message.get("id") is not None:
            said = f"{method[:60]}: expected {_PREFIX}provider or tool, and an id of at most "
            error = {"code": -32601, "message": f"{said}{MAX_ID} characters"}
            self._link.send(json_bytes({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        return True

    def _take_greeting(self, told) -> None:
        """Take the device's answer to the hello; one without a gateway in its image has none."""
        boot, digest = (
            (told.get("boot"), told.get("image")) if isinstance(told, dict) else (None, None)
        )
        if (
            not isinstance(boot, str)
            or not isinstance(digest, str)
            or told.get("version") != VERSION
        ):
            self._gateway.note(
                f"{self.name}: does not use a gateway"
                if not isinstance(told, dict)
                else f"{self.name}: speaks version {told.get('version')} of these "
                f"records, this gateway {VERSION}"
            )
            return
        self._record = _between(told.get("record"), _RECORD)
        if boot != self._boot:
            self._forget_all()
            self._gateway.members.forget(self.name)
        self._boot, self._digest, self._calls_itself = boot, digest[:64], str(told.get("agent"))
        self._identify()
        if self._image and self._image.size_of(SWARM) and self._stop_of and not told.get("joins"):
            self._expect_member(self._stop_of)
        self._gateway.note_greeting(self, self._digest, None if self._image else self._refusal())
        if self._image and is_carried(self._image):
            self._gateway.relays.note_here(self.name, self._digest)
        if self._image and told.get("operators") is True:
            self._gateway.people.note_here(self.name, self._image)

    def _forget_all(self) -> None:
        """End what was asked before: nobody waits for it."""
        for id in list(self._jobs):
            self._forget(id)
        self._providers, self._meter, self._feeds = {}, None, None

    def _identify(self) -> None:
        """Find the image that the device runs: no other has a say."""
        image = self._gateway.images.find(self._digest) if self._digest else None
        if image is not self._image:
            self._forget_all()
        self._image = image
        self.agent = image.agent.name if image else ""
        self._stop_of = image.section(STOPPED_WITH) if image else None
        if image and image.size_of(SWARM):
            swarm = Swarm(image.section(SWARM))
            self._stop_of = swarm.name if swarm.is_shared else None
        if self._stop_of:
            self.tell_stop(self._stop_of)

    def tell_stop(self, swarm: str) -> None:
        """Tell the device whether *swarm* is stopped, when its image names that one."""
        if swarm == self._stop_of and self._link and self._is_greeted:
            why, hint, known = self._gateway.stops.status(swarm)
            self.deliver("stop", {"text": why, "hint": hint, "known": known})

    def deliver(self, name: str, params: dict) -> str:
        """Send a record of a swarm to the device, where it is there; return why it cannot take it,
        or "".
        """
        record = json_bytes(make_note(name, params))
        if len(record) > self._record:
            return f"its record takes {len(record)} bytes, and the device takes {self._record}"
        if self._link and self._is_greeted:
            self._link.send(record)
        return ""

    def _expect_member(self, swarm: str, *pause_s: float) -> None:
        self._gateway.members.expect(self.name, lambda: self.tell_stop(swarm), *pause_s)

    def _take_member(self, method: str, params: dict) -> None:
        """Take what the device says as a member of its swarm."""
        members, id = self._gateway.members, params.get("id")
        if self._image is None or not self._image.size_of(SWARM):
            return
        if method == _PREFIX + "member":
            if self._stop_of is None or self._gateway.stops.is_read(self._stop_of):
                members.confirm(self.name, self._digest)
            else:  # It would refuse its first task.  It answers again when the state is known.
                self._expect_member(self._stop_of, _STOP_READ_S)
        elif isinstance(id, str) and method == _PREFIX + "begins":
            members.ask_to_begin(self.name, id)
        elif isinstance(id, str) and method == _PREFIX + "swarm":
            members.ask_swarm(self.name, id, params.get("method"), params.get("params"))
        elif isinstance(id, str):
            said = [params.get(field) for field in ("status", "text", "error")]
            members.report(self.name, id, *said)

    def _refusal(self) -> ProviderError:
        if not self._digest:
            return ProviderError(
                "this device has not said which image it runs",
                "flash the device again with this version of clawlite",
            )
        return self._gateway.images.refusal(
            self._digest, self._calls_itself, self._gateway.port_of(self)
        )

    def _message(self, params: dict) -> None:
        """Take a message of a request's conversation, or more of the last one."""
        id, text, call = params.get("id"), params.get("text"), params.get("call")
        if not _is_id(id) or not isinstance(text, str) or id in self._jobs:
            return  # of one that is known already
        if id not in self._asked and len(self._asked) >= RUNNING:
            self._asked.pop(next(iter(self._asked)))
        messages, size = self._asked.get(id, ([], 0))
        size += len(text) + 64
        self._asked[id] = messages, size
        if size > MAX_ASKED:
            return
        if params.get("role") in ("user", "assistant", "tool"):
            of = params.get("of")
            messages.append(
                Message(
                    params["role"],
                    text,
                    [],
                    of if isinstance(of, str) else "",
                    "",
                    _Result(params.get("failed") is True),
                )
            )
        elif (
            isinstance(call, list)
            and len(call) == 2
            and messages
            and all(isinstance(part, str) for part in call)
        ):
            messages[-1].calls.append((*call, text))
        elif messages and messages[-1].calls:
            id, name, raw = messages[-1].calls[-1]
            messages[-1].calls[-1] = (id, name, raw + text)
        elif messages:
            messages[-1].text += text

    def _request(self, id: str, params: dict, begin) -> None:
        messages, size = self._asked.pop(id, ([], 0))
        seen = params.get("seen")
        seen = seen if type(seen) is int and seen > 0 else 0
        if id in self._jobs:
            self._sent[id] = min(seen, len(self._jobs[id].records))
            self.pump()
            return
        is_again = seen > 0 or params.get("again") is True  # it may have run
        try:
            if is_again:
                hint = OUTCOME_UNKNOWN if begin == self._call else "send it again"
                raise ProviderError(
                    "the gateway was restarted and no longer knows this request", hint
                )
            if self._image is None:
                self._identify()  # it may be known meanwhile
            if self._image is None:
                raise self._refusal()
            if sum(not job.is_done for job in self._jobs.values()) >= RUNNING:
                raise InvalidRequest(
                    f"{RUNNING} requests of this device are under way already",
                    "wait for one to end",
                )
            begin(id, params, messages, size)
        except ClawError as e:
            error = {"code": e.code, "message": client_sentence(e)}
            if not is_again:
                error["data"] = {"ran": False}
            self._link.send(json_bytes({"jsonrpc": "2.0", "id": id, "error": error}))

    def _begin(self, id: str, params: dict, messages: list, size: int) -> None:
        if size > MAX_ASKED or not messages or messages[0].role != "user":
            raise InvalidRequest(
                f"expected a conversation of at most {MAX_ASKED} bytes that begins with a person"
            )
        provider = self._provider(str(params.get("provider")))
        most = params.get("max_tokens")
        job = Job(id, provider, self._services(), self.pump, self._record, self._opaque.keep)
        self._jobs[id], self._sent[id] = job, 0
        self._gateway.note_begin(self, job, messages)
        self._opaque.restore(messages)
        most = most if type(most) is int and most > 0 else None
        history = _history(messages)
        history.speaker = _read_speaker(params.get("speaker"))
        fed = (
            self._get_feeds() if isinstance(provider, Provider) else ()
        )  # another one reads no texts
        job.start(history, most, self._end_request, fed)

    def _get_feeds(self) -> Feeds:
        if self._feeds is None:
            agent = self._image.agent.name
            secret = lambda name: self._gateway.secret(agent, name)
            self._feeds = Feeds(self._image, self.name, self._gateway.codecs, secret)
        return self._feeds

    def _call(self, id: str, params: dict, messages: list, size: int) -> None:
        """Call the tool of a service: its arguments came as a message."""
        job = ToolJob(id, params, self.pump, lambda record: self._tell(id, record), self._record)
        self._jobs[id], self._sent[id] = job, 0
        self._gateway.store.event(self.name, "tool.began", request=id, tool=job.provider)
        agent = self._image.agent.name
        job.start(
            self._image,
            self.name,
            messages[0].text if messages and size <= MAX_ASKED else "",
            self._gateway.codecs,
            self._gateway.servers,
            lambda name: self._gateway.secret(agent, name),
            self._end_call,
        )

    def _tell(self, id: str, record: dict) -> None:
        """Send what may be lost about request *id*: to a device that waits for it, on a line that
        has room.
        """
        data = json_bytes(record)
        if self._link and id in self._sent and len(data) <= self._record:
            if self._link.waiting < AHEAD:
                self._link.send(data)

    def _end_call(self, job) -> None:
        self._gateway.note_call(self, job)
        self._end(job)

    def _provider(self, name):
        if name not in self._providers:
            rows = [
                self._image.provider(number - 2)
                for number in self._image.agent.providers
                if number >= 2
            ]
            row = next((row for row in rows if row[0] == name), None)
            if row is None:
                raise ProviderError(
                    "the image has no such provider", "flash the device again: it has another image"
                )
            known = self._gateway.store.dialects
            self._providers[name] = (
                self._make_local(row)
                if row[_API] == LOCAL_API
                else Provider(
                    row, *self._gateway.codecs, _KEEP, None, known, self._image, Repetition
                )
            )
        return self._providers[name]

    def _make_local(self, row: list):
        """Return the local model of *row*; its engine starts with the first sentence."""
        if self._gateway.models is None:
            raise ProviderError(
                "this gateway has no local model: it runs on Linux alone",
                "start the gateway on a Raspberry Pi or another Linux",
            )
        order = [number for number in self._image.agent.providers if number >= 0]
        last = self._image.provider(order[-1] - 2) if order[-1] >= 2 else None
        return self._gateway.models.make_provider(self._image, row, last == row)

    def _services(self) -> Services:
        info = self._image.agent
        if self._meter is None:
            self._spent = self._gateway.store.meters(self.name, info.name)
            self._meter = Meter(
                _clock, lambda: self._spent, info.tokens_per_hour, info.cost_per_day, info.rates
            )
        return Services(
            self._image,
            self._meter,
            lambda name: self._gateway.secret(info.name, name),
            self._spend,
            lambda text: self._gateway.note(f"{self.name}: {text}"),
        )

    async def _spend(self, entries: list) -> bool:
        """Carry out the effect STORE."""
        count_use(self._spent, entries)
        await self._gateway.store.spend(self.name, self._image.agent.name, self._spent)
        return True

    def _end_request(self, job) -> None:
        self._gateway.note_end(self, job)
        self._end(job)

    def _end(self, job) -> None:
        self._tidy()
        asyncio.get_running_loop().call_later(KEPT_S, self._tidy)

    def _tidy(self) -> None:
        """Forget answers that nobody asks for any more."""
        now = asyncio.get_running_loop().time()
        done = sorted(
            (job for job in self._jobs.values() if job.is_done), key=lambda job: job.ended_s
        )
        for old in done[:-KEPT] + [job for job in done[-KEPT:] if now - job.ended_s >= KEPT_S]:
            self._jobs.pop(old.id)
            self._sent.pop(old.id, None)

    def _forget(self, id: str) -> None:
        """Nobody waits for request *id* any more."""
        self._asked.pop(id, None)
        job = self._jobs.pop(id, None)
        self._sent.pop(id, None)
        if job and not job.is_done:
            job.cancel()
            job.outcome = "cancelled: nobody waits for it"
            (self._gateway.note_call if isinstance(job, ToolJob) else self._gateway.note_end)(
                self, job
            )


def _history(messages: list) -> History:
    """Return the conversation as whole turns."""
    history = History(MAX_ASKED * 2)
    for message in messages:
        if message.role == "user":
            history.begin(message)
        else:
            history.turn.append(message)
    return history


def _read_speaker(told):
    """Return who speaks, as ``History.speaker`` has it."""
    if not isinstance(told, list) or len(told) != 2 or not isinstance(told[0], str):
        return None
    return (told[0][:MAX_SPEAKER], told[1] is True)


def _is_id(value) -> bool:
    return isinstance(value, str) and len(value) <= MAX_ID


def _between(value, bounds: tuple) -> int:
    least, most = bounds
    return min(max(value, least), most) if type(value) is int else least


def _clock() -> tuple:
    return time.monotonic_ns() // 1000000, int(time.time())
