"""A remote provider that a gateway calls for this device (docs/gateway.md): the device sends the
conversation, and receives text and tool calls.

The gateway has the key, the network, the limits and the codec (core/providers/provider.py runs
there).  Its answers are checked here, as untrusted input.
"""

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE, STORE, TELL, VOID, WRITE
from clawlite.core.base.errors import ParseError, ProviderError
from clawlite.core.turns.turn import MAX_CALLS, Reply

GATEWAY = "gateway"  # the scheme in OPEN
_METERS = (".day", ".cost")  # DAY_TOKENS, DAY_COST of ledger.py, whose code nothing here needs
# a gateway reports each failed attempt, which may connect, wait for an answer, and pause
SILENCE_MS = 150000


class GatewayProvider:
    """One provider of the image, as the device sees it.

    name   str, the name of the provider in the image
    loads  the shell's JSON decoder
    keep   about how many bytes of an answer the conversation remembers
    texts  bool, it writes texts: builtin:local does not, and is asked by people's messages alone

    The effect OPEN has the scheme GATEWAY, this name in place of a host, the limit of tokens of the
    answer (0: what is left) in place of a port, ``turn.Message`` objects as its parts, and in place
    of a time who speaks (``History.speaker``), for the one that may ask back.  RECEIVE returns one
    of: str, a piece of the answer's text; [str], a notice; dict, the result, which comes last.
    """

    def __init__(self, name: str, loads, keep: int, texts: bool = True):
        self.name = name
        self._loads = loads
        self._keep = keep
        self._texts = texts

    def ask(self, history, meter, most=None):
        """A generator of effects that returns a ``Reply``; arguments and errors are those of
        ``provider.Provider.ask``.

        meter  keeps the amounts that rules of the device ask for; may be None
        """
        if history.is_nested and not self._texts:
            raise ProviderError(
                "%s calls tools, and writes no text" % self.name, "declare one more provider"
            )
        speaker = 0 if self._texts else history.speaker
        yield (OPEN, GATEWAY, self.name, most or 0, history.context(), speaker)
        try:
            reply, spent = yield from self._receive(not history.is_nested)
        except Exception:  # also MemoryError
            yield (CLOSE,)
            raise
        yield (CLOSE,)
        if spent and meter is not None:
            yield (STORE, spent)
        return reply

    def _receive(self, is_shown: bool):
        said, shown, count = bytearray(), False, 0
        while True:
            done, event = yield (RECEIVE, SILENCE_MS)
            if is_shown and count and (not done or isinstance(event, list)):
                yield (VOID, count)
                count = 0
            if not done:
                if not event.message.startswith("provider "):
                    event.message = "provider %s: %s" % (self.name, event.message)
                raise event
            if isinstance(event, str):
                shown = True
                count += len(event)
                if len(said) < self._keep:
                    said.extend(event.encode())
                if is_shown:
                    yield (WRITE, event)
            elif isinstance(event, list):
                said = bytearray()  # another attempt starts again
                yield (TELL, event[0])
            else:
                calls, stop, spent = self._result(event)
                # the gateway adds a line end when the answer had none
                end = len(said) - 1 if said[-1:] == b"\n" else len(said)
                return Reply(str(memoryview(said)[:end], "utf-8"), calls, shown, stop), spent

    def _result(self, result: dict) -> tuple:
        """Return (calls, stop, entries for the ledger).  Raises ``ProviderError`` when *result* is
        malformed.
        """
        calls, stop, spent = (
            result.get("calls", []),
            result.get("stop", ""),
            result.get("spent", []),
        )
        good = (
            isinstance(stop, str)
            and isinstance(calls, list)
            and isinstance(spent, list)
            and len(calls) <= MAX_CALLS
            and len(spent) <= 2
        )
        for call in calls if good else ():
            good = (
                good
                and isinstance(call, list)
                and [isinstance(part, str) for part in call] == [True, True, True]
            )
        for entry in spent if good else ():
            good = (
                good
                and isinstance(entry, list)
                and len(entry) == 3
                and entry[0] in _METERS
                and _counts(entry[1:])
            )
        if not good:
            raise ProviderError(
                "the gateway's answer is malformed", "give both the same version of clawlite"
            )
        return [(id, name, self._arguments(raw), raw) for id, name, raw in calls], stop, spent

    def _arguments(self, raw: str):
        try:
            arguments = self._loads(raw.encode())
        except ParseError:
            return None
        return arguments if isinstance(arguments, dict) else None


def _counts(values: list) -> bool:
    for value in values:
        if not isinstance(value, int) or value is True or value is False or value < 0:
            return False
    return True
