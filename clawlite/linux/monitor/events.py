"""The events of an agent's log, as they lie in its two files, and which of them a person wants."""

import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import loads
from clawlite.linux.records.call_record import read_lines

_FILES = ("log.jsonl.1", "log.jsonl")


def read_events(agent: str) -> list:
    """Return the events of the log of *agent*, the earliest first; a line that was cut is left
    out.  Raises ``ClawError``.
    """
    found, folder = [], files.state_folder(agent)
    for name in _FILES:
        events = map(_event, read_lines(os.path.join(folder, name)))
        found += [event for event in events if event is not None]
    return found


def _event(line: bytes):
    try:
        event = loads(line) if line else None
    except ClawError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


class Filter:
    """Which events are shown.  Of each option, one value has to fit; without values, all do.

    events    names, or their beginnings: "tool" means tool.call and tool.approval
    tools     names of tools
    statuses  as an event has them, and the answers to approvals
    """

    def __init__(self, events=(), tools=(), statuses=()):
        self._events, self._tools, self._statuses = events, tools, statuses

    def fits(self, event: dict) -> bool:
        name = event["event"]
        return (
            (not self._events or any(_begins(name, one) for one in self._events))
            and (not self._tools or event.get("tool") in self._tools)
            and (
                not self._statuses
                or event.get("status") in self._statuses
                or event.get("answer") in self._statuses
            )
        )


def _begins(name: str, part: str) -> bool:
    return name == part or name.startswith(part.rstrip(".") + ".")
