"""One request of a device on its way: ``core.provider`` asks, its effects are carried out, what
comes becomes records.

Records stay until the request is forgotten: a device whose line broke says how many of them it has,
and gets the rest."""

import asyncio
import json

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError, unexpected
from clawlite.core.image.image import WIRE
from clawlite.core.policy.ledger import DAY_COST, DAY_TOKENS
from clawlite.host.gateway.http import Connection

PIECE = 512  # characters of text in one record
FLUSH_S = 0.06  # text is gathered for so long: a record has 75 bytes beside it


class Job:
    """One request.

    id        the device's
    provider  ``provider.Provider``
    services  ``Services``
    moved     function(), called when there are more records
    limit     bytes of one record that the device takes
    Public, to be read: ``records`` (bytes of each), ``is_done``, ``provider`` (its name), ``said``
    (text of the answer), ``outcome`` ("ok" or the error's sentence), ``ended_s`` (the loop's time,
    or None).  ``asked``: what the person said, by who keeps a history."""

    def __init__(self, id: str, provider, services, moved, limit: int):
        self.id, self.provider, self.records, self.said, self.outcome = (
            id,
            provider.name,
            [],
            "",
            None,
        )
        self.asked = ""
        self._provider, self._services, self._moved, self._limit = provider, services, moved, limit
        self._text = ""  # gathered, and in no record yet
        self._timer = None
        self._spent = []  # for the device's own ledger
        self._task = None
        self.ended_s = None

    @property
    def is_done(self) -> bool:
        return self.ended_s is not None

    def start(self, history, most, ended) -> None:
        """Begin; *ended(job)* is called once at the end, unless it is cancelled.

        history  ``history.History``
        most     tokens of the answer, or None
        """
        asked = self._provider.ask(history, self._services.meter, most)
        self._task = asyncio.get_running_loop().create_task(self._run(asked, ended))

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        if self._task:
            self._task.cancel()
        if self._timer:
            self._timer.cancel()

    async def _run(self, asked, ended) -> None:
        try:
            reply = await self._drive(asked)
            self._flush()
            self._result(reply)
        except ClawError as e:
            self._failed(e)
        except Exception as e:  # a bug: the device is told, the gateway goes on
            self._failed(unexpected(e))
        self.ended_s = asyncio.get_running_loop().time()
        self._moved()
        ended(self)

    async def _drive(self, asked):
        """Carry out the effects of *asked* until it returns."""
        connection, value = None, None
        try:
            while True:
                try:
                    effect = asked.send(value)
                except StopIteration as e:
                    return e.value
                value, kind = None, effect[0]
                if kind == E.OPEN:
                    connection = Connection(
                        effect[1], effect[2], effect[3], self._services.parts(effect[4]), effect[5]
                    )
                elif kind == E.RECEIVE:
                    value = await connection.receive(effect[1])
                elif kind == E.CLOSE:
                    connection.close()
                elif kind == E.WRITE:
                    self._write(effect[1]) if effect[1] else self._void()
                # after an answer: for the device another one would begin
                elif kind == E.TELL and not self.said:
                    self._add("notice", effect[1])
                else:
                    value = await self._other(effect)
        finally:
            asked.close()
            if connection:
                connection.close()

    async def _other(self, effect: tuple):
        if effect[0] == E.SLEEP:
            await asyncio.sleep(effect[1] / 1000)
            return None
        if effect[0] == E.SECRET:
            return await self._services.secret(effect[1])
        if effect[0] == E.STORE:
            self._spent += [entry for entry in effect[1] if entry[0] in (DAY_TOKENS, DAY_COST)]
            return True, await self._services.spend(effect[1])
        raise AssertionError(f"a provider has no effect {effect[0]}")

    # -- records

    def _void(self) -> None:
        """The answer broke off: the notice that follows says so, and voids what the device has
        shown of it.
        """
        self._flush()
        self.said = ""

    def _write(self, text: str) -> None:
        self._text += text
        self.said += text
        if len(self._text) >= PIECE:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        text, self._text = self._text, ""
        for at in range(0, len(text), PIECE):
            self._add("text", text[at : at + PIECE])

    def _add(self, name: str, text: str) -> None:
        self._keep(
            {
                "jsonrpc": "2.0",
                "method": "claw.gateway." + name,
                "params": {"id": self.id, "text": text},
            }
        )

    def _keep(self, message: dict) -> None:
        self.records.append(dumped(message))
        self._moved()

    def _result(self, reply) -> None:
        if reply.text and not reply.shown:  # what came in one piece goes down in pieces, too
            self._write(reply.text if reply.text.endswith("\n") else reply.text + "\n")
            self._flush()
        calls = [
            [id or "", name, raw or ("" if arguments is None else dumped(arguments).decode())]
            for id, name, arguments, raw in reply.calls
        ]
        result = {"stop": reply.stop}
        if calls:
            result["calls"] = calls
        if self._spent:
            result["spent"] = self._spent
        message = {"jsonrpc": "2.0", "id": self.id, "result": result}
        size = len(dumped(message))
        if size > self._limit:
            raise ProviderError(
                f"the answer's tool calls take {size} bytes, the device {self._limit}"
            )
        self.outcome = "ok"
        self._keep(message)

    def _failed(self, e: ClawError) -> None:
        self._flush()
        self.outcome = e.message
        self._keep(
            {"jsonrpc": "2.0", "id": self.id, "error": {"code": e.code, "message": shown(e)}}
        )


class Services:
    """What a provider of one device needs of the gateway.

    image   ``image.Image``
    meter   ``meter.Meter``
    find    function(secret's name) -> value; raises ``ClawError``; may block
    spend   coroutine function(entries): adds them to the meters, which last
    note    function(text) for who runs the gateway
    """

    def __init__(self, image, meter, find, spend, note):
        self._image, self.meter, self._find, self.spend, self._note = (
            image,
            meter,
            find,
            spend,
            note,
        )

    def parts(self, parts: list) -> list[bytes]:
        """Return the bytes of *parts* (effect OPEN)."""
        return [
            part if isinstance(part, bytes) else self._image.part(WIRE, part[0], part[1])
            for part in parts
        ]

    async def secret(self, name: str) -> tuple:
        """Return (True, value), or (False, ``ClawError``)."""
        try:
            return True, await asyncio.get_running_loop().run_in_executor(None, self._find, name)
        except ClawError as e:
            self._note(shown(e))
            return False, ProviderError(
                f"the gateway has no secret {name} that it could use", "it says more where it runs"
            )


def shown(e: ClawError) -> str:
    """Return the sentence that the device shows."""
    return f"{e.message} - {e.hint}" if e.hint else e.message


def dumped(value) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
