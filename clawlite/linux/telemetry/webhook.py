"""Telemetry to a URL of one's own (exporter type ``webhook``), and the request that every exporter
over HTTP makes.
"""

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.telemetry.event import strip_ns

TIMEOUT_MS = 10000


def webhook(endpoint: str, secret: str, about):
    """Return a sink that posts {"agent": name, "events": [...]} to *endpoint*."""

    def sink(events: list):
        post(
            endpoint,
            secret,
            about,
            {"agent": about.name, "events": [strip_ns(event) for event in events]},
        )

    return sink


def post(url: str, secret: str, about, body: dict):
    """Post *body* as JSON, with *secret* (its name, or "") as bearer.  Raises ``ClawError`` for
    any answer but 2xx.
    """
    from clawlite.linux.net.http_post import post as send

    headers = [("Content-Type", "application/json")]
    if secret:
        from clawlite.linux.secrets.secrets import resolve, stores

        headers.append(("Authorization", "Bearer " + resolve(secret, stores(about.name))))
    status = send(url, headers, dumps(body).encode(), TIMEOUT_MS)
    if not 200 <= status < 300:
        raise ClawError(
            "%s answered %d" % (url, status),
            "check the address in the manifest, and the log of the receiver",
        )
