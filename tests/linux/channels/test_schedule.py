"""Cron schedules: the fields as people write them, and the times that they mean, over changes of
the clocks.
"""

import random
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from clawlite.core.rules.schedule import Schedule
from clawlite.core.teach.cron_fields import MAX_TEXT, parse

BERLIN = ZoneInfo("Europe/Berlin")


def offset_in(zone):
    """Return the function for ``Schedule`` of *zone*, a ``tzinfo``."""
    return lambda at_s: int(datetime.fromtimestamp(at_s, zone).utcoffset().total_seconds())


def seconds(text: str, zone=timezone.utc, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp())


def times(schedule: str, start: str, count: int, zone=timezone.utc) -> list:
    found, at = [], seconds(start, zone)
    for _ in range(count):
        at = Schedule(parse(schedule), offset_in(zone)).after(at)
        found.append(datetime.fromtimestamp(at, zone).strftime("%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    "schedule, found",
    [
        ("* * * * *", ["03-01 00:01", "03-01 00:02"]),
        ("*/20 * * * *", ["03-01 00:20", "03-01 00:40", "03-01 01:00"]),
        ("0 */6 * * *", ["03-01 06:00", "03-01 12:00"]),
        ("30 7 * * MON-FRI", ["03-02 07:30", "03-03 07:30"]),
        ("0 0 13 * 5", ["03-06 00:00", "03-13 00:00", "03-20 00:00"]),
        ("5,7-9 3 1 JAN *", ["01-01 03:05", "01-01 03:07", "01-01 03:08"]),
        ("0 12 * * 7", ["03-01 12:00", "03-08 12:00"]),
        ("0 12 * * 0", ["03-01 12:00"]),
        ("0 0 29 2 *", ["02-29 00:00"]),
        ("10/25 5 * * *", ["03-01 05:10", "03-01 05:35"]),
        ("@hourly", ["03-01 01:00"]),
        ("@weekly", ["03-08 00:00"]),
        ("@yearly", ["01-01 00:00"]),
        ("0 0 31 * *", ["03-31 00:00", "05-31 00:00"]),
        ("0 0 */10 * MON", ["05-11 00:00", "06-01 00:00"]),
        ("59 23 31 12 *", ["12-31 23:59"]),
    ],
)
def test_times(schedule, found):  # 2026-03-01 is a Sunday
    assert times(schedule, "2026-03-01T00:00", len(found)) == found


@pytest.mark.parametrize(
    "text, said",
    [
        ("* * * *", "got 4"),
        ("* * * * * *", "got 6"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * 32 * *", "day of the month"),
        ("* * * 13 *", "JAN to DEC"),
        ("* * * * 8", "day of the week"),
        ("*/0 * * * *", "step"),
        ("5-3 * * * *", "backwards"),
        ("x * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("1- * * * *", "minute"),
        ("*/60 * * * *", "step"),
        ("0 0 30 2 *", "never"),
        ("0 0 31 4,6,9,11 *", "never"),
        ("٣ * * * *", "minute"),
        (", * * * *", "minute"),
        ("* * * * *" + " " * MAX_TEXT, "at most"),
    ],
)
def test_what_is_no_schedule(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_the_longest_schedule():
    assert parse("* * * * *" + " " * (MAX_TEXT - 9)) == parse("* * * * *")


def test_spring_runs_what_is_skipped_once_after_it():
    assert times("30 2 * * *", "2026-03-28T12:00", 2, BERLIN) == ["03-29 03:00", "03-30 02:30"]
    assert times("0 3 * * *", "2026-03-28T12:00", 2, BERLIN) == ["03-29 03:00", "03-30 03:00"]
    assert times("*/30 * * * *", "2026-03-29T01:00", 3, BERLIN) == [
        "03-29 01:30",
        "03-29 03:00",
        "03-29 03:30",
    ]


def test_autumn_runs_once_what_comes_twice():
    assert times("30 2 * * *", "2026-10-24T12:00", 2, BERLIN) == ["10-25 02:30", "10-26 02:30"]
    at = seconds("2026-10-25T01:59", BERLIN)
    found = []
    for _ in range(4):
        at = Schedule(parse("*/30 * * * *"), offset_in(BERLIN)).after(at)
        found.append(at)
    assert [late - early for early, late in zip(found, found[1:])] == [1800] * 3


def test_a_midnight_that_does_not_exist():
    zone = ZoneInfo("America/Sao_Paulo")  # 2018-11-04 began at 01:00
    assert times("0 0 * * *", "2018-11-03T12:00", 2, zone) == ["11-04 01:00", "11-05 00:00"]
    assert times("0 9 4 11 *", "2018-01-01T00:00", 1, zone) == ["11-04 09:00"]


def test_against_looking_at_every_minute():
    """In UTC, where no clock is changed: what a walk over all minutes of a month finds."""
    dice = random.Random(7)
    start = seconds("2027-12-20T00:00")
    for _ in range(60):

        def field(least, most):
            return dice.choice(
                [
                    "*",
                    "*/%d" % dice.randint(1, most),
                    "%d" % dice.randint(least, most),
                    "%d-%d" % (least, dice.randint(least, most)),
                ]
            )

        text = " ".join([field(0, 59), field(0, 23), field(1, 28), "*", field(0, 6)])
        masks = parse(text)
        expected = [
            at
            for at in range(start + 60, start + 86400 * 31, 60)
            if _matches(masks, datetime.fromtimestamp(at, timezone.utc))
        ][:20]
        found, at = [], start
        while len(found) < len(expected):
            at = Schedule(masks, offset_in(timezone.utc)).after(at)
            found.append(at)
        assert found == expected, text


def _matches(masks: list, at: datetime) -> bool:
    day, week = masks[2] >> at.day & 1, masks[4] >> (at.isoweekday() % 7) & 1
    return bool(
        masks[0] >> at.minute & 1
        and masks[1] >> at.hour & 1
        and masks[3] >> at.month & 1
        and (day or week if masks[5] else day and week)
    )


def test_a_schedule_that_never_comes_ends_the_search():
    assert (
        Schedule([1, 1, 1 << 30, 1 << 2, 0x7F, False, False], offset_in(timezone.utc)).after(
            seconds("2026-01-01T00:00")
        )
        is None
    )
    assert timedelta(days=366 * 8) > timedelta(days=2921)
