"""``board`` with buses: what a handler gets where clawlite.toml has ``[[buses]]``, or pins for a
servo or a tone.

    board.read("door"), board.write("pump", 1)      pins, as without buses (core/image/pins.py)
    board.i2c("room"), board.spi(...), board.uart(...), board.onewire(...), board.dht(...)
    board.neopixel("strip"), board.servo("lid"), board.tone("bell"), board.button("door")

The names are the same on a Raspberry Pi, on a board and on a virtual board; the *ports* below them
differ.  Whatever is not declared is refused here (-32010), before a port is opened, with what was
asked, what is allowed and what to change.
"""

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.buses.bustable import (
    BUS_KIND,
    BUS_NAME,
    BUS_SIMULATED,
    DHT,
    I2C,
    KINDS,
    ONE_WIRE,
    PIXELS,
    SHAPE,
    SPI,
    UART,
)


class BusBoard:
    """Pins and buses.

    bank       the pins
    section    the image's section BUSES
    simulator  ``Simulator``, or None where all is real
    open_port  function(row of a bus) -> its port, or None where all is simulated
    wave       function(bank, pin, Hz, duty 0..65535): how a PWM pin is driven
    Raises ``ImageError`` for a section of another shape.
    """

    def __init__(self, bank, section, simulator, open_port, wave):
        from clawlite.core.image.header import check_shape

        rows, waves = check_shape(section, SHAPE, "the buses")
        self._bank, self._rows, self._waves = bank, rows, waves
        self._simulator, self._open_port, self._wave = simulator, open_port, wave
        self._made = {}  # name -> bus
        self.names, self.simulated = bank.names, bank.simulated

    def read(self, name: str) -> int:
        """As a bank does."""
        value = self._bank.read(name)
        return value if self._simulator is None else self._simulator.value(name, value)

    def write(self, name: str, value: int):
        """As a bank does."""
        if self._simulator is not None:
            self._simulator.world.move()
        self._bank.write(name, value)

    def safe_level(self, name: str) -> int:
        """As a bank does."""
        return self._bank.safe_level(name)

    def settle(self, name: str, level: int) -> tuple:
        """As a bank does."""
        return self._bank.settle(name, level)

    def describe(self) -> list:
        """As a bank does."""
        found = self._bank.describe()
        if self._simulator is not None:
            for one in found:
                one["value"] = self._simulator.value(one["name"], one["value"])
        return found

    def off(self):
        """Switch every output and every strip of pixels off."""
        if self._simulator is not None:
            self._simulator.world.move()
        self._bank.off()
        for row in self._rows:
            if row[BUS_KIND] == PIXELS and row[BUS_NAME] in self._made:
                try:
                    self._made[row[BUS_NAME]].darken()
                except (ClawError, OSError):
                    pass  # the pins are off, and a strip that is torn off is dark

    def release(self):
        """Give the pins back."""
        self._bank.release()

    def i2c(self, name: str):
        """Return the bus *name*: i2cbus.py."""
        from clawlite.core.buses.i2cbus import I2CBus

        return self._bus(name, I2C, I2CBus)

    def spi(self, name: str):
        """Return the device *name*: plainbus.py."""
        from clawlite.core.buses.plainbus import SPIBus

        return self._bus(name, SPI, SPIBus)

    def uart(self, name: str):
        """Return the line *name*: plainbus.py."""
        from clawlite.core.buses.plainbus import UARTBus

        return self._bus(name, UART, UARTBus)

    def onewire(self, name: str):
        """Return the bus *name*: wirebus.py."""
        from clawlite.core.buses.wirebus import OneWireBus

        return self._bus(name, ONE_WIRE, OneWireBus)

    def dht(self, name: str):
        """Return the sensor *name*: plainbus.py."""
        from clawlite.core.buses.plainbus import DHTBus

        return self._bus(name, DHT, DHTBus)

    def neopixel(self, name: str):
        """Return the strip *name*: pixelstrip.py."""
        from clawlite.core.buses.pixelstrip import PixelStrip

        return self._bus(name, PIXELS, PixelStrip)

    def servo(self, pin: str):
        """Return the servo at *pin*: pulses.py."""
        from clawlite.core.buses.pulses import Servo

        return Servo(self._bank, self._wave, self._wave_of(pin, True))

    def tone(self, pin: str):
        """Return the buzzer or speaker at *pin*: pulses.py."""
        from clawlite.core.buses.pulses import Tone

        return Tone(self._bank, self._wave, self._wave_of(pin, False))

    def button(self, pin: str, pressed: int = 0):
        """Return the button at *pin*, which reads *pressed* while it is down: pushbutton.py."""
        from clawlite.core.buses.pushbutton import Button

        self._bank.read(pin)  # it refuses a pin that is not there
        return Button(self, pin, pressed)

    def _wave_of(self, pin: str, is_servo: bool) -> list:
        for row in self._waves:
            if row[0] == pin and (row[-1] > 0) == is_servo:
                return row
        known = [row[0] for row in self._waves if (row[-1] > 0) == is_servo]
        raise SandboxDenied(
            "no pin for a %s is called %s; declared: %s"
            % ("servo" if is_servo else "tone", pin, ", ".join(known) or "none"),
            'in clawlite.toml, under its [[pins]] with kind = "pwm": %s'
            % ("pulse_us and degrees" if is_servo else "frequency_hz"),
        )

    def _bus(self, name: str, kind: int, made):
        if name in self._made and self._made[name].kind == kind:
            return self._made[name]
        for row in self._rows:
            if row[BUS_NAME] == name and row[BUS_KIND] == kind:
                if self._simulator is not None and (row[BUS_SIMULATED] or self._open_port is None):
                    port = self._simulator.port(name, kind)
                else:
                    port = self._open_port(row)
                bus = self._made[name] = made(row, port)
                return bus
        known = [row[BUS_NAME] for row in self._rows if row[BUS_KIND] == kind]
        raise SandboxDenied(
            "no %s bus is called %s; declared: %s"
            % (KINDS[kind], name, ", ".join(known) or "none"),
            "declare it in clawlite.toml under [[buses]]",
            {"bus": name},
        )
