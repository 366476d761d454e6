"""What a provider's report of a failure means: loaded when there is one.

1. A report comes with a status other than 200, or inside an answer whose status is 200.
2. Codes and status decide whether another attempt may succeed.  Words decide only where a report
   inside an answer has neither.
3. Codes are data: the tables below.  They come from the references of the vendors and from what
   servers send.
"""

from clawlite.core.base.errors import ProviderError, TransientError
from clawlite.core.net.exchange import PASSING

# the account is used up: no pause changes that, whatever the status
QUOTA = (
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "credit_balance_too_low",
)
# the model wrote something that the server's own check refuses: another attempt writes it anew
CHANCE = (
    "tool_use_failed",
    "json_validate_failed",
    "output_parse_failed",
    "malformed_function_call",
)
_PASSES = (
    "overloaded_error",
    "overloaded",
    "engine_overloaded",
    "engine_overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limit_reached_error",
    "rate_limited",
    "too_many_requests",
    "resource_exhausted",
    "api_error",
    "timeout_error",
    "timeout",
    "server_error",
    "internal_error",
    "internal_server_error",
    "unavailable",
    "unavailable_error",
    "service_unavailable",
    "service_unavailable_error",
)
_WORDS = (
    "overloaded",
    "rate limit",
    "too many requests",
    "try again",
    "temporarily",
    "unavailable",
    "timed out",
    "timeout",
)
_FIELDS = ("code", "type", "status", "status_code", "error_type", "reason", "param")
_PARTS = ("error", "metadata", "details")


def codes(obj, depth: int = 4) -> list:
    """Return the codes of a report, in small letters; those of its numbers are int."""
    found = []
    if isinstance(obj, list):
        for one in obj[:4] if depth else ():
            found += codes(one, depth - 1)
    elif isinstance(obj, dict):
        for name in _PARTS if depth else ():
            found += codes(obj.get(name), depth - 1)
        for name in _FIELDS:
            value = obj.get(name)
            if isinstance(value, str) and value:
                value = int(value) if _is_status(value) else value[:80].lower()
            elif value is True or value is False or not isinstance(value, int):
                continue
            found.append(value)
    return found


def inside(obj: dict, line: str, is_passing: bool):
    """Return the error for the report *obj* inside an answer.

    line        its text for a person
    is_passing  whether another attempt may succeed when the report does not say so itself
    """
    found = codes(obj)
    kind = TransientError if _passes(found, line, is_passing) else ProviderError
    e = kind("the provider reported: " + line)
    numbers = [code for code in found if isinstance(code, int) and 400 <= code < 600]
    e.codes = found
    e.status = numbers[0] if numbers else 0
    e.is_loading = _is_loading(e.status, obj, line)
    return e


def outside(e, status: int, obj, line: str):
    """Return *e*, the error for an answer with *status*, or one of the other class when the codes
    of its body *obj* say so.
    """
    found = codes(obj)
    is_passing = isinstance(e, TransientError)
    if _has(found, QUOTA) and is_passing or _has(found, CHANCE) and not is_passing:
        e = (ProviderError if is_passing else TransientError)(e.message, e.hint)
    e.codes = found
    e.status = status
    e.is_loading = _is_loading(status, obj, line)
    return e


def _passes(found: list, line: str, otherwise: bool) -> bool:
    if _has(found, QUOTA):
        return False
    if _has(found, CHANCE) or _has(found, _PASSES):
        return True
    for code in found:
        if isinstance(code, int) and 400 <= code < 600:
            return code in PASSING
    text = line.lower()
    if "context" in text:  # too long: the same request has the same length
        return False
    for words in _WORDS:
        if words in text:
            return True
    for word in text.replace(":", " ").replace(",", " ").split():
        if _is_status(word) and int(word) in PASSING:
            return True
    return otherwise


def _has(found: list, names: tuple) -> bool:
    for code in found:
        if code in names:
            return True
    return False


def _is_loading(status: int, obj, line: str) -> bool:
    """Return whether a server that is up still reads its model: llama.cpp and others say so with
    503, Hugging Face adds an estimate.
    """
    if status != 503:
        return False
    if isinstance(obj, dict) and obj.get("estimated_time") is not None:
        return True
    text = line.lower()
    return "model" in text and (
        "loading" in text.replace("overloading", "") or "loaded yet" in text
    )


def _is_status(text: str) -> bool:
    return len(text) == 3 and text.strip("0123456789") == ""
