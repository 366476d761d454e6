"""JSON-RPC 2.0 envelopes (CKP 0.2.0, 9.1): a parsed message is checked before any method sees it.

1. A request without an ``id`` is a notification: it is not executed here and not answered, right or
   wrong.
2. Ids are strings, numbers or null, and are echoed exactly.
3. A batch is answered as a batch, without its notifications; an empty batch is an error.
4. A response is dropped: nobody waits for it here, and answering it could go on for ever.
"""

from clawlite.core.base.errors import InvalidParams, InvalidRequest, ParseError

MAX_BATCH = 64
NO_ID = object()  # of a notification: null is a valid id
_NONE = {}  # params that were left out; nothing may be written into it


def id_of(message):
    """Return the id that an answer to *message* carries: its own when it is well-formed, else
    None (JSON-RPC 5).
    """
    if not isinstance(message, dict):
        return None
    id = message.get("id")
    return id if is_id(id) else None


def is_id(value) -> bool:
    """Return whether *value* may be an id: booleans, arrays and objects may not (JSON-RPC 4)."""
    return value is None or (
        isinstance(value, (str, int, float)) and value is not True and value is not False
    )


def parse(message):
    """Return (id, method, params) of one parsed JSON value; params is a dict or a list, {} when
    it was left out.

    Returns None for a message that gets no answer: a notification, or a response (``result`` or
    ``error`` and no method).  Raises ``InvalidRequest``.
    """
    if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
        id, method, params = message.get("id"), message.get("method"), message.get("params")
        if (
            (isinstance(id, str) or type(id) is int)
            and isinstance(method, str)
            and isinstance(params, dict)
        ):
            return id, method, params
    return _parse_other(message)


def _parse_other(message):
    """Parse a message that is not a plain request."""
    if not isinstance(message, dict):
        raise InvalidRequest("expected a JSON-RPC request object, got another JSON value")
    method = message.get("method")
    if method is None and "method" not in message and ("result" in message or "error" in message):
        return None
    if message.get("jsonrpc") != "2.0":
        raise InvalidRequest('jsonrpc: expected "2.0"')
    id = message.get("id", NO_ID)
    if type(id) is not int and id is not NO_ID and not is_id(id):
        raise InvalidRequest("id: expected a string, a number or null")
    if not isinstance(method, str):
        raise InvalidRequest(
            "method: expected a string" + ("" if "method" in message else ", there is none")
        )
    if id is NO_ID:
        return None
    params = message.get("params", _NONE)
    if not isinstance(params, (dict, list)):
        raise InvalidRequest("params: expected an object")
    return id, method, params


def result(id, value) -> dict:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id, e) -> dict:
    """Return the error response for *e*, a ``ClawError``."""
    return {"jsonrpc": "2.0", "id": id, "error": e.to_json()}


def unreadable(e) -> dict:
    """Return the answer to a line that is no JSON, for the ``ParseError`` *e*.

    When only the params of a request hold an invalid text, its id is known: then the answer has
    that id, and the code -32602."""
    whole = e.whole if isinstance(e, ParseError) else None
    id = id_of(whole)
    if id is None or "params" not in whole:
        return error(None, e)
    if isinstance(id, str):
        try:
            id.encode()
        except ValueError:  # the invalid text is in the id
            return error(None, e)
    return error(id, InvalidParams(e.message, e.hint))


def notification(method: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Batch:
    """The answers of one batch, sent together when the last one has been added.

    messages  int, number of messages in the batch
    send      function(list of answers); not called when no message has an answer
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
        if self._left <= 0 and self._replies:
            self._send(self._replies)
            self._replies = []

    def cut(self, reply):
        """Send the answers so far, and *reply* in place of the rest.  Later answers are sent one by
        one.
        """
        self._left = 1
        self.add(reply)


def field(params: dict, name: str, kind, where: str, required: bool = True):
    """Return ``params[name]``, checked; None when it is optional and missing.

    kind   str, dict or int; a required string must not be empty
    where  the prefix of the name in a message, e.g. "context."
    Raises ``InvalidParams``.
    """
    value = params.get(name)
    if value is None and not (required or name in params):
        return None
    if (
        not isinstance(value, kind)
        or value is True
        or value is False
        or required
        and kind is str
        and not value
    ):
        said = {str: "a string", dict: "an object", int: "an integer"}[kind]
        raise InvalidParams(
            "%s%s: expected %s%s" % (where, name, said, "" if name in params else ", there is none")
        )
    return value
