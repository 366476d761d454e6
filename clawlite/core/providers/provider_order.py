"""The providers of an agent, asked in their order (CKP 0.2.0, 5.2: in array order, none skipped).

``agent.providers`` in the image: 0 reflex, 1 replay, n >= 2 row n - 2 of PROVIDERS.  -1 at its end:
reflex rules come before all providers, and pass on the messages that no rule fits.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import TELL
from clawlite.core.base.errors import ProviderError, QuotaExceeded, TransientError
from clawlite.core.image.image import REFLEX, REPLAY

_LOADS = const(0)  # of the codecs
_DUMPS = const(1)
_NAME = const(0)  # of a row of the remote providers, and of what ``_provider`` returns
_PROVIDER = const(1)


class ProviderOrder:
    """All providers of one agent.

    setup   ``agent_setup.Setup``, which has been prepared
    """

    def __init__(self, setup):
        self._setup = setup
        self._image = setup.image
        self.loads = setup.codecs and setup.codecs[_LOADS]
        self._meter = setup.meter
        # a provider that was asked cannot work as it is configured, or none could answer
        self.broken = False
        # place -> (name, provider): a provider that is never reached is never loaded
        self._made = {}

    def ask(self, history):
        """A generator of effects that returns the first ``turn.Reply`` that a provider gives to
        *history*.

        Raises ``ProviderError`` (-32020) when none is left; ``QuotaExceeded`` (-32021) when only
        limits kept them from answering."""
        why, last, only_limits = [], None, True
        count = len(self._image.agent.providers)
        if self._setup.teach is not None and history.speaker is not None:
            reply = yield from self._setup.teach.reply(history)
            if reply:
                return reply
        if self._image.agent.providers[-1] == RULES:
            count -= 1
            reply = self._by_rules(history)
            if reply:
                return reply
        for place in range(history.answering, count):
            name, provider = self._at(place)
            try:
                if history.is_nested and name in _BUILTIN:
                    raise ProviderError("%s cannot follow the instruction of a skill" % name)
                reply = (
                    provider.reply(history)
                    if name in _BUILTIN
                    else (yield from provider.ask(history, self._meter))
                )
                if reply.stop == PASSES and place + 1 < count:
                    continue
                history.answering = place
                history.is_void = False
                if why and reply.stop == "abstains":
                    self.broken = True
                    if isinstance(last, TransientError) and last.hint:
                        yield (TELL, "no provider could answer - " + last.hint)
                return reply
            except ProviderError as e:
                history.progress = None
                why.append(e.message)
                last = e
                only_limits = only_limits and isinstance(e, QuotaExceeded)
                self.broken = self.broken or e.never
                # this question would be refused again in each later request
                history.is_void = history.is_void or e.refuses and len(history.turn) == 1
            if place + 1 < count and name not in _BUILTIN:
                # who waits and asks again now asks the next one
                is_told = last.hint and not isinstance(last, TransientError)
                hint = " - " + last.hint if is_told else ""
                yield (TELL, "%s%s; next: %s" % (last.message, hint, self._at(place + 1)[_NAME]))
        _fail(why, last, only_limits)

    def _by_rules(self, history):
        """Return the reply of the rules that come first, or None when the turn is not theirs."""
        turn, rules = history.turn, self._at(-1)[_PROVIDER]
        if len(turn) == 1 and not history.is_nested and rules.fits(turn[0].text):
            history.answering = RULES
        return rules.reply(history) if history.answering == RULES else None

    def text(self, prompt: str, most: int, place=None):
        """A generator of effects that returns the answer to *prompt* of the first remote provider
        that can give one.  It is for a tool, and is shown to nobody.

        most   tokens that the answer may have; the request is refused when a limit does not admit
               them
        place  place of the only provider to ask, or None
        Raises ``ProviderError``.
        """
        from clawlite.core.turns.history import History
        from clawlite.core.turns.turn import Message

        history = History(0)
        history.is_nested = True
        history.begin(Message("user", prompt))
        last = ProviderError(
            "this agent has no provider that a tool could ask",
            "add a provider to the manifest that is a model",
        )
        places = range(len(self._image.agent.providers)) if place is None else (place,)
        for place in places:
            name, provider = self._at(place)
            if name not in _BUILTIN:
                try:
                    return (yield from provider.ask(history, self._meter, most)).text
                except ProviderError as e:
                    last = e
        raise last

    def _at(self, place: int) -> tuple:
        if place not in self._made:
            self._made[place] = _provider(self._image.agent.providers[place], self._setup)
        return self._made[place]


def _fail(why: list, last, only_limits: bool):
    """Raise the error of a turn that no provider answers: *last*, when there is just one."""
    error = last
    if len(why) > 1:
        error = (QuotaExceeded if only_limits else ProviderError)(
            "no provider left: " + "; ".join(why), last.hint, last.data
        )
    if isinstance(last, QuotaExceeded):
        raise _add_hint(error, "raise that limit, or wait until its hour or day is over")
    if isinstance(last, TransientError):
        raise _add_hint(error, "wait, check that network and provider are up, and send it again")
    raise _add_hint(error, "check the provider's protocol, endpoint, limits and account")


def _add_hint(error, hint: str):
    """Return *error*, with *hint* if it has none."""
    error.hint = error.hint or hint
    return error


RULES = -1
LOCAL = "local"  # the scheme of what builtin:local asks (linux/local/provider.py)
PASSES = "passes"  # ``Reply.stop``: the next provider is asked; without one this is the answer
_LOCAL_API = const(100)  # of a row, as protocols/image/features.py has it
_API = const(1)
_BUILTIN = ("reflex", "replay")


def _provider(number: int, setup) -> tuple:
    """Return (name, provider)."""
    image = setup.image
    if number <= 0:
        from clawlite.core.providers.reflex import Reflex

        return "reflex", Reflex(image.section(REFLEX) or [])
    if number == 1:
        from clawlite.core.providers.replay import Replay

        return "replay", Replay(image.section(REPLAY))
    row = image.provider(number - 2)
    if setup.is_behind:
        from clawlite.core.providers.gateway import GatewayProvider

        return row[_NAME], GatewayProvider(
            row[_NAME], setup.codecs[_LOADS], setup.keep_bytes, row[_API] != _LOCAL_API
        )
    if row[_API] == _LOCAL_API:
        return row[_NAME], setup.make_local(row)
    from clawlite.core.providers.provider import Provider

    provider = Provider(
        row,
        setup.codecs[_LOADS],
        setup.codecs[_DUMPS],
        setup.keep_bytes,
        setup.guard and setup.guard.learn,
        setup.dialects,
        image,
        setup.repetition,
    )
    return provider.name, provider
