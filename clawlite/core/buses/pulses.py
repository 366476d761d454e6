"""``board.servo("lid")`` and ``board.tone("bell")``: PWM pins whose range clawlite.toml gives.

    lid.turn(90)        degrees; lid.off() ends the pulses
    bell.play(440)      Hz, until bell.off()

Their safe state is no signal: a servo then holds no position, a buzzer is silent.  A servo whose
pin has ``safe`` goes to that angle.
"""

from clawlite.core.base.errors import SandboxDenied

SERVO_HZ, _PERIOD_US = 50, 20000
_HALF = 32768  # a square wave


class Servo:
    def __init__(self, bank, wave, row: list):
        self._bank, self._wave = bank, wave
        self._pin, _, _, self._shortest_us, self._longest_us, self.degrees = row

    def turn(self, degrees):
        """Turn to *degrees*, 0 to the declared most."""
        _check(self._pin, degrees, 0, self.degrees, "degrees", "degrees")
        duty = duty_of(degrees, self._shortest_us, self._longest_us, self.degrees)
        self._wave(self._bank, self._pin, SERVO_HZ, duty)

    def off(self):
        """End the pulses."""
        self._wave(self._bank, self._pin, SERVO_HZ, 0)


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


def duty_of(degrees, shortest_us: int, longest_us: int, most: int) -> int:
    """Return the duty, of 65535, of a servo's pulses for an angle of 0 to *most* degrees."""
    return int((shortest_us + (longest_us - shortest_us) * degrees / most) * 65535 / _PERIOD_US)


def _check(pin: str, value, least, most, unit: str, field: str):
    if not least <= value <= most:
        raise SandboxDenied(
            "pin %s: %s %s, expected %s to %s" % (pin, value, unit, least, most),
            "give a value between them, or change %s in clawlite.toml" % field,
        )
