"""Pins by name, as ``clawlite.toml`` declares them: what a handler gets as ``board``.

    board.read("soil")          adc: 0..65535 of full scale; input, output: 0 or 1
    board.write("pump", 1)      output: 0 or 1; pwm: 0..65535 of full duty
    board.settle("pump", 1)     the level that an output has after a write, and whether it may
    board.safe_level("pump")    what an output has while nothing may run: its safe state

A pin that is not declared, or has another kind, is refused, so that a tool reaches only the pins
that the manifest names.

A *bank* is the set of an agent's pins.  ``SimulatedPins`` is the bank for machines without pins:
its values come from the image, and the time comes from *clock*.  All banks have the same methods.
The bank of a board is firmware-host/micropython/io/machinepins.py."""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import SandboxDenied

# PULL_UP, PULL_DOWN: inputs with a resistor; OPEN_DRAIN: an output that others may pull low
ADC, INPUT, OUTPUT, PWM, PULL_UP, PULL_DOWN, OPEN_DRAIN = range(7)
KINDS = ("adc", "input", "output", "pwm", "input", "input", "output")
FULL = 65535
DRIVEN = (OUTPUT, PWM, OPEN_DRAIN)
# positions in a pin of a bank, and after them in a simulated one
_KIND = const(0)
_PIN = const(1)
_SAFE = const(2)
_VALUE = const(3)


class Bank:
    """What simulated pins and those of Linux have in common.  A subclass sets ``names``, in the
    image's order, and ``_pins``, {name: [kind, number, value of the safe state, ...]}; it has
    ``_value(pin)`` and ``_set(pin, value)``.
    """

    def read(self, name: str) -> int:
        """Return the value of a pin of any kind.  Raises ``SandboxDenied`` for a name that is
        not declared, and on Linux ``OSError``.
        """
        return self._value(self._pin(name))

    def safe_level(self, name: str) -> int:
        """Return what an output has in its safe state."""
        return self._pins[name][_SAFE]

    def write(self, name: str, value: int):
        """Set an output (0 or 1) or a PWM pin (0..65535).  Raises ``SandboxDenied`` for any
        other pin or value.
        """
        pin = self._pin(name)
        if pin[_KIND] not in DRIVEN:
            raise SandboxDenied(
                "pin %s is %s, expected output or pwm" % (name, KINDS[pin[_KIND]]),
                "name another pin, or change its kind in clawlite.toml",
            )
        limit = FULL if pin[_KIND] == PWM else 1
        value = int(value)
        if not 0 <= value <= limit:
            raise SandboxDenied(
                "pin %s: expected 0 to %d, got %d" % (name, limit, value),
                "give a value between them",
            )
        self._set(pin, value)

    def describe(self) -> list:
        """Return [{name, pin, kind, value}, ...] in the image's order."""
        return [
            {
                "name": name,
                "pin": self._pins[name][_PIN],
                "kind": KINDS[self._pins[name][_KIND]],
                "value": self._value(self._pins[name]),
            }
            for name in self.names
        ]

    def _pin(self, name: str):
        pin = self._pins.get(name)
        if pin is None:
            raise SandboxDenied(
                "no pin is called %s; declared: %s" % (name, ", ".join(self.names) or "none"),
                "declare it in clawlite.toml under [[pins]]",
            )
        return pin


class SimulatedPins(Bank):
    """A bank of simulated pins.

    pins   list of [name, pin, kind, start, raises, per_second, settle_ms, safe, hertz] of the
           section PINS: *start* is the first value, 0..65535; *raises* is the name of a pin, or
           None.  While this output is not as *safe* says, the value of that pin changes by
           *per_second*, within 0..65535
    clock  function -> monotonic ms
    """

    simulated = True

    def __init__(self, pins: list, clock):
        self._pins = {}
        self.names = [row[0] for row in pins]
        self._clock = clock
        self._at = clock()
        for name, pin, kind, start, raises, per_second, _, safe, _ in pins:
            self._pins[name] = [kind, pin, safe, start, raises, per_second]

    def read_output(self, name: str) -> int:
        """Return the value of an output, which no passing time changes."""
        return self._pins[name][_VALUE]

    def settle(self, name: str, level: int) -> tuple:
        """Return (the value of a pin that *level* was written to, whether that may be so)."""
        return self.read(name), True

    def off(self):
        """Switch every output off: to its safe state."""
        self._move()
        for pin in self._pins.values():
            if pin[_KIND] in DRIVEN:
                pin[_VALUE] = pin[_SAFE]

    def _value(self, pin: list) -> int:
        self._move()
        return pin[_VALUE]

    def _set(self, pin: list, value: int):
        self._move()
        pin[_VALUE] = value

    def _move(self):
        """Change the values of the pins that outputs drive, for the time since the last call."""
        now = self._clock()
        passed, self._at = now - self._at, now
        for name in self.names:
            _, _, safe, value, raises, per_second = self._pins[name]
            if raises is not None and value != safe and passed > 0:
                target = self._pins[raises]
                moved = target[_VALUE] + passed * per_second // 1000
                target[_VALUE] = 0 if moved < 0 else FULL if moved > FULL else moved
