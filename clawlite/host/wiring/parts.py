"""What a project has at its pins and buses: one part each, with its terminals.

1. clawlite.toml says what a pin does, not what is bought: a part is called as its pin, and what
   kind of part that is follows from the kind of the pin, or from the device that is simulated.
2. A terminal goes to what a pad gives (header.py), ("", text) where that is no pad of the board.
"""

from typing import NamedTuple

from clawlite.host.boards.profile import Profile
from clawlite.host.hardware.buses import PINS, number_of

_PLUS, _PLUS_5, _GROUND = ("supply", "3V3"), ("supply", "5V"), ("supply", "GND")
# where a Raspberry Pi has its buses; its SPI has two chip selects
_OF_PI = {"i2c": (2, 3), "one-wire": (4,), "uart": (14, 15), "neopixel": (10,), "dht": (4,)}
_SPI_OF_PI, _SELECTS_OF_PI = (11, 10, 9), (8, 7)
_KINDS = {
    "i2c": "I2C device",
    "spi": "SPI device",
    "one-wire": "1-wire device",
    "uart": "device at a UART",
    "neopixel": "NeoPixel strip",
    "dht": "DHT sensor",
}
_RESISTOR = "4.7 kOhm between DATA and VCC"


class Part(NamedTuple):
    """name, what it is, what else a person must do, and [(terminal, where it goes), ...]."""

    name: str
    about: str
    note: str
    terminals: list


def find(settings, board: Profile) -> list[Part]:
    """Return the parts that *settings*, a checked clawlite.toml, has on *board*."""
    parts = [_of_pin(pin, board) for pin in settings.pins]
    parts += [_of_bus(bus, board) for bus in settings.buses]
    if settings.boot and settings.boot.safe_pin is not None and board.runtime == "micropython":
        ways = [("A", ("gpio", settings.boot.safe_pin)), ("B", _GROUND)]
        parts.append(Part("safe mode", "button: hold it down while the board starts", "", ways))
    return parts


def _of_pin(pin, board: Profile) -> Part:
    signal: tuple = ("gpio", pin.pin)
    device = pin.simulate.device if pin.simulate else None
    if pin.kind == "adc" and board.runtime == "cpython":
        signal = "", f"channel {pin.pin} of an analog converter"
    powered = [("VCC", _PLUS), ("GND", _GROUND)]
    if pin.kind == "adc":
        about = _name_device(device) or "analog sensor"
        return Part(pin.name, about, "its signal: 0 to 3.3 V, no more", [("OUT", signal), *powered])
    if pin.kind == "pwm":
        return _of_pwm(pin, signal)
    if pin.kind == "output":
        about = "open drain: pulls low" if pin.open_drain else "relay or transistor module"
        note = "a pull-up resistor keeps it off while the board starts" if pin.safe else ""
        about += ", off while high" if pin.safe else ""
        return Part(pin.name, about, note, [("IN", signal), *powered])
    if pin.pull:
        about, other = "button or contact", _GROUND if pin.pull == "up" else _PLUS
        return Part(pin.name, about, "", [("A", signal), ("B", other)])
    about = _name_device(device) or "sensor with a digital output"
    return Part(pin.name, about, "its signal: 3.3 V, no more", [("OUT", signal), *powered])


def _of_pwm(pin, signal) -> Part:
    if pin.pulse_us:
        ways = [("signal", signal), ("+", _PLUS_5), ("-", _GROUND)]
        about = "servo" if pin.safe is None else f"servo, rests at {pin.safe} degrees"
        return Part(pin.name, about, "a strong one needs a 5 V supply of its own", ways)
    if pin.frequency_hz:
        return Part(pin.name, "passive buzzer", "", [("+", signal), ("-", _GROUND)])
    ways = [("IN", signal), ("VCC", _PLUS), ("GND", _GROUND)]
    return Part(pin.name, "dimmer or motor driver", "", ways)


def _of_bus(bus, board: Profile) -> Part:
    pins = _pins_of(bus, board)
    ways: list = [(role.upper(), ("gpio", pin)) for role, pin in zip(PINS[bus.kind], pins)]
    if not pins:
        ways = [(role.upper(), ("", "a pin that clawlite.toml names")) for role in PINS[bus.kind]]
    note = ""
    devices = [_name_device(one.device) for one in bus.simulated or ()]
    about = ", ".join(devices) or _KINDS[bus.kind]
    if bus.kind == "i2c":
        about += " at " + ", ".join(hex(address) for address in bus.addresses)
    if bus.kind in ("one-wire", "dht"):
        ways, note = [("DATA", to) for _, to in ways], _RESISTOR
    if bus.kind == "neopixel":
        ways, note = [("DIN", ways[0][1])], f"{bus.pixels} pixels; many need a 5 V supply"
    if bus.kind == "uart":  # what one sends, the other receives
        ways = [("RX", ways[0][1]), ("TX", ways[1][1])]
    plus = ("5V", _PLUS_5) if bus.kind == "neopixel" else ("VCC", _PLUS)
    return Part(bus.name, about, note, [*ways, plus, ("GND", _GROUND)])


def _pins_of(bus, board: Profile) -> list:
    """Return the GPIO numbers of *bus* in the order of PINS, or []: nobody has named them."""
    if board.runtime == "micropython":
        return bus.pins
    if bus.kind == "spi":
        select = bus.device or 0
        is_known = number_of(bus) == 0 and select < len(_SELECTS_OF_PI)
        return [*_SPI_OF_PI, _SELECTS_OF_PI[select]] if is_known else bus.pins
    if bus.kind in ("one-wire", "dht") and bus.pin is not None:
        return [bus.pin]
    is_default = bus.kind != "i2c" or number_of(bus) == 1
    return list(_OF_PI[bus.kind]) if is_default else bus.pins


def _name_device(name: str | None) -> str:
    """Return the *name* of a chip as it is printed on it, a word as it is."""
    return name.upper() if name and any(one.isdigit() for one in name) else name or ""
