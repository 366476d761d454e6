"""``board.servo("lid")`` and ``board.tone("bell")``: PWM pins whose range clawlite.toml gives.

    lid.turn(90)        degrees; lid.off() ends the pulses
    bell.play(440)      Hz, until bell.off()

Their safe state is no signal: a servo then holds no position, a buzzer is silent.
"""

from clawlite.core.base.errors import SandboxDenied

_SERVO_HZ, _PERIOD_US = 50, 20000
_HALF = 32768  # a square wave


class Servo:
    def __init__(self, bank, wave, row: list):
        self._bank, self._wave = bank, wave
        self._pin, _, _, self._shortest_us, self._longest_us, self.degrees = row

    def turn(self, degrees):
        """Turn to *degrees*, 0 to the declared most."""
        _check(self._pin, degrees, 0, self.degrees, "degrees", "degrees")
        pulse_us = self._shortest_us + (self._longest_us - self._shortest_us) * degrees / (
            self.degrees
        )
        self._wave(self._bank, self._pin, _SERVO_HZ, int(pulse_us * 65535 / _PERIOD_US))

    def off(self):
        """End the pulses."""
        self._wave(self._bank, self._pin, _SERVO_HZ, 0)


class Tone:
    def __init__(self, bank, wave, row: list):
        self._bank, self._wave = bank, wave
        self._pin, self._lowest, self._highest, _, _, _ = row

    def play(self, hertz: int):
        """Sound at *hertz*, within the declared range."""
        _check(self._pin, hertz, self._lowest, self._highest, "Hz", "frequency_hz")
        self._wave(self._bank, self._pin, int(hertz), _HALF)

    def off(self):
        """Be silent."""
        self._wave(self._bank, self._pin, self._lowest, 0)


def _check(pin: str, value, least, most, unit: str, field: str):
    if not least <= value <= most:
        raise SandboxDenied(
            "pin %s: %s %s, expected %s to %s" % (pin, value, unit, least, most),
            "give a value between them, or change %s in clawlite.toml" % field,
        )
