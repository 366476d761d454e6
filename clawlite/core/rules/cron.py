"""A Channel of type cron (CKP 0.2.0, 5.3) as a rule of the engine, whose call is a turn: the same
on Linux and on boards.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.rules import table

# the channel's own part of its record (host/channels/cron.py).  GIVES_UP: whether a run in which a
# tool with side effects had begun is not begun again, None where clawlite.toml does not say
SCHEDULE, MASKS, ZONE, MISSED, TEXT, GIVES_UP, CHANGES = range(7)


def make_rule(name: str, own: list) -> list:
    """Return the rule (table.py) of the channel *name*."""
    return [name, [table.AT, [own[MASKS]]], [], None, [], None, 0, own[MISSED], []]


def make_clock(own: list) -> list:
    """Return the CLOCK of the section of a channel's rule."""
    return [own[ZONE], own[CHANGES], "", None]


def make_text(own: list, at_s: int, offset_s: int) -> str:
    """Return the text that begins the turn of the time *at_s*, where clocks are *offset_s* ahead of
    UTC.
    """
    local = iso8601(at_s + offset_s)
    return own[TEXT] or "The schedule %s has come: it is %s %s (%s)." % (
        own[SCHEDULE],
        local[:10],
        local[11:16],
        own[ZONE],
    )
