"""Requests that go on record, and requests that share an id: the code for calls that may not run
twice, that a person answers, or that are repeated.

A module of its own, which a board loads for such calls and then drops."""

from clawlite.core.base.dialect import const, sha256
from clawlite.core.base.effect import KEEP
from clawlite.core.base.errors import (
    ClawError,
    Denied,
    InternalError,
    InvalidParams,
    InvalidRequest,
    RequestError,
    ToolTimeout,
)
from clawlite.core.idempotency.idempotency_record import (
    BEGIN,
    BEGUN,
    END,
    ENDED,
    GONE,
    KEPT_S,
    LOST,
    OPEN,
)

_PAYLOAD = const(1)  # of a record
_FINGERPRINT = const(0)  # of a payload
_ERROR = const(1)


def begin(once):
    """A generator of effects: put on record that the handler of *once* begins.

    Returns None, or the result of the request with this id that another process of this agent has
    begun since; raises the error of that request.
    Raises ``InternalError`` when it cannot be put on record; then nothing runs.
    """
    idempotency = once.idempotency
    idempotency.check_room()
    once.state = BEGUN
    idempotency.begun += 1
    done, others = yield (KEEP, BEGIN, once.id, [fingerprint(once)])
    theirs = None
    if done:
        for key, age_s, size in others:
            if key == once.id:
                idempotency.forget(once)
            if key not in idempotency.known:
                idempotency.hold(key, size, age_s * 1000)
        theirs = idempotency.find(once.id)
        if theirs is once:
            theirs = None
        if theirs is None:
            return None
    once.state = OPEN
    idempotency.begun -= 1
    if theirs is None:
        raise InternalError(
            "nothing runs that cannot be put on record: %s" % others,
            "mend that where this agent keeps its state, and send it again",
        )
    compare(once, theirs)
    return theirs.outcome()


def end(once, result, error):
    """Return the record of the end of *once*, or None: see ``IdempotentRequest.end``.

    A request that ended before any gate decided, as when the agent stops, did not run and is not
    remembered.  Nor is one that there was no room for, for example because of a limit of calls per
    minute: sent again with the same id, it runs."""
    idempotency = once.idempotency
    begun = once.state == BEGUN
    if (
        error
        and error.data
        and (error.data.get("ran") is False or isinstance(error, Denied) and "limit" in error.data)
    ):
        idempotency.forget(once)
        idempotency.begun -= begun
        return (GONE, once.id, None) if begun or once.waits else None
    if error and not begun and isinstance(error, (RequestError, InternalError)):
        idempotency.forget(once)
        return (GONE, once.id, None) if once.waits else None
    kept = [error.to_json()] if error else [result.text, result.is_error, result.original_bytes]
    text = error.message if error else result.text
    try:
        once.size = len(text.encode())
    except ValueError:  # half a surrogate pair, in an error's words
        once.size = 3 * len(text)
    once.answer = kept[0] if error else result
    if result:
        result.value = None
    once.state = ENDED
    if begun or once.waits and isinstance(error, Denied):
        idempotency.forget(once)
        idempotency.begun -= begun
        idempotency.hold(once.id, once.size)
        return (END, once.id, [fingerprint(once)] + kept)
    if once.is_long:
        fingerprint(once)
    idempotency.remember(once)
    return None


def read(once, record):
    """Fill *once* from its record (kind, payload), or from None when the record is lost."""
    payload = record[_PAYLOAD] if record else [""]
    once.asked = payload[_FINGERPRINT]
    once.state = LOST if len(payload) == 1 else ENDED
    if len(payload) == 2:
        once.answer = payload[_ERROR]
    elif len(payload) == 4:
        from clawlite.core.base.effect import Result

        _, text, is_error, original_bytes = payload
        once.answer = Result(text, is_error, None, original_bytes)  # type: ignore[arg-type]
    return once


def error(once):
    """Return the error that another request with the id of *once* gets."""
    if once.state == LOST:
        return ToolTimeout(
            "the call %s began before, and its result is not known here: it may "
            "have run, and is not run again" % once.id,
            "see what it did, then call with a new id",
            {"request_id": once.id},
        )
    if once.state != ENDED:
        return InvalidRequest("the call %s ended before it ran" % once.id, "send it again")
    found = ClawError(once.answer["message"], "", once.answer.get("data"))
    found.code = once.answer["code"]
    return found


def full(calls: int, most: int, size: int, most_bytes: int, wait_ms: int):
    """Return the error of a call that could not be remembered.

    calls    how many are remembered already, with *size* bytes of answers
    wait_ms  until the oldest of them is forgotten
    """
    seconds = -(-wait_ms // 1000)
    return InvalidRequest(
        "no room to remember another call that may not run twice: %d of %d "
        "calls, %d of %d bytes of answers" % (calls, most, size, most_bytes),
        "send it again in %d s; a call is remembered for %d s. Tools with "
        "readOnlyHint or idempotentHint go on" % (seconds, KEPT_S),
        {
            "calls": calls,
            "limit_calls": most,
            "bytes": size,
            "limit_bytes": most_bytes,
            "retry_after_seconds": seconds,
        },
    )


def compare(once, known):
    """Raise ``InvalidParams`` when *known*, which has the same id as *once*, is another call.  A
    lost record cannot be compared, so it passes.
    """
    if known.asked and fingerprint(known) != fingerprint(once):
        raise InvalidParams(
            "context.request_id: another call had this id within %d s" % KEPT_S,
            "send a new id with a new call",
        )


def fingerprint(once) -> str:
    """Return 32 hexadecimal digits that identify the parameters of *once*.  Cost: a hash, the first
    time only.
    """
    if not isinstance(once.asked, str):
        digest = sha256()
        _mix(digest.update, once.asked)
        once.asked = digest.digest()[:16].hex()
    return once.asked


def _mix(update, value):
    """Feed a JSON value to the *update* of a digest, in the same way on every runtime.  1 and 1.0
    are the same number.
    """
    if isinstance(value, str):
        data = value.encode()
        update(b'"%d:' % len(data))
        update(data)
    elif isinstance(value, dict):
        update(b"{%d" % len(value))
        for key in sorted(value):
            _mix(update, key)
            _mix(update, value[key])
    elif isinstance(value, list):
        update(b"[%d" % len(value))
        for item in value:
            _mix(update, item)
    else:
        if isinstance(value, float) and value == int(value):
            value = int(value)
        update(b",%s" % repr(value).encode())
