"""One POST, for a thread that may wait.  Telemetry and the audit use it to send to the maker's own
servers.
"""

import os
import select
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.net.http1 import EVENT_KIND, EVENT_STATUS, Response, request
from clawlite.linux.net.connections import Connections
from clawlite.protocols.net.netrules import authority, parse_url


def post(url: str, headers: list, body: bytes, timeout_ms: int) -> int:
    """Send *body* to *url*, and return the status of the answer, whose body is not read.

    headers  list of (name, value)
    Raises ``ClawError``: no such host, no answer in time, no HTTP.
    """
    scheme, host, port, target = parse_url(url)
    head = request("POST", target, authority(scheme, host, port), headers, len(body))
    reader, writer = os.pipe()
    connections = Connections(writer)
    try:
        connections.open(1, scheme, host, port, [head, body], timeout_ms)
        return _status(connections, reader, time.monotonic() + timeout_ms / 1000)
    finally:
        connections.close_all()
        os.close(reader)
        os.close(writer)


def _status(connections, reader: int, due: float) -> int:
    response = Response()
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while poll.poll(max(0, (due - time.monotonic()) * 1000)):
        os.read(reader, 64)
        for _, kind, data in connections.poll():
            if kind == "error":
                raise ClawError(data, "check that the receiver and the network are up")
            if kind == "end":
                response.at_end()
            else:
                response.feed(data)
            event = response.next_event()
            if event is not None and event[EVENT_KIND] == "head":
                return event[EVENT_STATUS]
    raise ClawError("no answer in time", "check that the receiver and the network are up")
