"""The stores that the agents of a swarm on an engine share (CKP 5.9, ``shared-memory``): one agent
keeps them, and the requests of the others travel as entries of the engine's log (docs/adr/0130).

    remember     id, store, part, verb, details     of who asks
    remembered   id, whether it was done, value     of the keeper

1. The keeper is the first process that is there of the member that leads, or is first in the
   manifest.  Its file is that of a swarm on one machine; its own requests go there directly.
2. A request is carried out in the order of the log.  Who asks hears within ``ANSWER_MS`` what
   became of it, or that this is not known: a request with an id may then be sent again, because it
   counts once (9.3.4).  A request without an id gets one, for the same reason.
3. A keeper that is started again carries out what was asked less than ``ANSWER_MS`` ago.
4. A request that is made before this process has read the whole log waits until it has.
"""

from typing import Any

from clawlite.core.base import errors
from clawlite.core.base.errors import ClawError, InvalidParams, StoreError
from clawlite.core.memory.conversation import TOO_LONG
from clawlite.linux.swarm.bus import TooLong

ANSWER_MS = 30000
MOST = 4096  # requests of others that are not answered
_ID = 16  # characters
_NUMBER, _VERB, _STORE, _PART, _DETAILS = range(1, 6)  # of the effect REMEMBER
_COUNTS = ("oldest", "compact", "lacking")  # verbs whose details are a number, or None
_LISTS = {"store": (2, 3), "query": (4,), "replace": (2,)}  # verb -> how many details it may have
_ERRORS = {
    cls.code: cls for cls in (InvalidParams, StoreError, errors.QueryFailed, errors.InternalError)
}


class SharedStores:
    """One process' way to them.

    agent      ``agent.Agent``
    swarm      ``swarm.Swarm``;  bus: ``ReplicatedBus``
    carry_out  function(effect, on_end): as ``Memory.carry_out``
    now_ms     function -> monotonic ms
    draw       function(count) -> that many random bytes
    """

    def __init__(self, agent, swarm, bus, carry_out, now_ms, draw):
        self._agent, self._swarm, self._bus = agent, swarm, bus
        self._carry_out, self._now_ms, self._draw = carry_out, now_ms, draw
        self._held = []  # (effect, when it is given up), until all that is on record has come
        self._asked = {}  # id -> (number of the agent's task, when it is given up)
        self._unanswered = {}  # id -> (process that asks, ms since 1970, store, ..., details)
        bus.subscribe(stores=self)

    def carry_out(self, effect: tuple) -> bool:
        """Carry a REMEMBER effect out, unless its store is this agent's own, or it is the keeper:
        return False then.
        """
        if effect[_STORE].name not in self._swarm.shares:
            return False
        if not self._is_known():
            self._held.append((effect, self._now_ms() + ANSWER_MS))
            return True
        try:
            keeper = self._bus.keeper_of_stores()
            if keeper == self._bus.process:
                return False
            if not keeper:
                raise StoreError(
                    "the stores of the swarm %s are kept by %s, which is not there"
                    % (self._swarm.name, self._bus.keeper),
                    "start it, and send this again",
                )
            self._ask(effect)
        except TooLong:
            why = "the request is longer than an entry of the swarm's engine"
            self._end(effect[_NUMBER], (False, InvalidParams(why, "store less at once")))
        except ClawError as e:
            self._end(effect[_NUMBER], (False, StoreError(e.message, e.hint)))
        return True

    def deadline(self):
        """Return the monotonic time of the next ``poll`` that matters, or None."""
        return min([due_ms for _, due_ms in (*self._asked.values(), *self._held)], default=None)

    def poll(self):
        """Give up requests that were not answered in time, send those that had to wait, and, as
        the keeper, carry out those of others.
        """
        now = self._now_ms()
        for id, (number, due_ms) in list(self._asked.items()):
            if now >= due_ms:
                del self._asked[id]
                self._end(number, (False, self._unknown("it has not answered")))
        held, self._held = self._held, []
        for effect, due_ms in held:
            if now >= due_ms:
                why = "the swarm's engine did not say in time what is on record"
                self._end(effect[_NUMBER], (False, StoreError(why, "send this again")))
            elif not self._is_known():
                self._held.append((effect, due_ms))
            elif not self.carry_out(effect):
                self._carry_out(effect)
        if self._unanswered and self._is_keeper():
            for id in list(self._unanswered):
                process, at_ms, *request = self._unanswered.pop(id)
                is_late = self._bus.wall_ms() - at_ms >= ANSWER_MS
                if self._bus.is_there(process) and not is_late:
                    self._answer(id, *request)

    def _is_known(self) -> bool:
        """Return whether a request can be sent or refused now: this process has read the whole log,
        or knows why it cannot.  One that may be the keeper has to find itself in the log, too.
        """
        is_own = self._bus.is_synced and self._swarm.own.identity == self._bus.keeper
        return self._bus.is_known() and (not is_own or self._bus.is_there(self._bus.process))

    def _is_keeper(self) -> bool:
        try:
            return self._bus.keeper_of_stores() == self._bus.process
        except ClawError:  # the engine is away
            return False

    # -- what the log says; an entry of another form is passed over

    def remember(self, process: str, at_ms: int, id, *request):
        """*process* has asked.  Processes of the agent that keeps the stores note it, because each
        of them may be the next keeper.
        """
        if process == self._bus.process or self._swarm.own.identity != self._bus.keeper:
            return
        is_new = isinstance(id, str) and len(id) == _ID and id not in self._unanswered
        if is_new and len(self._unanswered) < MOST:
            self._unanswered[id] = (process, at_ms, *request)

    def remembered(self, id, is_done, value):
        """The keeper has answered."""
        if not isinstance(id, str):
            return
        self._unanswered.pop(id, None)
        number, _ = self._asked.pop(id, (None, None))
        if number is not None:
            self._end(number, (True, value) if is_done else (False, _error(value)))

    # -- the keeper

    def _answer(self, id: str, name, part, verb, details):
        stores = self._agent.setup.memories().stores if self._agent.setup.memories else ()
        store = next((one for one in stores if one.name == name), None)
        is_shared = store is not None and name in self._swarm.shares
        if not is_shared or not _is_request(part, verb, details):
            why = "%s cannot do this to the store %s" % (
                self._swarm.own.identity,
                str(name)[:60],
            )
            hint = "build all agents with the same shared stores, and the same clawlite"
            self._tell(id, (False, StoreError(why, hint)))
            return
        request = verb, store, part, _unpack(verb, details)
        self._carry_out((None, None, *request), lambda outcome: self._tell(id, outcome))

    def _tell(self, id: str, outcome: tuple):
        is_done, value = outcome
        if not is_done:
            value = [value.code, value.message, value.hint, value.data]
        try:
            self._bus.remembered(id, is_done, value)
        except (TooLong, TypeError, ValueError) as e:
            if is_done:
                why = "the answer is longer than an entry of the swarm's engine, or nested too deep"
                data: Any = TOO_LONG if isinstance(e, TooLong) else None
                self._tell(id, (False, StoreError(why, "ask for fewer entries, with top_k", data)))
        except ClawError:  # the engine is away for long: who asks is told that it is not known
            pass

    # -- who asks

    def _ask(self, effect: tuple):
        """Raises ``ClawError``."""
        _, number, verb, store, part, details = effect
        if verb == "store" and details[0] is None:
            details = (self._draw(16).hex(), *details[1:])
        id = self._draw(_ID // 2).hex()
        while True:
            try:
                sent = self._bus.remember(id, store.name, part, verb, _pack(verb, details))
                break
            except TooLong:
                if verb != "learn" or len(details) < 2:
                    raise
                details = details[: len(details) // 2]  # later requests have the others
            except (TypeError, ValueError):
                why = "the request is nested too deep, or is no JSON"
                raise InvalidParams(why, "store text, or JSON with fewer levels") from None
        self._asked[id] = number, self._now_ms() + ANSWER_MS
        sent.then(lambda later: self._is_sent(id, later))

    def _is_sent(self, id: str, later):
        try:
            later.value()
        except ClawError as e:
            number, _ = self._asked.pop(id, (None, None))
            if number is not None:
                self._end(number, (False, self._unknown(e.message)))

    def _unknown(self, why: str) -> StoreError:
        return StoreError(
            "%s keeps the stores of the swarm %s: %s; whether this was done is not known"
            % (self._bus.keeper, self._swarm.name, why),
            "send it again: a request with an id counts once",
        )

    def _end(self, number, outcome: tuple):
        self._agent.complete(number, outcome, self._now_ms())


class NoSharedStores:
    """In the place of ``SharedStores``, for an agent that has not joined its swarm, such as that of
    ``clawlite ask``.
    """

    def __init__(self, agent, swarm, now_ms):
        self._agent, self._swarm, self._now_ms = agent, swarm, now_ms

    def carry_out(self, effect: tuple) -> bool:
        store = effect[_STORE]
        if store.name not in self._swarm.shares:
            return False
        why = "the store %s is that of the swarm %s, which this process has not joined" % (
            store.name,
            self._swarm.name,
        )
        error = StoreError(why, "ask an agent that runs: clawlite run, serve or swarm up")
        self._agent.complete(effect[_NUMBER], (False, error), self._now_ms())
        return True


def _pack(verb: str, details):
    """Return *details* as JSON has them: the positions of vectors are no texts there."""
    if verb == "store" and len(details) == 3 and details[2]:
        return [details[0], details[1], sorted(details[2].items())]
    return details


def _unpack(verb: str, details):
    if verb == "store" and len(details) == 3 and details[2]:
        return details[0], details[1], dict(map(tuple, details[2]))
    return tuple(details) if verb in _LISTS else details


def _is_request(part, verb, details) -> bool:
    """Return whether another member's request has the form that a memory takes."""
    if not (part is None or isinstance(part, str)):
        return False
    if verb in _COUNTS:
        return details is None or type(details) is int
    if verb == "learn":
        return _all_are(details, lambda one: _all_are(one, None, 3) and _is_vector(one[2]))
    if verb not in _LISTS or not isinstance(details, list) or len(details) not in _LISTS[verb]:
        return False
    if verb != "store":
        return True
    id, entries, *vectors = details
    is_id = isinstance(id, str) and len(id.replace("-", "")) == 32 and _is_hex(id.replace("-", ""))
    pairs = vectors[0] if vectors and vectors[0] else []
    is_pair = lambda one: _all_are(one, None, 2) and type(one[0]) is int and _is_vector(one[1])
    return is_id and bool(entries) and _all_are(entries, _is_entry) and _all_are(pairs, is_pair)


def _is_entry(one) -> bool:
    if not _all_are(one, None, 4):
        return False
    key, _, metadata, vector = one
    return (
        (key is None or isinstance(key, str))
        and (metadata is None or isinstance(metadata, dict))
        and (vector is None or _is_vector(vector))
    )


def _all_are(value, fits, count=None) -> bool:
    """Return whether *value* is a list, of *count* items if that is given, all of which fit."""
    is_list = isinstance(value, list) and count in (None, len(value))
    return is_list and (fits is None or all(map(fits, value)))


def _is_vector(value) -> bool:
    return _all_are(value, lambda one: type(one) in (int, float))


def _is_hex(text: str) -> bool:
    return not text.strip("0123456789abcdefABCDEF")


def _error(value) -> ClawError:
    try:
        code, message, hint, data = value
        return _ERRORS.get(code, StoreError)(str(message), str(hint), data)
    except (TypeError, ValueError):
        return StoreError("the answer of the keeper cannot be read", "update clawlite everywhere")
