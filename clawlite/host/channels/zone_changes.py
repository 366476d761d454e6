"""The changes of the clocks of a time zone, compiled into an image: a board has no data base of
zones, and both runtimes keep the same time.
"""

import datetime
import os
import time
import zoneinfo

YEARS = 10
_DAY = 86400


def changes_of(name: str, first_year: int) -> list:
    """Return [[from: epoch s, offset: s], ...] of the zone *name* for ``YEARS`` years from
    *first_year* on: the first offset, and each change.
    """
    if name == "UTC":
        return [[0, 0]]
    zone = zoneinfo.ZoneInfo(name)

    def offset(at: int) -> int:
        ahead = datetime.datetime.fromtimestamp(at, zone).utcoffset()
        return int(ahead.total_seconds()) if ahead else 0

    at = _start_of(first_year)
    found, end = [[at, offset(at)]], _start_of(first_year + YEARS)
    while at < end:
        if offset(at + _DAY) != found[-1][1]:
            low, high = at, at + _DAY
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == found[-1][1] else (low, middle)
            found.append([high, offset(high)])
        at += _DAY
    return found


def changes_or_none(name: str) -> list:
    """Return ``changes_of`` for the years from this build on; those of UTC for a zone that nobody
    knows, which the check of time_zone reports.
    """
    try:
        return changes_of(name, first_year())
    except (KeyError, ValueError, OSError):
        return [[0, 0]]


def first_year() -> int:
    """Return the year of this build: that of SOURCE_DATE_EPOCH where it is set."""
    wanted = os.environ.get("SOURCE_DATE_EPOCH", "")
    return time.gmtime(int(wanted) if wanted.isdigit() else time.time()).tm_year


def tzdata_version() -> str:
    """Return the version of the data base of zones that this machine has, "" where it does not
    say.
    """
    for folder in zoneinfo.TZPATH:
        for name in ("tzdata.zi", "+VERSION"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    return file.readline().removeprefix("# version ").strip()[:32]
            except (OSError, UnicodeError):
                continue
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tzdata")
    except PackageNotFoundError:
        return ""


def _start_of(year: int) -> int:
    return int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp())
