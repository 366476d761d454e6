"""Civil time from epoch seconds, without a library: MicroPython's epoch is 1970 on one port and 2000 on another."""


def iso8601(epoch_s: int) -> str:
    """Return *epoch_s* (seconds since 1970-01-01T00:00:00Z, >= 0) as ``2026-02-22T10:30:00Z``.

    Source  the days-from-civil algorithm of H. Hinnant, years counted from March.
    """
    days, rest = divmod(epoch_s, 86400)
    days += 719468
    era, day_of_era = divmod(days, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    year = year_of_era + era * 400 + (month <= 2)
    return "%04d-%02d-%02dT%02d:%02d:%02dZ" % (year, month, day, rest // 3600, rest // 60 % 60, rest % 60)
