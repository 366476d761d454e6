"""What clawlite.toml says of channels: the sections [cron], [webhook], [telegram] and [mqtt],
and time_zone.
"""

import re
from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.models.common import Strict, Text, text_like

_ZONE = re.compile(r"UTC|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}")


class Cron(Strict):
    """Channels of type cron.

    missed    what is done about runs that were due while nothing ran: one for all, none, or each
    messages  {name of a Channel: what begins its turns}
    """

    missed: Literal["once", "skip", "all"] = "once"
    messages: dict[str, Text] | None = None


class Webhook(Strict):
    """Where channels of type webhook listen: an address of this machine and a port."""

    address: Annotated[
        str,
        text_like(
            r"([0-9.]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}\Z", "an address and a port", "127.0.0.1:8787"
        ),
    ] = "127.0.0.1:8787"


class Telegram(Strict):
    """Where the Bot API is asked: another server of it than Telegram's own."""

    base_url: Annotated[
        str,
        text_like(
            r"https?://[^\s?#@/]+(/[^\s?#]*)?\Z",
            "a URL without a query",
            "https://api.telegram.org",
        ),
    ] = "https://api.telegram.org"


class Mqtt(Strict):
    """The broker of channels of type queue; the password of *user* is what the Channel's secret_ref
    names.

    plain          the password may go over a line without TLS
    client_id      what begins the name of each Channel's session at the broker
    clean_session  what comes while nothing runs is not kept
    replies        {name of a Channel: the topic of what its turns say}
    """

    address: Annotated[
        str,
        text_like(
            r"^mqtts?://[^\s?#@/]+\Z",
            "mqtt://HOST or mqtts://HOST, and perhaps :PORT",
            "mqtts://broker.example.com",
        ),
    ] = "mqtt://127.0.0.1"
    user: Text | None = None
    plain: bool = False
    client_id: (
        Annotated[
            str,
            text_like(
                r"^[0-9A-Za-z_.-]{1,64}\Z", "1 to 64 letters, digits, - . and _", "greenhouse"
            ),
        ]
        | None
    ) = None
    qos: Annotated[int, Meta(ge=0, le=1)] = 1
    clean_session: bool = False
    replies: dict[str, Text] | None = None


def zone_problem(name: str) -> str:
    """Return what is wrong with the name of a time zone, "" for nothing that is known here."""
    if not _ZONE.fullmatch(name):
        return "expected the name of a time zone, such as Europe/Berlin or UTC"
    from zoneinfo import ZoneInfo, available_timezones

    if name == "UTC" or not available_timezones():  # a laptop without them cannot say
        return ""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return "there is no such time zone"
    return ""
