"""A tool that may run twice is tried again after a failure that may pass (CKP 0.2.0, 5.4,
``retry``).

The host admits ``retry`` for tools alone that say ``idempotentHint`` or ``readOnlyHint``.  What a
handler raises is such a failure.  A timeout is none (its work was ended, and had its time), nor is
what this device lacks, nor a provider's refusal, which has had its own attempts.  Each attempt has
``timeout_ms`` of its own."""

from clawlite.core.base.effect import IS_OK, LOG, SLEEP, VALUE
from clawlite.core.base.errors import Denied, InvalidParams, ProviderError, ToolTimeout

EXPONENTIAL, LINEAR, CONSTANT = range(3)
# before the second attempt, as for providers: the manifest has no field for it
DELAY_MS = 1000
MAX_WAIT_MS = 60000


def attempts(run, image, tool, arguments: dict, event: dict):
    """A generator of effects that returns the outcome of the last attempt.

    run    function(image, tool, arguments) -> a generator of effects that runs the handler once and
           returns its outcome
    event  the log event of the call, which gets how many attempts there were; each has one of its
           own too
    """
    most, backoff = tool.retry
    attempt = 1
    while True:
        outcome = yield from run(image, tool, arguments)
        tried = {
            "event": "tool.attempt",
            "tool": tool.name,
            "attempt": attempt,
            "status": "ok" if outcome[IS_OK] else "error",
        }
        passing = not outcome[IS_OK] and not isinstance(
            outcome[VALUE], (ToolTimeout, Denied, ProviderError, InvalidParams)
        )
        if not outcome[IS_OK]:
            tried["error"] = str(outcome[VALUE])
        event["attempts"] = attempt
        if not passing or attempt >= most:
            yield (LOG, tried)
            return outcome
        tried["wait_ms"] = wait_ms(backoff, attempt)
        yield (LOG, tried)
        yield (SLEEP, tried["wait_ms"])
        attempt += 1


def wait_ms(backoff: int, attempt: int) -> int:
    """Return the milliseconds after *attempt*, 1 or more: 1, 2, 4 s ..., 1, 2, 3 s ..., or
    always 1 s; at most 60 s.
    """
    wait = DELAY_MS
    if backoff == EXPONENTIAL:
        wait <<= attempt - 1 if attempt < 8 else 7
    elif backoff == LINEAR:
        wait *= attempt
    return wait if wait < MAX_WAIT_MS else MAX_WAIT_MS
