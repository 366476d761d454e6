"""Requests with an id, and what they gave, so that the same ``context.request_id`` gives it again
(CKP 0.2.0, 9.3.2).

1. A request is known once its arguments have passed (core/turns/tools.py has the place): another
   with its id waits for it while it is under way, and for 5 minutes after its end gets what it got,
   a result or a refusal.  With other parameters it is an error, and nothing runs.
2. What may not run twice is on record before it begins, what a person answered before the answer is
   acknowledged, and both before the call's own answer leaves (KEEP).  After a restart a call that
   began and has no result is refused: it may have run.
3. Bounded: of what has ended, what need not be remembered is forgotten first, the oldest first.
   When what must be remembered fills the bounds, tools that may not run twice are refused; the
   others go on.

What few calls need lies in idempotency_journal.py, which a board loads for them and drops again.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import JOIN
from clawlite.core.image.image import IDEMPOTENT, READ_ONLY
from clawlite.core.idempotency.idempotency_record import BEGUN, ENDED, LOST, NEW, OPEN

KEPT_MS = 300000  # so long a call is remembered after its end
IDS, FREE, BYTES = 64, 2, 4096  # of a board; a shell with more room says so
_DUE_MS = const(0)  # of one in ``held``
_SIZE = const(1)


class IdempotentRequest:
    """One claw.tool.call.

    idempotency  ``idempotency.Idempotency``
    id       its request_id
    asked    what must be the same: [tool, arguments, identity, policy, sandbox], or its fingerprint
    number   of its task
    waits    bool, it has asked a person
    is_long  bool, its arguments are too long to be kept as they are
    told     function(): tell who approved or denied it so, before its answer leaves; or None
    joined   numbers of the tasks of requests with its id that wait for its end, or None
    answer   ``effect.Result`` or an error's JSON, when it is ENDED
    size     bytes of the answer
    due_ms   when it is forgotten, or None
    """

    number = told = joined = answer = due_ms = None
    waits = is_long = False
    state = NEW
    size = 0

    def __init__(self, idempotency, id: str, asked):
        self.idempotency = idempotency
        self.id = id
        self.asked = asked

    def admit(self, tool):
        """Return None for a request that goes on, or the one with this id that is known: ``again``
        has what it gives.

        Raises ``InvalidParams`` for a known id with other parameters, ``InvalidRequest`` when
        nothing more can be remembered."""
        self.asked[0] = tool.name
        idempotency = self.idempotency
        if self.id in idempotency.known or self.id in idempotency.held:
            known = idempotency.find(self.id)
            if known is not None:
                from clawlite.core.idempotency.idempotency_journal import compare

                compare(self, known)
                if known.state != LOST or not tool.flags & (READ_ONLY | IDEMPOTENT):
                    return known
        if not tool.flags & (READ_ONLY | IDEMPOTENT):
            idempotency.check_room()
        self.state = OPEN
        idempotency.known[self.id] = self
        return None

    def is_kept(self, tool) -> bool:
        """Return whether it goes on record before *tool* runs: it may not run twice, or a person
        was asked.
        """
        return self.waits or not tool.flags & (READ_ONLY | IDEMPOTENT)

    def begin(self):
        """A generator of effects, see ``idempotency_journal.begin``."""
        from clawlite.core.idempotency.idempotency_journal import begin

        return begin(self)

    def again(self):
        """A generator of effects that returns, or raises, what this request gave; it waits for
        its end.
        """
        if self.state < ENDED:
            if self.joined is None:
                self.joined = []
            yield (JOIN, self.joined)
        return self.outcome()

    def outcome(self):
        """Return the ``effect.Result``, or raise the error."""
        if self.state == ENDED and not isinstance(self.answer, dict):
            return self.answer
        from clawlite.core.idempotency.idempotency_journal import error

        raise error(self)

    def end(self, result, error):
        """Return what goes on record, (kind, id, payload), or None; *result* is
        ``effect.Result``, or None when there is an *error*.
        """
        # ENDED: memory did not do for its answer
        if self.state == NEW or self.state == ENDED:
            return None
        if error or self.state == BEGUN or self.is_long:
            from clawlite.core.idempotency.idempotency_journal import end

            return end(self, result, error)
        result.value = None
        self.answer = result
        self.size = result.size or len(result.text.encode())
        self.state = ENDED
        self.idempotency.ended(self)
        return None


def nothing(key=None):
    """Return what is on record where a shell keeps no records."""
    return (IDS, FREE, BYTES, ()) if key is None else None


class Idempotency:
    """The requests of one agent.

    kept    function() -> (ids, free, size, [(key, age in seconds, bytes), ...]): how many are
            remembered, and how many of those that need not be; bytes of their answers; and what is
            on record.  function(key) -> (kind, payload), what is on record of one, or None
    now_ms  monotonic; whoever calls in keeps it up to date
    known   {id: ``IdempotentRequest``} of those under way, and of those that have ended and may be
            forgotten
    held    {id: (when it is forgotten, bytes)} of those that have ended and must be remembered;
            their answers are on record
    begun   how many are under way and must be remembered
    """

    def __init__(self, kept, now_ms: int):
        self.now_ms = now_ms
        self.known = {}
        self.held = {}
        self.begun = 0
        self.kept = kept
        self._ids, free, self._size, records = kept()
        self._free = [None] * free  # a ring: the oldest stands where the next one goes
        self._next = 0
        self._used = self._held_used = 0
        for key, age_s, bytes_ in records:
            self.hold(key, bytes_, age_s * 1000)

    def find(self, id: str):
        """Return the request *id*, or None."""
        once = self.known.get(id)
        if once is None:
            if id not in self.held:
                return None
            if self.now_ms < self.held[id][_DUE_MS]:
                from clawlite.core.idempotency.idempotency_journal import read

                return read(IdempotentRequest(self, id, None), self.kept(id))
            self._release(id)
        elif once.due_ms is not None and self.now_ms >= once.due_ms:
            self.forget(once)
            return None
        return once

    def forget(self, once):
        """Forget one that is known."""
        if self.known.get(once.id) is once:
            del self.known[once.id]
            self._used -= once.size

    def ended(self, once):
        """Remember one that has ended and may be forgotten, and forget others when that is too
        much.
        """
        once.due_ms = self.now_ms + KEPT_MS
        self._used += once.size
        free, at = self._free, self._next
        old = free[at]
        if old is not None and self.known.get(old.id) is old:
            del self.known[old.id]
            self._used -= old.size
        free[at] = once
        self._next = at + 1 if at + 1 < len(free) else 0
        if self._used > self._size or len(self.known) + len(self.held) > self._ids:
            self._shed()

    def _shed(self):
        for step in range(len(self._free)):
            at = (self._next + step) % len(self._free)
            if self._free[at] is not None:
                self.forget(self._free[at])
                self._free[at] = None
                if self._used <= self._size and len(self.known) + len(self.held) <= self._ids:
                    return

    def hold(self, id: str, size: int, age_ms: int = 0):
        """Remember one that is on record; *size*: bytes of its answer."""
        if id in self.held:
            self._release(id)
        self.held[id] = (self.now_ms + KEPT_MS - age_ms, size)
        self._held_used += size

    def _release(self, id: str):
        self._held_used -= self.held.pop(id)[_SIZE]

    def check_room(self):
        """Raise ``InvalidRequest`` when one more that must be remembered is too much: a quarter
        of the bytes is left to calls under way.
        """
        if self._is_full():
            for id in list(self.held):
                if self.now_ms >= self.held[id][_DUE_MS]:
                    self._release(id)
            if self._is_full():
                from clawlite.core.idempotency.idempotency_journal import full

                due = [due for due, _ in self.held.values()]
                raise full(
                    self.begun + len(self.held),
                    self._ids,
                    self._held_used,
                    self._size - self._size // 4,
                    min(due) - self.now_ms if due else KEPT_MS,
                )

    def _is_full(self) -> bool:
        return (
            self.begun + len(self.held) >= self._ids
            or self._held_used > self._size - self._size // 4
        )
