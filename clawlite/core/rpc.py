"""JSON-RPC 2.0 envelopes (CKP 0.2.0, 9.1): what a parsed message is, before any method sees it.

1. A request without an ``id`` is a notification: nothing here is done on one, and none is answered, right or wrong.
2. Ids are strings, numbers or null, and are echoed exactly.  3. A batch is answered as a batch, without its notifications;
an empty batch is an error.  4. A response is nobody's answer here: it is dropped, or two peers could go on for ever.
"""
from clawlite.core.errors import InvalidParams, InvalidRequest

MAX_BATCH = 64


class Request:
    """One request that gets an answer.

    id      str, int, float or None
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

    Returns None for what nobody answers: a notification, or a response (``result`` or ``error`` and no method).
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
    if "id" not in message:
        return None
    params = message.get("params")
    if "params" in message and not isinstance(params, (dict, list)):
        raise InvalidRequest("params: expected an object")
    return Request(message["id"], method, {} if params is None else params)


def result(id, value) -> dict:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id, e) -> dict:
    """Return the error response for *e*, a ``ClawError``."""
    return {"jsonrpc": "2.0", "id": id, "error": e.to_json()}


def notification(method: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Batch:
    """The answers of one batch, sent when the last is there.

    messages  int, how many there are in the batch
    send      function(list of answers); not called when none has an answer
    """

    def __init__(self, messages: int, send):
        self._left = messages
        self._send = send
        self._replies = []

    def add(self, reply):
        """Add the answer to one message, or None for one that gets none."""
        if reply is not None:
            self._replies.append(reply)
        self._left -= 1
        if not self._left and self._replies:
            self._send(self._replies)


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
