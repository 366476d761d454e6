"""Retries of a tool that may run twice, after a failure that may pass (CKP 0.2.0, 5.4,
``retry``).

The host accepts ``retry`` only for tools with ``idempotentHint`` or ``readOnlyHint``.  An exception
of the handler is a failure that may pass.  A timeout is not: the handler has used its time and was
ended.  Nor is a lack of something on this device, or a provider's refusal, which has had its own
attempts.  Each attempt has the full ``timeout_ms``."""

from clawlite.core.base.effect import IS_OK, LOG, SLEEP, VALUE
from clawlite.core.base.errors import Denied, InvalidParams, ProviderError, ToolTimeout

EXPONENTIAL, LINEAR, CONSTANT = range(3)
# before the second attempt, as for providers: the manifest has no field for it
DELAY_MS = 1000
MAX_WAIT_MS = 60000


def attempts(run, call):
    """A generator of effects that returns the outcome of the last attempt.

    run   function(call) -> a generator of effects that runs the handler once and returns its
          outcome
    call  ``gates.ToolCall``; its log event gets the number of attempts, and each attempt is logged
          with an event of its own, too
    """
    tool, event = call.tool, call.event
    most, backoff = tool.retry
    attempt = 1
    while True:
        outcome = yield from run(call)
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
    """Return the milliseconds to wait after *attempt*, which is 1 or more: 1, 2, 4 s ..., or 1, 2,
    3 s ..., or always 1 s; at most 60 s.
    """
    wait = DELAY_MS
    if backoff == EXPONENTIAL:
        wait <<= attempt - 1 if attempt < 8 else 7
    elif backoff == LINEAR:
        wait *= attempt
    return wait if wait < MAX_WAIT_MS else MAX_WAIT_MS
