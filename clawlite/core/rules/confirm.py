"""What must follow a call: a reading that passes a threshold within a time (docs/rules.md, "Effects
that are checked").  The same on Linux and on boards.

1. It is a step of the one pipeline (gates.py, ``run_confirmed``), for the calls that the image
   names.  The time counts from the handler's start, and goes on when the handler has ended.
2. The reading is read by itself, beside the handler, at least every 500 ms.  Its calls pass policy
   like those of any reading.  Each look is a task of its own, so that one that hangs ends in time.
3. It is confirmed once the reading has passed its threshold.  When the time is over before, or the
   reading fails, the handler is ended, the pins go to their safe state, the call is an error, and
   who began it is told of it (``on_failure``), or else the admins.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import CANCEL, JOIN, SLEEP, TELL, Result
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_ends
from clawlite.core.base.render import canonical
from clawlite.core.providers.reflex import is_number
from clawlite.core.rules import table
from clawlite.core.rules.act import read
from clawlite.core.turns.tool_result import result_of

_LOOK_MS = const(400)  # between two looks
_ANSWER_MS = const(250)  # a look that began in time may take so much longer
_WRITES = ("digital-write", "pwm-write")  # the handlers that set the pin of their argument


class Confirms:
    """What must follow the calls of one agent.

    agent   ``agent.Agent``
    rows    the section of the image
    now_ms  function -> monotonic ms
    pins    the bank of pins (core/image/pins.py), or None

    on_failure  list of functions(caller, text) -> whether that is told to people; who wants to know
                adds one
    """

    def __init__(self, agent, rows: list, now_ms, pins):
        self.agent, self.now_ms, self.pins = agent, now_ms, pins
        self.on_failure = []
        self._rows = rows

    def concerns(self, tool) -> bool:
        """Return whether some call of *tool* must be followed by something."""
        for row in self._rows:
            if (
                row[table.OF_TOOL] == tool.name
                or row[table.OF_TOOL] is None
                and tool.handler[1] in _WRITES
            ):
                return True
        return False

    def begin(self, call):
        """Return the ``Watch`` of *call*, None when nothing must follow it."""
        rows = []
        for row in self._rows:
            if (
                row[table.OF_TOOL] == call.tool.name
                or row[table.OF_TOOL] is None
                and self._sets(call, row[table.OF_PIN])
            ):
                rows.append(row)
        return Watch(self, call, rows) if rows else None

    def _sets(self, call, pin: str) -> bool:
        """Return whether *call* switches *pin* on: takes it out of its safe state."""
        arguments = call.arguments
        return (
            call.tool.handler[1] in _WRITES
            and arguments.get("pin") == pin
            and arguments.get("value") != self.pins.safe_level(pin)
        )

    def tell_failure(self, caller: str, text: str):
        """Tell who began the call, or else the admins."""
        told = False
        for tell in self.on_failure:
            told = tell(caller, text) or told
        if told:
            return
        setup, text = self.agent.setup, escape_ends("%s (called by %s)" % (text, caller))
        self.agent.effects.append((TELL, text))
        if setup.channels:
            setup.channels.tell_admins(text)


class Watch:
    """The looks that belong to one call.  It is what a JOIN of the call's task gives its number
    to (``append``).
    """

    error = None  # ``ClawError``: it is not confirmed
    number = None  # of the call's task
    _waits = False  # the call's task waits for the end of the looks

    def __init__(self, confirms, call, rows: list):
        self._confirms, self._call, self._rows = confirms, call, rows
        self._left = len(rows)  # what is not confirmed yet
        self._found = []
        self._began_ms = confirms.now_ms()

    def work(self, run_handler):
        """Run the handler; a generator of effects that returns the ``Result`` of the call."""
        call = self._call
        try:
            yield (JOIN, self)
            step = run_handler(call, None)
            while type(step) is not Result:
                if type(step) is tuple:
                    step = run_handler(call, (yield step))
                else:
                    step = yield from step
            if step.is_error and self.error is None:  # the handler has failed by itself
                return step
            while not self._is_over():
                yield (JOIN, self)
        finally:
            self._left = 0  # nothing is looked at any more, however this ended
        if self.error:
            self._make_safe()  # once more: the handler may have done something at its end
            step = result_of(call.tool, (False, self.error), call.setup, call.event)
            self._found = [step.text]
            self._confirms.tell_failure(call.event["caller"], step.text)
        call.event["confirm"] = "; ".join(self._found)
        return step

    def append(self, number: int):
        """The call's task, *number*, waits: first for its number, then for the end of the looks."""
        if self.number is None:
            self.number = number
            self._began_ms = self._confirms.now_ms()
            self._go_on()
            for row in () if self._is_over() else self._rows:
                self._look(row, min(_LOOK_MS, row[table.WITHIN_MS]), True)
        elif not self._is_over():
            self._waits = True
        else:
            self._go_on()

    def _is_over(self) -> bool:
        return self._left == 0 or self.error is not None

    def _go_on(self):
        self._waits = False
        self._confirms.agent.complete(self.number, (True, None), self._confirms.now_ms())

    def _look(self, row: list, wait_ms: int, is_first: bool):
        """Read once, in *wait_ms*."""
        started = []

        def finish(value, error, now_ms):
            if self._is_over():
                return
            if error and not started:  # the loop stood still for so long: look at once
                self._look(row, 0, False)
            else:
                self._judge(row, value, error, now_ms - self._began_ms)

        confirms = self._confirms
        rest_ms = self._began_ms + row[table.WITHIN_MS] - confirms.now_ms()
        budget_ms = max(rest_ms, wait_ms) + _ANSWER_MS
        try:
            confirms.agent.begin(
                self._read(row[table.READING], wait_ms, started),
                finish,
                confirms.now_ms(),
                budget_ms,
            )
        except ClawError as e:  # too much is under way
            self._fail(row, "%s cannot be read: %s" % (row[table.READING][table.NAME], e.message))

    def _read(self, record: list, wait_ms: int, started: list):
        if wait_ms > 0:
            yield (SLEEP, wait_ms)
        started.append(True)
        if self._is_over():
            return None
        if record[table.TOOL] is None:
            return self._confirms.pins.read(record[table.PIN])
        return (yield from read(self._call.setup, record, {"status": "ok"}))

    def _judge(self, row: list, value, error, passed_ms: int):
        """Take what a look has found."""
        wanted = "%s %s %s within %d ms" % (
            row[table.READING][table.NAME],
            "below" if row[table.IS_UNDER] else "above",
            row[table.THRESHOLD],
            row[table.WITHIN_MS],
        )
        if error or value is None:
            reason = getattr(error, "message", "it returned no such value")
            if error and passed_ms >= row[table.WITHIN_MS]:
                reason = "it did not answer in time"
            self._fail(row, "%s is not confirmed, because it fails: %s" % (wanted, reason))
            return
        number = int(value) if isinstance(value, bool) else value
        if is_number(number) and (
            number < row[table.THRESHOLD] if row[table.IS_UNDER] else number > row[table.THRESHOLD]
        ):
            self._found.append("%s: it was %s after %d ms" % (wanted, canonical(value), passed_ms))
            self._left -= 1
            if not self._left and self._waits:
                self._go_on()
        elif passed_ms >= row[table.WITHIN_MS]:
            self._fail(row, "%s is not confirmed: it is %s" % (wanted, canonical(value, 60)))
        else:
            self._look(row, min(_LOOK_MS, row[table.WITHIN_MS] - passed_ms), False)

    def _fail(self, row: list, text: str):
        """End the handler: it is not confirmed."""
        self.error = ClawError(text, "look at what it moves, and at the sensor")
        wrong = self._make_safe()
        if wrong:
            self.error.message += "; " + wrong
        confirms = self._confirms
        if self._waits:
            self._go_on()
        else:
            confirms.agent.effects.append((CANCEL, self.number))
            confirms.agent.complete(self.number, (False, self.error), confirms.now_ms())

    def _make_safe(self) -> str:
        """Switch off the pins of all rows; return what could not be."""
        failed, pins = [], self._confirms.pins
        for row in self._rows:
            for name in row[table.MAKE_SAFE]:
                try:
                    pins.write(name, pins.safe_level(name))
                except (ClawError, OSError) as e:
                    failed.append("pin %s could not be switched off: %s" % (name, e))
        return "; ".join(failed)
