"""JSON-RPC 2.0 envelopes (CKP 0.2.0, 9.1): what a parsed message is, before any method sees it.

1. A message with no ``id`` is a notification and is never answered.  2. Ids are strings, numbers or null, and are
echoed exactly.  3. A batch is answered as a batch, without its notifications; an empty batch is an error.
"""
from clawlite.core.errors import InvalidParams, InvalidRequest

MAX_BATCH = 64
NO_ID = object()                # a notification's id: null is an id of its own


class Request:
    """One request or notification.

    id      str, int, float, None, or NO_ID
    method  str
    params  dict or list, {} when there were none
    """

    def __init__(self, id, method: str, params):
        self.id = id
        self.method = method
        self.params = params


def id_of(message):
    """Return the id that an answer to *message* carries: its own when it is well-formed, else None (JSON-RPC 5)."""
    if not isinstance(message, dict):
        return None
    id = message.get("id")
    return id if is_id(id) else None


def is_id(value) -> bool:
    """Return whether *value* may be an id: booleans, arrays and objects may not (JSON-RPC 4)."""
    return value is None or (isinstance(value, (str, int, float)) and value is not True and value is not False)


def parse(message) -> Request:
    """Return the request in one parsed JSON value.

    Returns None for a response (it has ``result`` or ``error`` and no method): nobody answers those.
    Raises ``InvalidRequest``.
    """
    if not isinstance(message, dict):
        raise InvalidRequest("expected a JSON-RPC request object, got another JSON value")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if message.get("jsonrpc") != "2.0":
        raise InvalidRequest('jsonrpc: expected "2.0"')
    if "id" in message and not is_id(message["id"]):
        raise InvalidRequest("id: expected a string, a number or null")
    method = message.get("method")
    if not isinstance(method, str):
        raise InvalidRequest("method: expected a string" + ("" if "method" in message else ", there is none"))
    params = message.get("params")
    if "params" in message and not isinstance(params, (dict, list)):
        raise InvalidRequest("params: expected an object")
    return Request(message["id"] if "id" in message else NO_ID, method, {} if params is None else params)


def result(id, value) -> dict:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id, e) -> dict:
    """Return the error response for *e*, a ``ClawError``."""
    return {"jsonrpc": "2.0", "id": id, "error": e.to_json()}


def notification(method: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Batch:
    """The answers of one batch, handed out when the last is there.

    expected  int, requests (not notifications) in the batch
    """

    def __init__(self, expected: int):
        self._left = expected
        self._replies = []

    def add(self, reply: dict):
        """Add one answer; return the whole list when it was the last, else None."""
        self._replies.append(reply)
        self._left -= 1
        return None if self._left else self._replies


def field(params: dict, name: str, kind, where: str, required: bool = True):
    """Return ``params[name]``, checked; None when it may be left out and is.

    kind   str, dict or int; a required string is not empty
    where  what goes before the name in a message, e.g. "context."
    Raises ``InvalidParams``.
    """
    value = params.get(name)
    if value is None and not (required or name in params):
        return None
    if not isinstance(value, kind) or value is True or value is False or required and kind is str and not value:
        said = {str: "a string", dict: "an object", int: "an integer"}[kind]
        raise InvalidParams("%s%s: expected %s%s" % (where, name, said, "" if name in params else ", there is none"))
    return value
