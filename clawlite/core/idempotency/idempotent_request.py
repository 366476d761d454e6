"""Requests with an id, and their results: a request that repeats a ``context.request_id`` gets the
same result (CKP 0.2.0, 9.3.2).

1. A request is known once its arguments have passed (core/turns/tools.py has the place).  A second
   request with its id waits while the first one runs, and for 5 minutes after the end of the first
   gets the same result or refusal.  With other parameters it is an error, and nothing runs.
2. A call that may not run twice is put on record before it begins, and a person's answer before it
   is acknowledged; both are on record before the call's own answer is sent (KEEP).  After a
   restart, a call that began and has no result is refused: it may have run.
3. The memory is bounded.  Requests that need not be remembered are forgotten first, the oldest
   first.  When those that must be remembered fill the bounds, tools that may not run twice are
   refused; other tools go on.

The code that few calls need is in recorded_request.py, which a board loads for them and drops.
"""

from binascii import crc32

from clawlite.core.base.effect import JOIN
from clawlite.core.image.image import IDEMPOTENT, READ_ONLY
from clawlite.core.idempotency.idempotency_record import BEGUN, ENDED, LOST, NEW, OPEN

KEPT_MS = 300000  # how long a call is remembered after its end
IDS, FREE, BYTES = 64, 2, 4096  # on a board; a shell with more memory sets more


class IdempotentRequest:
    """One claw.tool.call.

    idempotency  ``idempotency.Idempotency``
    id       its request_id
    asked    what must be the same: [tool, arguments, identity, policy, sandbox], or its fingerprint
    number   of its task
    waits    bool, it has asked a person
    is_long  bool, its arguments are too long to be kept as they are
    told     function() that confirms an approval or denial to the operator who sent it, before the
             call's own answer is sent; or None
    joined   numbers of the tasks of requests with its id that wait for its end, or None
    answer   ``effect.Result`` or an error's JSON, when it is ENDED
    size     bytes of the answer
    due_ms   the time at which it is forgotten, or None
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
        """Return None for a request that may go on, or the known request with its id, whose
        ``again`` returns the result.

        Raises ``InvalidParams`` for a known id with other parameters, ``InvalidRequest`` when
        nothing more can be remembered."""
        self.asked[0] = tool.name
        idempotency = self.idempotency
        if self.id in idempotency.known or idempotency.is_held(self.id):
            known = idempotency.find(self.id)
            if known is not None:
                from clawlite.core.idempotency.recorded_request import compare

                compare(self, known)
                if known.state != LOST or not tool.flags & (READ_ONLY | IDEMPOTENT):
                    return known
        if not tool.flags & (READ_ONLY | IDEMPOTENT):
            idempotency.check_room()
        self.state = OPEN
        idempotency.known[self.id] = self
        return None

    def begin(self, tool):
        """Return the generator of effects that puts its begin on record (``recorded_request``), or
        None when that is not needed: *tool* may run twice, and no person was asked.
        """
        if self.waits or not tool.flags & (READ_ONLY | IDEMPOTENT):
            from clawlite.core.idempotency.recorded_request import begin

            return begin(self)

    def again(self):
        """A generator of effects that waits for the end of this request, and returns its result or
        raises its error.
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
        from clawlite.core.idempotency.recorded_request import error

        raise error(self)

    def end(self, result, error):
        """Return the record of its end, (kind, id, payload), or None.  *result* is an
        ``effect.Result``, or None when there is an *error*.
        """
        # ENDED: a board ran out of memory with its answer
        if self.state == NEW or self.state == ENDED:
            return None
        if error or self.state == BEGUN or self.is_long:
            from clawlite.core.idempotency.recorded_request import end

            return end(self, result, error)
        result.value = None
        self.answer = result
        self.size = result.size or len(result.text.encode())
        self.state = ENDED
        self.idempotency.remember(self)
        return None


def nothing(key=None):
    """Return the records of a shell that keeps none."""
    return (IDS, FREE, BYTES, ()) if key is None else None


class Idempotency:
    """The requests of one agent.

    kept    function() -> (ids, free, size, [(key, age in seconds, bytes), ...]): how many requests
            are remembered, how many of them at most that need not be, how many bytes of answers,
            and what is on record.  function(key) -> (kind, payload), the record of one, or None
    now_ms  monotonic; every caller updates it first
    known   {id: ``IdempotentRequest``} of the requests in progress, and of those that have ended
            and may be forgotten
    held    {id: the second in which it is forgotten} of the requests that have ended and must be
            remembered; their answers are on record.  A board has a number for each id, for which
            its heap holds no object (``_key_of``): two of 64 ids share one once in 500,000 times
    begun   how many requests in progress must be remembered
    most    how many requests are remembered
    """

    def __init__(self, kept, now_ms: int):
        self.now_ms = now_ms
        self.known = {}
        self.held = {}
        self._sizes = {}  # {key of ``held``: bytes of its answer}
        self.begun = 0
        self.kept = kept
        self.most, free, self._size, records = kept()
        self._free = [None] * free  # a ring: the next request replaces the oldest
        self._next = 0
        self._used = self._held_used = 0
        for key, age_s, bytes_ in records:
            self.hold(key, bytes_, age_s * 1000)

    def find(self, id: str):
        """Return the request *id*, or None."""
        once = self.known.get(id)
        if once is None:
            if not self.is_held(id):
                return None
            if self.now_ms < 1000 * self.held[self._key_of(id)]:
                from clawlite.core.idempotency.recorded_request import read

                return read(IdempotentRequest(self, id, None), self.kept(id))
            self._release(self._key_of(id))
        elif once.due_ms is not None and self.now_ms >= once.due_ms:
            self.forget(once)
            return None
        return once

    def forget(self, once):
        """Forget *once*, when it is the request that is known by its id."""
        if self.known.get(once.id) is once:
            del self.known[once.id]
            self._used -= once.size

    def remember(self, once):
        """Remember a request that has ended and may be forgotten; forget older ones when the bounds
        are exceeded.
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
        if self._used > self._size or len(self.known) + len(self.held) > self.most:
            self._shed()

    def _shed(self):
        for step in range(len(self._free)):
            at = (self._next + step) % len(self._free)
            if self._free[at] is not None:
                self.forget(self._free[at])
                self._free[at] = None
                if self._used <= self._size and len(self.known) + len(self.held) <= self.most:
                    return

    def hold(self, id: str, size: int, age_ms: int = 0):
        """Remember a request that is on record; *size*: bytes of its answer."""
        key = self._key_of(id)
        if key in self.held:
            self._release(key)
        self.held[key] = -(-(self.now_ms + KEPT_MS - age_ms) // 1000)
        self._sizes[key] = size
        self._held_used += size

    def is_held(self, id: str) -> bool:
        """Return whether the request *id* is on record."""
        return bool(self.held) and self._key_of(id) in self.held

    def _key_of(self, id: str):
        # 30 bits: 32-bit words hold such integers themselves
        return id if self.most > IDS else crc32(id.encode()) & 0x3FFFFFFF

    def _release(self, key):
        del self.held[key]
        self._held_used -= self._sizes.pop(key)

    def check_room(self):
        """Raise ``InvalidRequest`` when there is no room for one more request that must be
        remembered.  A quarter of the bytes is reserved for calls in progress.
        """
        if self._is_full():
            for key in list(self.held):
                if self.now_ms >= 1000 * self.held[key]:
                    self._release(key)
            if self._is_full():
                from clawlite.core.idempotency.recorded_request import full

                due = list(self.held.values())
                raise full(
                    self.begun + len(self.held),
                    self.most,
                    self._held_used,
                    self._size - self._size // 4,
                    min(1000 * min(due) - self.now_ms, KEPT_MS) if due else KEPT_MS,
                )

    def _is_full(self) -> bool:
        return (
            self.begun + len(self.held) >= self.most
            or self._held_used > self._size - self._size // 4
        )
