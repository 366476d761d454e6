"""Who takes copies of an audit (forwarding.py): a webhook, which answers 2xx, or a syslog (RFC
5424) on this machine or over UDP (RFC 5426).

    webhook  POST {"agent", "records": [{"hash", "record": {...}}, ...]}
    syslog   <PRI>1 TIME HOST clawlite PID EVENT [clawlite@32473 agent="" n="" hash=""] RECORD

A syslog acknowledges nothing: a record counts as taken when the socket took it.  One that is too
long for a datagram goes without what makes it long; its hash still says which record of the files
it is."""

import _socket
import errno
import os

from clawlite.linux.io.jsontext import dumps, loads

TIMEOUT_MS = 10000
FACILITY = 13  # log audit (RFC 5424, table 1)
WARNING, INFO = 4, 6
_LONG = ("arguments", "output", "trace")
_PLACE = "clawlite@32473"  # 32473: enterprise number of examples (RFC 5612)


def delivery(destination: str, target: list, agent: str):
    """Return the function that ``forwarding.Sender`` delivers with; *target*: [address, name of a
    secret or ""].
    """
    return (
        webhook(target[0], target[1], agent)
        if destination == "webhook"
        else Syslog(target[0], agent)
    )


def webhook(url: str, secret: str, agent: str):
    """Return a function that posts records to *url*."""

    def deliver(batch: list):
        from clawlite.linux.net import http_post  # its own function is called deliver, too

        body = '{"agent":%s,"records":[%s]}' % (
            dumps(agent),
            ",".join(
                ['{"hash":"%s","record":%s}' % (hash, line.decode()) for _, hash, line in batch]
            ),
        )
        http_post.deliver(url, agent, secret, body.encode())

    return deliver


class Syslog:
    """The way to one syslog; *place*: path of a socket, or "udp://HOST:PORT"."""

    def __init__(self, place: str, agent: str):
        self._place, self._agent = place, agent
        self._socket = None

    def __call__(self, batch: list):
        try:
            if self._socket is None:
                self._socket = _connect(self._place)
            for n, hash, line in batch:
                self._send(n, hash, line)
        except OSError:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            raise

    def _send(self, n: int, hash: str, line: bytes):
        try:
            self._socket.send(message(self._agent, n, hash, line))
        except OSError as e:
            if e.errno != errno.EMSGSIZE:
                raise
            record = {key: value for key, value in loads(line).items() if key not in _LONG}
            self._socket.send(message(self._agent, n, hash, dumps(dict(record, cut=True)).encode()))


def message(agent: str, n: int, hash: str, line: bytes) -> bytes:
    """Return the syslog message of a record (RFC 5424, section 6)."""
    record = loads(line)
    severity = INFO if record.get("status") in (None, "ok") and not record.get("found") else WARNING
    head = '<%d>1 %s %s clawlite %d %s [%s agent="%s" n="%d" hash="%s"] ' % (
        FACILITY * 8 + severity,
        _word(record.get("time"), 32),
        _word(os.uname().nodename, 255),
        os.getpid(),
        _word(record.get("event"), 32),
        _PLACE,
        agent.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]"),
        n,
        hash,
    )
    return head.encode() + line


def _word(text, most: int) -> str:
    """Return *text* as a field of printable ASCII, "-" for none."""
    kept = "".join([c for c in str(text or "") if "!" <= c <= "~"])[:most]
    return kept or "-"


def _connect(place: str):
    if place.startswith("/"):
        one = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        address = place
    else:
        host, _, port = place[6:].rpartition(":")
        family, _, _, _, address = _socket.getaddrinfo(
            host.strip("[]"), int(port), 0, _socket.SOCK_DGRAM
        )[0]
        one = _socket.socket(family, _socket.SOCK_DGRAM)
    try:
        one.settimeout(TIMEOUT_MS / 1000)
        one.connect(address)
    except OSError:
        one.close()
        raise
    return one
