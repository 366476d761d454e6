"""One request of a device on its way: ``core.provider`` asks, its effects are carried out, what
comes becomes records (answer.py).
"""

import asyncio
import functools

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError, wrap_error
from clawlite.core.image.image import WIRE
from clawlite.core.policy.ledger import DAY_COST, DAY_TOKENS
from clawlite.core.providers.provider_order import LOCAL
from clawlite.core.turns.turn import Message
from clawlite.host.base.problems import error_sentence
from clawlite.host.gateway.answer import PIECE, Answer, json_bytes
from clawlite.host.gateway.http import Connection

KEPT = 32  # answers of one device, of 16,384 bytes each at most (core/providers/opaque.py)
_LOCAL = "local-"  # how ids begin that a device made
FLUSH_S = 0.06  # text is gathered for so long: a record has 75 bytes beside it


class Job(Answer):
    """One request of a provider.

    provider  ``provider.Provider``
    services  ``Services``
    limit     bytes of one record that the device takes
    keep      function(``turn.Reply``): it keeps what the device has no room for
    """

    def __init__(self, id: str, provider, services, moved, limit: int, keep):
        super().__init__(id, provider.name, moved)
        self._provider, self._services, self._limit = provider, services, limit
        self._keep_opaque = keep
        self._text = ""  # gathered, and in no record yet
        self._timer = None
        self._spent = []  # for the device's own ledger

    def start(self, history, most, ended, feeds=()) -> None:
        """Begin; *ended(job)* is called once at the end, unless it is cancelled.

        history  ``history.History``
        most     tokens of the answer, or None
        feeds    ``feeds.Feeds``, which come before the conversation
        """
        self._begin(functools.partial(self._run, history, most, feeds), ended)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        super().cancel()
        if self._timer:
            self._timer.cancel()

    async def _run(self, history, most, feeds) -> None:
        try:
            if feeds:
                told = Message("user", await feeds.text())
                history.preface = [told, Message("assistant", "I have read it.")]
            asked = self._provider.ask(history, self._services.meter, most)
            reply = await self._drive(asked)
            self._flush()
            self._result(reply)
        except ClawError as e:
            self._fail(e)
        except Exception as e:  # a bug: the device is told, the gateway goes on
            self._fail(wrap_error(e))

    async def _drive(self, asked):
        """Carry out the effects of *asked* until it returns."""
        connection, value = None, None
        try:
            while True:
                try:
                    effect = asked.send(value)
                except StopIteration as e:
                    return e.value
                value, kind = None, effect[E.KIND]
                if kind == E.OPEN:
                    _, scheme, host, port, parts, timeout_ms = effect
                    if scheme == LOCAL:
                        connection = _Asking(self._provider.submit, parts[0])
                    else:
                        parts = self._services.parts(parts)
                        connection = Connection(scheme, host, port, parts, timeout_ms)
                elif kind == E.RECEIVE:
                    _, timeout_ms = effect
                    value = await connection.receive(timeout_ms)
                elif kind == E.CLOSE:
                    connection.close()
                elif kind == E.WRITE:
                    self._write(effect[E.TEXT])
                elif kind == E.VOID:
                    self._void()
                elif kind == E.TELL:
                    self._tell(effect[E.TEXT])
                else:
                    value = await self._other(effect)
        finally:
            asked.close()
            if connection:
                connection.close()

    async def _other(self, effect: tuple):
        kind, what = effect
        if kind == E.SLEEP:
            await asyncio.sleep(what / 1000)
            return None
        if kind == E.SECRET:
            return await self._services.secret(what)
        if kind == E.STORE:
            self._spent += [entry for entry in what if entry[0] in (DAY_TOKENS, DAY_COST)]
            return True, await self._services.spend(what)
        raise AssertionError(f"a provider has no effect {kind}")

    # -- records

    def _tell(self, text: str) -> None:
        """Pass a notice on: to whoever runs the gateway once the answer's text has begun, because
        for the device another answer would begin.
        """
        if self.said:
            self._services.note(text)
        else:
            self._add("notice", text)

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
        self._pieces(text)

    def _result(self, reply) -> None:
        if reply.text and not reply.shown:  # what came in one piece goes down in pieces, too
            self._write(reply.text if reply.text.endswith("\n") else reply.text + "\n")
            self._flush()
        calls = [
            [id or "", name, raw or ("" if arguments is None else json_bytes(arguments).decode())]
            for id, name, arguments, raw in reply.calls
        ]
        result = {"stop": reply.stop}
        if calls:
            result["calls"] = calls
        if self._spent:
            result["spent"] = self._spent
        message = {"jsonrpc": "2.0", "id": self.id, "result": result}
        size = len(json_bytes(message))
        if size > self._limit:
            raise ProviderError(
                f"the answer's tool calls take {size} bytes, the device {self._limit}",
                "ask for less at once, or use another model",
            )
        self.outcome = "ok"
        self._keep_opaque(reply)
        self._keep(message)

    def _fail(self, e: ClawError) -> None:
        self._flush()
        self._error(e)


class _Asking:
    """What stands in the place of a connection to the local model.

    submit  function(what) -> future of (True, answer) or (False, ``ProviderError``)
    """

    def __init__(self, submit, what: dict):
        self._future = asyncio.wrap_future(submit(what))

    async def receive(self, _: int) -> tuple:
        return await self._future

    def close(self) -> None:
        self._future.cancel()


class Services:
    """What a provider of one device needs of the gateway.

    image   ``image.Image``
    meter   ``meter.Meter``
    find    function(secret's name) -> value; raises ``ClawError``; may block
    spend   coroutine function(entries): adds them to the meters, which last
    note    function(text) for who runs the gateway
    """

    def __init__(self, image, meter, find, spend, note):
        self._image, self.meter, self._find, self.spend, self.note = (
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
            self.note(error_sentence(e))
            return False, ProviderError(
                f"the gateway has no secret {name} that it can use",
                "see the output of clawlite gateway",
            )


class Opaque:
    """What the answers of one device's requests have for their own servers alone: signatures of
    thoughts, reasoning (core/providers/opaque.py).  A device sends its conversation without it.
    """

    def __init__(self):
        self._kept = {}  # calls of an answer -> (owner, opaque)

    def keep(self, reply) -> None:
        """Keep what *reply* (``turn.Reply``) has."""
        if reply.opaque and reply.calls:
            place = _place([(id, name, raw) for id, name, _, raw in reply.calls])
            self._kept.pop(place, None)
            self._kept[place] = reply.owner, reply.opaque
            if len(self._kept) > KEPT:
                self._kept.pop(next(iter(self._kept)))

    def restore(self, messages: list) -> None:
        """Give *messages* (``turn.Message``) back what was kept of them."""
        for message in messages:
            if message.calls:
                kept = self._kept.get(_place(message.calls))
                if kept:
                    message.owner, message.opaque = kept


def _place(calls: list) -> tuple:
    """Return what tells an answer with *calls*, [(id, name, raw), ...], from others."""
    return tuple(("" if id.startswith(_LOCAL) else id, name, raw) for id, name, raw in calls)
