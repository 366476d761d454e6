"""What clawlite.toml says of channels: the sections [cron], and time_zone."""
import re
from typing import Literal

from clawlite.host.models.common import Strict, Text

_ZONE = re.compile(r"UTC|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}")


class Cron(Strict):
    """Channels of type cron.

    missed    what is done about runs that were due while nothing ran: one for all, none, or each
    messages  {name of a Channel: what begins its turns}
    """
    missed: Literal["once", "skip", "all"] = "once"
    messages: dict[str, Text] | None = None


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
