"""Pins of this machine, real ones on a Raspberry Pi and simulated ones elsewhere, and how outputs
are switched off.

1. On a Pi every pin is real, even where the manifest says how to simulate it: no setting can make
   a real pump run in simulation only (ADR 0052).
2. Outputs are in their safe state when the bank is made, when a handler fails or is ended, and when
   the agent ends.  A process that is killed (-9) switches nothing off: the next start does.
3. A pin that is missing or in use is reported when the image is loaded, not when a tool needs it.
"""

import sys
import time

from clawlite.core.base.effect import IS_OK, VALUE
from clawlite.core.base.errors import ClawError
from clawlite.core.image.pins import (
    ADC,
    DRIVEN,
    INPUT,
    OPEN_DRAIN,
    OUTPUT,
    PULL_DOWN,
    PULL_UP,
    PWM,
    Bank,
    SimulatedPins,
)
from clawlite.core.turns.handlers import Handlers

_KIND, _, _, _HELD = range(4)  # positions in a pin of the bank


def bank_of(rows: list, now_ms):
    """Return the pins of the image's section PINS, *rows*.  Raises ``ClawError``."""
    from clawlite.linux.hardware.buses import is_raspberry_pi

    return Pins(rows) if rows and is_raspberry_pi() else SimulatedPins(rows, now_ms)


class Pins(Bank):
    """Real pins: the contract of core/image/pins.py.

    rows    as for ``SimulatedPins``; how a pin is simulated is of no use here
    kernel  ``gpio.Kernel``
    """

    simulated = False

    def __init__(self, rows: list, kernel=None):
        from clawlite.linux.hardware import analog, gpio

        kernel = kernel or gpio.Kernel()
        self.names, self._pins, self._outputs, self._chip = [], {}, [], None
        flags = {
            OUTPUT: gpio.OUTPUT,
            OPEN_DRAIN: gpio.OUTPUT | gpio.OPEN_DRAIN,
            PULL_UP: gpio.INPUT | gpio.PULL_UP,
            PULL_DOWN: gpio.INPUT | gpio.PULL_DOWN,
        }
        try:
            for name, number, kind, _, _, _, settle_ms, safe, hertz in rows:
                if kind == ADC:
                    held = analog.ADC(name, number, kernel.root)
                elif kind == PWM:
                    held = analog.PWM(name, number, hertz, safe, kernel.root)
                else:
                    self._chip = self._chip or gpio.Chip(kernel)
                    held = self._chip.line(name, number, flags.get(kind, gpio.INPUT), safe)
                self._pins[name] = (kind, number, safe, held, settle_ms)
                self.names.append(name)
                if kind in DRIVEN:
                    self._outputs.append((name, held, safe))
        except BaseException as e:
            self.release()
            raise (
                e
                if not isinstance(e, OSError)
                else ClawError("pin %s: %s" % (name, e), "clawlite doctor tells what is wrong here")
            )

    def settle(self, name: str, level: int) -> tuple:
        """Return (the value of a pin that *level* was written to, whether that may be so).  Only a
        plain output must have its level, after its settle time at the latest.
        """
        kind, _, _, held, left_ms = self._pin(name)
        found = held.read()
        while kind == OUTPUT and found != level:
            if left_ms <= 0:
                return found, False
            # each ms is a look: on a busy machine a sleep is longer, and the looks are as many
            time.sleep(0.001)
            left_ms -= 1
            found = held.read()
        return found, True

    def lines(self, names: list) -> dict:
        """Return {name: ``gpio.Line``} of those of *names* that are inputs."""
        inputs = (INPUT, PULL_UP, PULL_DOWN)
        return {
            name: self._pins[name][_HELD] for name in names if self._pins[name][_KIND] in inputs
        }

    def drive(self, name: str, hertz: int, duty: int):
        """Drive a PWM pin with *hertz* and *duty*, 0..65535 of full.  Raises ``OSError``."""
        self._pin(name)[_HELD].drive(hertz, duty)

    def off(self):
        """Switch every output off, to its safe state, also when one of them fails.  Raises
        ``ClawError`` that names those that could not be switched off.
        """
        failed = []
        for name, held, safe in self._outputs:
            try:
                held.write(safe)
            except OSError as e:
                failed.append("%s (%s)" % (name, e.strerror))
        if failed:
            raise ClawError("could not be switched off: %s" % ", ".join(failed), "cut its power")

    def release(self):
        """Give the pins back, as the end of the process does."""
        self._outputs = []
        for _, _, _, held, _ in self._pins.values():
            try:
                held.close()
            except OSError:  # the device has been unplugged
                pass
        self._pins = {}
        if self._chip:
            self._chip.close()
            self._chip = None

    def _value(self, pin: tuple) -> int:
        return pin[_HELD].read()

    def _set(self, pin: tuple, value: int):
        pin[_HELD].write(value)


class PinHandlers(Handlers):
    """Handlers on pins: each failure, and the end of the agent, switches every output off."""

    def start(self, task: int, tool, arguments: dict, due_ms, now_ms: int):
        outcome = super().start(task, tool, arguments, due_ms, now_ms)
        return (
            outcome if outcome is None or outcome[IS_OK] is not False else self._make_safe(outcome)
        )

    def poll(self, now_ms: int) -> list:
        return [
            (task, outcome if outcome[IS_OK] is not False else self._make_safe(outcome))
            for task, outcome in super().poll(now_ms)
        ]

    def cancel(self, task: int):
        if self.is_busy:
            # at once, before the handler's own cleanup runs
            self._report(self._board.off)
            super().cancel(task)
            self._report(self._board.off)

    def close(self):
        self._report(self._board.off)
        super().close()
        self._report(self._board.off)  # the pins stay requested: the agent may recover from ERROR

    @property
    def bank(self):
        """The pins."""
        return self._board

    def read_pin(self, name: str) -> int:
        """Return the value of a pin, for readings and rules.  Raises ``SandboxDenied``,
        ``OSError``.
        """
        return self._board.read(name)

    def _make_safe(self, outcome: tuple) -> tuple:
        """Switch all outputs off, and return *outcome*, a failure, which then also names the
        outputs that could not be switched off."""
        try:
            self._board.off()
        except ClawError as e:
            return False, ClawError("%s; and outputs %s" % (outcome[VALUE], e.message), e.hint)
        return outcome

    def _report(self, switch):
        """Call *switch*; an error is only written to stderr, which is a service's log."""
        try:
            switch()
        except ClawError as e:
            sys.stderr.write("clawlite: outputs %s - %s\n" % (e.message, e.hint))
