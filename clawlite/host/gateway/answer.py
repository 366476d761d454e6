"""What comes back to a device for one request, as records.

Records stay until the request is forgotten: a device whose line broke says how many of them it has,
and gets the rest."""

import asyncio
import json

from clawlite.core.base.errors import ClawError, QuotaExceeded
from clawlite.core.line.gateway_records import make_note
from clawlite.host.base.problems import client_sentence, error_sentence

PIECE = 512  # characters of text in one record


class Answer:
    """The answer to one request.

    id        the device's
    provider  its name, or the name of the tool that is called
    moved     function(), called when there are more records
    Public, to be read: ``records`` (bytes of each), ``is_done``, ``said`` (text of the answer),
    ``outcome`` ("ok" or the error's sentence), ``ended_s`` (the loop's time, or None).
    ``asked`` is what was asked; whoever keeps a history sets it."""

    def __init__(self, id: str, provider: str, moved):
        self.id, self.provider, self.records, self.said, self.outcome = id, provider, [], "", None
        self.asked = ""
        self.ended_s = None
        self._moved = moved
        self._task = None

    @property
    def is_done(self) -> bool:
        return self.ended_s is not None

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        if self._task:
            self._task.cancel()

    def _begin(self, work, ended) -> None:
        """Run the coroutine function *work*, which must not raise; *ended(self)* is called once at
        its end, unless it is cancelled.
        """
        self._task = asyncio.get_running_loop().create_task(self._until(work, ended))

    async def _until(self, work, ended) -> None:
        # called here: a coroutine that was made earlier would never be awaited when the task is
        # cancelled before it starts
        await work()
        self.ended_s = asyncio.get_running_loop().time()
        self._moved()
        ended(self)

    def _pieces(self, text: str) -> None:
        for at in range(0, len(text), PIECE):
            self._add("text", text[at : at + PIECE])

    def _add(self, name: str, text: str) -> None:
        self._keep(make_note(name, {"id": self.id, "text": text}))

    def _keep(self, message: dict) -> None:
        self.records.append(json_bytes(message))
        self._moved()

    def _error(self, e: ClawError) -> None:
        self.outcome = error_sentence(e)
        error = {"code": e.code, "message": client_sentence(e)}
        if isinstance(e, QuotaExceeded) and e.data:
            error["data"] = e.data
        self._keep({"jsonrpc": "2.0", "id": self.id, "error": error})


def json_bytes(value) -> bytes:
    """Return *value* as compact JSON in UTF-8; a lone surrogate becomes ``?``."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
