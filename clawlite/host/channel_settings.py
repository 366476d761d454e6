"""What clawlite.toml says of channels: the sections [cron], [webhook] and [telegram], and time_zone."""
import re
from typing import Annotated, Literal

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
    address: Annotated[str, text_like(r"([0-9.]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}\Z", "an address and a port", "127.0.0.1:8787")] = "127.0.0.1:8787"


class Telegram(Strict):
    """Where the Bot API is asked: another server of it than Telegram's own."""
    base_url: Annotated[str, text_like(r"https?://[^\s?#@/]+(/[^\s?#]*)?\Z", "a URL without a query", "https://api.telegram.org")] = "https://api.telegram.org"


def zone_problem(name: str) -> str:
    """Return what is wrong with the name of a time zone, "" for nothing that is known here."""
    if not _ZONE.fullmatch(name):
        return "expected the name of a time zone, such as Europe/Berlin or UTC"
    from zoneinfo import ZoneInfo, available_timezones
    if name == "UTC" or not available_timezones():      # a laptop without them cannot say
        return ""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return "there is no such time zone"
    return ""
