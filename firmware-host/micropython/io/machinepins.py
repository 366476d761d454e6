"""Real pins, through MicroPython's ``machine``: the counterpart of core/image/pins.py on a board
with pins.

1. An output is off, in its safe state, from the moment when the bank is made, before any code of
   the agent runs, and again whenever ``off`` is called.
2. A pin that the board refuses is reported when the image is loaded, not when a tool needs it.
3. The value of a pin is what the hardware reports, even for an output.
"""

import sys
import time

import machine

from clawlite.core.base.errors import ImageMismatch, SandboxDenied
from clawlite.core.image.pins import ADC, FULL, INPUT, OPEN_DRAIN, OUTPUT, PULL_UP, PWM

_KIND, _NUMBER, _PIN, _SETTLE_MS, _SAFE = range(5)  # positions in a pin of the bank
# core/image/pins.py has it too; importing it would load the simulated bank
_KINDS = ("adc", "input", "output", "pwm", "input", "input", "output")
_DRIVEN = (OUTPUT, PWM, OPEN_DRAIN)


class MachinePins:
    """The pins of this board that the image declares.

    pins  as for ``SimulatedPins``; the values for the simulation are ignored
    Raises ``ImageMismatch`` for a pin that this board does not have, or not with this kind.
    """

    simulated = False

    def __init__(self, pins: list):
        self._pins = {}  # name -> (kind, number, object of ``machine``, settle_ms, safe)
        self.names, self._outputs = [], []
        for name, number, kind, _, _, _, settle_ms, safe, hertz in pins:
            try:
                opened = _open(number, kind, safe, hertz)
                self._pins[name] = (kind, number, opened, settle_ms, safe)
            except (AttributeError, OSError, TypeError, ValueError) as e:
                raise ImageMismatch(
                    "pin %s: this board has no pin %d for %s: %s" % (name, number, _KINDS[kind], e),
                    "choose another pin in clawlite.toml, and name the board: "
                    "clawlite build --board B",
                )
            self.names.append(name)
            if kind in _DRIVEN:
                self._outputs.append((kind, opened, safe))

    def read(self, name: str) -> int:
        """Return the value of a pin of any kind.  Raises ``SandboxDenied`` for an undeclared name,
        ``OSError``.
        """
        return _value(self._pin(name))

    def safe_level(self, name: str) -> int:
        """Return what an output has in its safe state."""
        return self._pins[name][_SAFE]

    def write(self, name: str, value: int):
        """Set an output (0 or 1) or a PWM pin (0..65535).  Raises ``SandboxDenied`` for any
        other pin or value.
        """
        kind, _, pin, _, _ = self._pin(name)
        if kind not in _DRIVEN:
            raise SandboxDenied(
                "pin %s is %s, expected output or pwm" % (name, _KINDS[kind]),
                "name another pin, or change its kind in clawlite.toml",
            )
        limit = FULL if kind == PWM else 1
        value = int(value)
        if not 0 <= value <= limit:
            raise SandboxDenied(
                "pin %s: expected 0 to %d, got %d" % (name, limit, value),
                "give a value between them",
            )
        _set(kind, pin, value)

    def settle(self, name: str, level: int) -> tuple:
        """Return (the value of a pin that *level* was written to, whether that may be so).  Only a
        plain output must have its level, after its settle time at the latest.
        """
        pin = self._pin(name)
        left_ms, found = pin[_SETTLE_MS], _value(pin)
        while pin[_KIND] == OUTPUT and found != level:
            if left_ms <= 0:
                return found, False
            time.sleep_ms(1)
            left_ms -= 1
            found = _value(pin)
        return found, True

    def drive(self, name: str, hertz: int, duty: int):
        """Drive a PWM pin with *hertz* and *duty*, 0..65535 of full."""
        pin = self._pin(name)[_PIN]
        pin.freq(hertz)
        pin.duty_u16(duty)

    def describe(self) -> list:
        """Return [{name, pin, kind, value}, ...] in the image's order.  Raises ``OSError``."""
        return [
            {
                "name": name,
                "pin": self._pins[name][_NUMBER],
                "kind": _KINDS[self._pins[name][_KIND]],
                "value": _value(self._pins[name]),
            }
            for name in self.names
        ]

    def off(self):
        """Switch every output off, also when one of them fails: to its safe state.  It
        allocates nothing, because memory may have run out, unless one fails.
        """
        for kind, pin, safe in self._outputs:
            try:
                _set(kind, pin, safe)
            except OSError as e:
                sys.stderr.write(
                    "clawlite: an output cannot be switched off: %s - cut its power\n" % e
                )

    def _pin(self, name: str) -> tuple:
        pin = self._pins.get(name)
        if pin is None:
            raise SandboxDenied(
                "no pin is called %s; declared: %s" % (name, ", ".join(self.names) or "none"),
                "declare it in clawlite.toml under [[pins]]",
            )
        return pin


def _open(number: int, kind: int, safe: int, hertz: int):
    Pin = machine.Pin
    if kind == ADC:
        converter = machine.ADC(Pin(number))
        if hasattr(machine.ADC, "ATTN_11DB"):  # esp32: full scale is 1 V without it
            converter.atten(machine.ADC.ATTN_11DB)
        return converter
    if kind == OUTPUT:
        return Pin(number, Pin.OUT, value=safe)
    if kind == OPEN_DRAIN:
        return Pin(number, Pin.OPEN_DRAIN, value=safe)
    if kind == PWM:
        return machine.PWM(Pin(number, Pin.OUT, value=safe // FULL), freq=hertz, duty_u16=safe)
    return Pin(
        number, Pin.IN, None if kind == INPUT else Pin.PULL_UP if kind == PULL_UP else Pin.PULL_DOWN
    )


def _value(pin: tuple) -> int:
    kind = pin[_KIND]
    return (
        pin[_PIN].read_u16()
        if kind == ADC
        else pin[_PIN].duty_u16()
        if kind == PWM
        else pin[_PIN].value()
    )


def _set(kind: int, pin, value: int):
    if kind == PWM:
        pin.duty_u16(value)
    else:
        pin.value(value)
