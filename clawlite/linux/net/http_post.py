"""One POST, for a thread that may wait.  Telemetry, the audit and the notices of approvals use it
to send to the maker's own servers.
"""

import time

from clawlite.core.base.effect import OPEN, RECEIVE
from clawlite.core.base.errors import ClawError
from clawlite.core.net.http1 import EVENT_KIND, EVENT_STATUS, Response, request
from clawlite.linux.net.blocking import carry_out
from clawlite.linux.secrets.secrets import resolve, stores
from clawlite.protocols.net.netrules import authority, parse_url

TIMEOUT_MS = 10000
_JSON = (("Content-Type", "application/json"),)


def post(url: str, agent: str, secret, body: bytes, headers=_JSON) -> int:
    """Send *body* to *url*, and return the status of the answer, whose body is not read.

    secret   name of a secret of *agent* that is sent as bearer, "" or None for none
    headers  (name, value) of each other header
    Raises ``ClawError``: no such host, no answer in time, no HTTP, no such secret.
    """
    headers = list(headers)
    if secret:
        headers.append(("Authorization", "Bearer " + resolve(secret, stores(agent))))
    return carry_out(_exchange(url, headers, body), [])


def deliver(url: str, agent: str, secret: str, body: bytes):
    """Post *body*, which is JSON.  Raises ``ClawError`` as ``post`` does, and for any answer but
    2xx.
    """
    status = post(url, agent, secret, body)
    if not 200 <= status < 300:
        raise ClawError(
            "%s answered %d" % (url, status),
            "check the address in the manifest, and the log of the receiver",
        )


def _exchange(url: str, headers: list, body: bytes):
    """A generator of effects that returns the status."""
    scheme, host, port, target = parse_url(url)
    head = request("POST", target, authority(scheme, host, port), headers, len(body))
    response, due = Response(), time.monotonic() + TIMEOUT_MS / 1000
    yield (OPEN, scheme, host, port, [head, body], TIMEOUT_MS)
    while True:
        is_ok, data = yield (RECEIVE, max(0, int((due - time.monotonic()) * 1000) + 1))
        if not is_ok:
            why = data.message if time.monotonic() < due else "no answer in time"
            raise ClawError(why, "check that the receiver and the network are up")
        if data:
            response.feed(data)
        else:
            response.at_end()
        event = response.next_event()
        if event is not None and event[EVENT_KIND] == "head":
            return event[EVENT_STATUS]
