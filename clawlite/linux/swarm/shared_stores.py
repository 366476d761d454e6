"""The stores that the agents of a swarm on an engine share (CKP 5.9, ``shared-memory``): one agent
keeps them, and the requests of the others travel as entries of the engine's log (docs/adr/0139).

    remember     id, store, part, verb, details     of who asks
    remembered   id, whether it was done, value     of the keeper

1. The keeper is the first process that is there of the member that leads, or is first in the
   manifest.  Its file is that of a swarm on one machine; its own requests go there directly.
2. A request is carried out in the order of the log.  Who asks hears within ``ANSWER_MS`` what
   became of it, or that this is not known: a request with an id may then be sent again, because it
   counts once (9.3.4).
3. A keeper that is started again carries out what was asked meanwhile, for those that still wait.
"""

from clawlite.core.base import errors
from clawlite.core.base.errors import ClawError, StoreError
from clawlite.linux.swarm.bus import TooLong

VERBS = ("store", "query", "oldest", "replace", "compact", "lacking", "learn")
ANSWER_MS = 30000
MOST = 4096  # requests of others that nobody has answered
_NUMBER, _VERB, _STORE, _PART, _DETAILS = range(1, 6)  # of the effect REMEMBER
_ERRORS = {cls.code: cls for cls in (errors.InvalidParams, StoreError, errors.QueryFailed)}


class SharedStores:
    """One process' way to them.

    agent      ``agent.Agent``
    swarm      ``swarm.Swarm``;  bus: ``ReplicatedBus``
    carry_out  function(effect): as ``Memory.carry_out``, whose number may be a function(outcome)
    now_ms     function -> monotonic ms
    draw       function(count) -> that many random bytes
    """

    def __init__(self, agent, swarm, bus, carry_out, now_ms, draw):
        self._agent, self._swarm, self._bus = agent, swarm, bus
        self._carry_out, self._now_ms, self._draw = carry_out, now_ms, draw
        self._asked = {}  # id -> (number of the agent's task, when it is given up)
        self._unanswered = {}  # id -> (process that asks, store, part, verb, details)
        bus.stores = self

    def carry_out(self, effect: tuple) -> bool:
        """Carry a REMEMBER effect out, unless its store is this agent's own, or it is the keeper:
        return False then.
        """
        store = effect[_STORE]
        if store.name not in self._swarm.shares:
            return False
        number = effect[_NUMBER]
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
            id, details = self._draw(8).hex(), _packed(effect[_VERB], effect[_DETAILS])
            sent = self._bus.remember(id, store.name, effect[_PART], effect[_VERB], details)
        except TooLong:
            why = "the request is longer than an entry of the swarm's engine"
            self._end(number, (False, StoreError(why, "store less at once")))
            return True
        except ClawError as e:
            self._end(number, (False, StoreError(e.message, e.hint)))
            return True
        self._asked[id] = number, self._now_ms() + ANSWER_MS
        sent.then(lambda later: self._is_sent(id, later))
        return True

    def deadline(self):
        """Return the monotonic time of the next ``poll`` that matters, or None."""
        return min((due_ms for _, due_ms in self._asked.values()), default=None)

    def poll(self):
        """Give up what was not answered, and answer what nobody has."""
        for id, (number, due_ms) in list(self._asked.items()):
            if self._now_ms() >= due_ms:
                del self._asked[id]
                self._end(number, (False, self._unknown("it has not answered")))
        if self._unanswered and self._bus.is_synced:
            if self._bus.keeper_of_stores() == self._bus.process:
                waiting, self._unanswered = self._unanswered, {}
                for id, (process, *request) in waiting.items():
                    if self._bus.is_there(process):
                        self._answer(id, *request)

    # -- what the log says; what is not of this form changes nothing

    def remember(self, process: str, id, *request):
        """*process* has asked; the keeper carries it out."""
        if process != self._bus.process and len(self._unanswered) < MOST and isinstance(id, str):
            self._unanswered[id] = (process, *request)

    def remembered(self, id, is_done, value):
        """The keeper has answered."""
        if not isinstance(id, str):
            return
        self._unanswered.pop(id, None)
        number, _ = self._asked.pop(id, (None, None))
        if number is not None:
            self._end(number, (True, value) if is_done else (False, _error(value)))

    # -- the keeper

    def _answer(self, id: str, name: str, part, verb: str, details):
        stores = self._agent.memories().stores if self._agent.memories else ()
        store = next((one for one in stores if one.name == name), None)
        try:
            if store is None or name not in self._swarm.shares:
                raise ValueError("it shares no store %s" % str(name)[:60])
            if verb not in VERBS:
                raise ValueError("it does not know %s" % str(verb)[:60])
            request = verb, store, part, _unpacked(verb, details)
        except (TypeError, ValueError) as e:
            why = "%s cannot do this: %s" % (self._swarm.own.identity, e)
            hint = "build all agents with the same shared stores, and the same clawlite"
            self._tell(id, (False, StoreError(why, hint)))
            return
        self._carry_out((None, lambda outcome: self._tell(id, outcome), *request))

    def _tell(self, id: str, outcome: tuple):
        is_done, value = outcome
        if not is_done:
            value = [value.code, value.message, value.hint, value.data]
        try:
            self._bus.remembered(id, is_done, value)
        except TooLong:
            why = "the answer is longer than an entry of the swarm's engine"
            error = StoreError(why, "ask for fewer entries, with top_k")
            self._tell(id, (False, error))
        except ClawError:  # the engine is away for long: who asks is told that it is not known
            pass

    # -- who asks

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
        self._agent.done(number, outcome, self._now_ms())


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
        self._agent.done(effect[_NUMBER], (False, error), self._now_ms())
        return True


def _packed(verb: str, details):
    """Return *details* as JSON has them: the positions of vectors are no texts there."""
    if verb == "store" and len(details) == 3 and details[2]:
        return [details[0], details[1], sorted(details[2].items())]
    return details


def _unpacked(verb: str, details):
    if verb == "store" and len(details) == 3 and details[2]:
        return details[0], details[1], dict(map(tuple, details[2]))
    return tuple(details) if isinstance(details, list) and verb != "learn" else details


def _error(value) -> ClawError:
    try:
        code, message, hint, data = value
        return _ERRORS.get(code, StoreError)(str(message), str(hint), data)
    except (TypeError, ValueError):
        return StoreError("the answer of the keeper cannot be read", "update clawlite everywhere")
