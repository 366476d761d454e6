"""Sunrise and sunset of a place, compiled into a table of weeks: a device interpolates in it and
computes no angles, and its floats may have 32 bits.

Source  the equations of the NOAA Solar Calculator (declination and equation of time as Fourier
        series of the day of the year; zenith 90.833 degrees).  They are right to a minute or two
        between the polar circles.
"""

import math

WEEKS = 53
_ZENITH = math.radians(90.833)


def table_of(latitude: float, longitude: float) -> list:
    """Return [[sunrise, sunset] or None, ...] of each week of a year, in minutes after 00:00 UTC of
    the local date; None where the sun does not rise or does not set.

    latitude, longitude  degrees, north and east of 0 are positive
    """
    return [_of_day(7 * week, latitude, longitude) for week in range(WEEKS)]


def _of_day(day: int, latitude: float, longitude: float) -> list | None:
    """Return the times of *day*, counted from 0 for 1 January."""
    angle = 2 * math.pi / 365 * day
    equation = 229.18 * (
        0.000075
        + 0.001868 * math.cos(angle)
        - 0.032077 * math.sin(angle)
        - 0.014615 * math.cos(2 * angle)
        - 0.040849 * math.sin(2 * angle)
    )
    declination = (
        0.006918
        - 0.399912 * math.cos(angle)
        + 0.070257 * math.sin(angle)
        - 0.006758 * math.cos(2 * angle)
        + 0.000907 * math.sin(2 * angle)
        - 0.002697 * math.cos(3 * angle)
        + 0.00148 * math.sin(3 * angle)
    )
    north = math.radians(latitude)
    cosine = math.cos(_ZENITH) / (math.cos(north) * math.cos(declination)) - math.tan(
        north
    ) * math.tan(declination)
    if not -1 < cosine < 1:
        return None
    half = math.degrees(math.acos(cosine))
    return [round(720 - 4 * (longitude + side * half) - equation) for side in (1, -1)]
