"""One request with an id, that runs once (CKP 0.2.0, 9.3.2, ``context.request_id``); idempotency.py
has all of them.

What few calls need lies in idempotency_journal.py, which a board loads for them and drops again.
"""

from clawlite.core.base.effect import JOIN
from clawlite.core.image.image import IDEMPOTENT, READ_ONLY
from clawlite.core.idempotency.idempotency_record import BEGUN, ENDED, LOST, NEW, OPEN


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
