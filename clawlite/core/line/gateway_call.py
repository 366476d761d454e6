"""A call of a service's tool that a gateway carries out for a device (docs/gateway.md).

When a session broke, the call is sent again, with its id and the number of records that were
received.  A gateway that was restarted since then refuses it, so nothing is called twice.
"""

from clawlite.core.line.gateway_records import make_note, split_text

_LATE_MS = 2000  # the gateway ends a call that takes too long, and needs time to report that


class GatewayCall:
    """One call in progress.

    text     its arguments, JSON
    due_ms   when it is given up
    come_ms  time until which a gateway must have connected, or None
    seen     records of the answer that were received;  said: the texts in them
    sent     a gateway may have begun it
    parts    records that wait for room on the wire of a board, or None
    """

    def __init__(self, id: str, name: str, text: str, due_ms: int):
        self.id, self.name, self.text, self.due_ms = id, name, text, due_ms + _LATE_MS
        self.come_ms, self.seen, self.said, self.sent, self.parts = None, 0, [], False, None

    def records(self, wants: dict, answer):
        """Generate what goes up for the call; a gateway may begin it with the last record.

        wants   params of the request beside those that it always has
        answer  params of ``claw.gateway.answer`` to a question that the gateway has put, or None
        """
        again = self.sent
        for record in split_text({"id": self.id, "role": "tool"}, self.text):
            yield record
        if answer is not None:
            yield make_note("answer", answer)
        # "again" stops a restarted gateway from beginning the call a second time
        params = {"tool": self.name, "seen": self.seen, "again": again}
        params.update(wants)
        self.sent = True
        yield {"jsonrpc": "2.0", "id": self.id, "method": "claw.gateway.tool", "params": params}


def read_end(message: dict) -> tuple:
    """Return (whether the service may have got the call, why the gateway failed) of the response
    that ends a call.  The reason is "" when the call has a result, which may be an error, too.
    """
    error, said, why = message.get("error"), message.get("result"), ""
    if isinstance(error, dict):
        said, why = error.get("data"), "the gateway: %s" % error.get("message")
    return not isinstance(said, dict) or said.get("ran") is not False, why
