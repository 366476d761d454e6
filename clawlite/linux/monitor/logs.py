"""``clawlite logs``: what the agents of this machine do, from their logs, and with ``-f`` as it
happens, over their control sockets.
"""

import select
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import document, dumps
from clawlite.linux.io.printing import print_note
from clawlite.linux.monitor.agent_line import HINT, AgentGone, AgentLine, find_agents
from clawlite.linux.monitor.colour import has_colour
from clawlite.linux.monitor.event_line import show_event
from clawlite.linux.monitor.events import Filter, read_events

_AGAIN_S = 2  # between attempts to reach an agent that has gone
_EVENT = "claw.log.event"


def show(agents, follow: bool, count: int, events, tools, statuses, as_json: bool) -> int:
    """Show the last *count* events of each agent; return the exit code.  Raises ``ClawError``.

    agents  names; none: all of this machine
    follow  go on with what happens, until Ctrl-C
    """
    names, chosen = find_agents(agents), Filter(events, tools, statuses)
    if not names:
        raise ClawError("no agent was started here yet", "clawlite run, or clawlite logs FILE")
    printer = _Printer(names, as_json)
    if follow:
        return _follow(names, chosen, count, printer)
    found = [
        (name, event)
        for name in names
        for event in [event for event in read_events(name) if chosen.fits(event)][-count:]
    ]
    found.sort(key=lambda pair: str(pair[1].get("timestamp")))
    if as_json:
        print(document([{**event, "agent": name} for name, event in found]))
        return 0
    for name, event in found:
        printer.show(name, event)
    if not found:
        print_note("Nothing of that is in the log.")
    return 0


class _Printer:
    """Prints events, a line each."""

    def __init__(self, names: list, as_json: bool):
        self._is_one, self._as_json = len(names) == 1, as_json
        self._width = max(len(name) for name in names)
        self._is_coloured = has_colour()

    def show(self, name: str, event: dict):
        if self._as_json:
            from clawlite.protocols.base.json_escapes import escape_json

            line = escape_json(dumps({**event, "agent": name}))
        else:
            shown = "" if self._is_one else name
            line = show_event(shown, event, self._is_coloured, self._width)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _follow(names: list, chosen: Filter, count: int, printer: _Printer) -> int:
    try:
        followed = [_Followed(name, chosen, printer) for name in names]
        for one in followed:
            one.open(count)
        if not any(one.line for one in followed):
            raise ClawError("no agent here has a control socket: %s" % ", ".join(names), HINT)
        while True:
            for one in followed:
                one.poll()
            lines = [one.line for one in followed if one.line]
            is_waiting = len(lines) < len(followed)
            select.select(lines, [], [], _AGAIN_S if is_waiting else None)
    except KeyboardInterrupt:
        return 130


class _Followed:
    """The log of one agent, followed."""

    def __init__(self, name: str, chosen: Filter, printer: _Printer):
        self.line: AgentLine | None = None
        self._name, self._chosen, self._printer = name, chosen, printer
        self._shown: list = []  # events of the file that the line may bring again
        self._try_s = 0.0
        self._is_lost = False

    def open(self, count: int):
        """Begin to follow, after the last *count* events of the file."""
        self._try_s = time.monotonic() + _AGAIN_S
        try:
            line = AgentLine(self._name, "admin")
            line.ask("claw.log.subscribe")
        except AgentGone:
            if not self._is_lost and count:
                self._is_lost = True
                print_note("%s: no control socket yet" % self._name)
            return
        if self._is_lost:
            print_note("%s: is back" % self._name)
        self.line, self._is_lost = line, False
        events = read_events(self._name) if count else []
        self._shown = events[-50:]
        for event in [event for event in events if self._chosen.fits(event)][-count:]:
            self._printer.show(self._name, event)

    def poll(self):
        """Show what has come."""
        if self.line is None:
            if time.monotonic() >= self._try_s:
                self.open(0)
            return
        try:
            messages = self.line.read()
        except AgentGone:
            self.line, self._is_lost = None, True
            print_note("%s: has ended; it is looked for again" % self._name)
            return
        for message in messages:
            if message.get("method") == _EVENT and isinstance(message.get("params"), dict):
                self._take(message["params"])

    def _take(self, event: dict):
        plain = {key: value for key, value in event.items() if key != "why"}
        if plain in self._shown:  # it was written while the file was read
            self._shown.remove(plain)
        elif isinstance(event.get("event"), str) and self._chosen.fits(event):
            self._shown = []  # events come in order: what follows is new
            self._printer.show(self._name, event)
