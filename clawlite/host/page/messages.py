"""What can be said of a JSON-RPC message without acting on it: which answers it will get."""

import json

from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.core.protocol import rpc

BATCH = "[]"  # the key of the answer to a batch
UNREADABLE = ""  # the key where nobody here can say


def key_of(body: bytes) -> str | None:
    """Return the key of the answer to the message *body*, None where it gets none."""
    try:
        message = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return UNREADABLE
    if not isinstance(message, list):
        return _key_of(message)
    if not message or len(message) > rpc.MAX_BATCH:
        return _text(None)
    return BATCH if any(_key_of(one) is not None for one in message) else None


def _key_of(message) -> str | None:
    try:
        request = rpc.parse(message)
    except ClawError:
        return _text(rpc.id_of(message))
    return None if request is None else _text(request[0])


def key_of_answer(line: bytes) -> str | None:
    """Return the key of an agent's *line*, an answer; None of a request or a notification."""
    message = json.loads(line)
    if isinstance(message, list):
        return BATCH
    return None if "method" in message else _text(message.get("id"))


def _text(id) -> str:
    return json.dumps(id)


def _refuse(text: str):
    raise ValueError(text)


def too_long(size: int, most: int) -> bytes:
    """Return the answer to a message of more than *most* bytes, as an agent has it."""
    error = InvalidRequest("record: expected at most %d bytes, got %d" % (most, size))
    return json.dumps(rpc.error(None, error)).encode()
