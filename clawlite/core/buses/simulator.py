"""Devices on buses and pins that are not there: chips with registers, and a world that they
measure.

1. The image has them as rows (section SIMULATED, bustable.py), which host/hardware/devices.py makes
   of files such as bme280.toml: nothing here knows a chip by name.
2. A quantity of the world (a temperature) moves by itself, swings once a day, changes while an
   output is on that drives it, and follows an actor: the angle of a servo its pulses, the light of
   a strip its colours.
3. A chip shows what it last measured, not what is.  A measurement begins when a register is
   written, and takes its time.
4. Without the section every bus is empty.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ImageError
from clawlite.core.buses.bustable import DHT, I2C, ONE_WIRE, PIXELS, SPI, UART
from clawlite.core.buses.wirebus import WirePort, crc8

# positions in rows of the section: a quantity, a model, a field, a beginning, a device, a press
_START, _PER_HOUR, _SWING, _LEAST, _MOST = range(5)
_MEMORY, _WRITABLE, _CHECK, _FIELDS, _BEGINS, _RESETS, _ANSWERS = range(7)
_NO_CHECK, _CRC8, _SUM = range(3)
_PLACE, _ADDRESS, _MODEL, _QUANTITIES, _FAULT = range(5)
_LITTLE, _TWOS, _MAGNITUDE = const(1), const(2), const(4)  # bits of a field's form
_HOUR_MS, _DAY_MS = const(3600000), const(86400000)
_EIO, _ENODEV, _ETIMEDOUT = const(5), const(19), const(110)


class World:
    """The quantities that devices measure.

    rows   [[start, per hour, swing, least, most], ...]
    drives [[pin, quantity, per second], ...]: while that output is on
    clock  function() -> monotonic ms
    bank   pins; it is called deep in a small stack
    follows [[place, quantity, [lowest, highest], [value, value], per second], ...]: while what the
           actor at *place* is told lies between those two, the quantity goes to what that means
    told   {place on a bus: what its actor was told last}; all other actors are at pins
    """

    def __init__(self, rows: list, drives: list, clock, bank, follows: list, told: dict):
        self._rows, self._drives, self._clock, self._bank = rows, drives, clock, bank
        self._follows = [tuple(row) for row in follows]
        self._told = told
        self._levels = [row[_START] for row in rows]
        self._at = self._began = clock()

    def move(self):
        """Let the time pass since the last call; called before an output changes."""
        now = self._clock()
        passed, self._at = now - self._at, now
        for place, row in enumerate(self._rows):
            self._levels[place] += row[_PER_HOUR] * passed / _HOUR_MS
        for pin, place, per_second in self._drives:
            if self._bank.read_output(pin) != self._bank.safe_level(pin):
                self._levels[place] += per_second * passed / 1000
        for at, place, (low, high), (first, last), per_second in self._follows:
            raw = self._told[at] if at in self._told else self._bank.read_output(at)
            if low <= raw <= high:
                gap = first + (last - first) * (raw - low) / (high - low) - self._levels[place]
                most = per_second * passed / 1000 if per_second else abs(gap)
                self._levels[place] += max(-most, min(most, gap))
        for place, row in enumerate(self._rows):
            self._levels[place] = min(row[_MOST], max(row[_LEAST], self._levels[place]))

    def tell(self, at: str, raw: float):
        """The actor at the place *at* of a bus is told *raw* from now on."""
        self.move()
        self._told[at] = raw

    def value(self, place: int) -> float:
        """Return a quantity as it is now."""
        self.move()
        row = self._rows[place]
        swing = row[_SWING] * _wave((self._at - self._began) % _DAY_MS / _DAY_MS)
        return min(row[_MOST], max(row[_LEAST], self._levels[place] + swing))

    def now_ms(self) -> int:
        return self._clock()


def _wave(part: float) -> float:
    """Return the sine of *part* of a circle, 0 to 1, within 0.002 (the formula of Bhaskara I)."""
    half = 2 * part if part < 0.5 else 2 * part - 1
    height = half * (1 - half)
    found = 16 * height / (5 - 4 * height)
    return found if part < 0.5 else -found


class Chip:
    """One device: its registers, and what it does when they are written.

    fault  None, "missing", "hang" or "noise": how it fails
    """

    def __init__(self, model: list, row: list, world: World):
        self._model, self._row, self._world = model, row, world
        self.address, self.fault = row[_ADDRESS], row[_FAULT]
        self.memory = bytearray(model[_MEMORY])
        self._place = 0
        self._ready_ms = self._status = None  # of the measurement under way

    def write(self, data: bytes):
        """Write a register's number, and what follows it there."""
        self._settle()
        if data:
            self._place = data[0] % len(self.memory)
        for byte in data[1:]:
            self.put(self._place, byte)
            self._place = (self._place + 1) % len(self.memory)

    def put(self, at: int, byte: int):
        """Write one register, if it can be written; a measurement or a reset may begin."""
        for register, value in self._model[_RESETS]:
            if register == at and value == byte:
                self.memory[:] = self._model[_MEMORY]
                self._ready_ms = None
                return
        for first, last in self._model[_WRITABLE]:
            if first <= at <= last:
                self.memory[at] = byte
        self.begin(at, byte)

    def begin(self, at: int, byte: int) -> int:
        """Begin the measurement that *byte* at *at* (or this command) asks for, if it does; return
        the milliseconds that it takes."""
        for register, mask, values, clears, ms, status, when in self._model[_BEGINS]:
            if register == at and byte & mask in values and self._holds(when):
                if clears:
                    self.memory[at] &= 255 ^ clears
                self._ready_ms, self._status = self._world.now_ms() + ms, status
                if status:
                    register, mask = status
                    self.memory[register] |= mask
                return ms
        return 0

    def read(self, count: int) -> bytes:
        """Return *count* bytes from the register that was named last."""
        self._settle()
        size = len(self.memory)
        found = bytes([self.memory[(self._place + step) % size] for step in range(count)])
        self._place = (self._place + count) % size
        return self._disturb(found)

    def whole(self) -> bytes:
        """Return all registers, and the check behind them, as a frame."""
        self._settle()
        found = bytes(self.memory)
        if self._model[_CHECK] == _CRC8:
            found += bytes([crc8(found)])
        elif self._model[_CHECK] == _SUM:
            found += bytes([sum(found) & 255])
        return self._disturb(found)

    def show(self, raw: float):
        """It is an actor, and is told *raw*."""
        self.check_there()
        self._world.tell(self._row[_PLACE], raw)

    def answer(self, data: bytes) -> bytes:
        """Return what is sent back for *data*: always the same."""
        found = self._model[_ANSWERS][: len(data)]
        return self._disturb(found + bytes(len(data) - len(found)))

    def check_there(self):
        """Raise ``OSError`` for a device that does not answer, or holds the bus."""
        if self.fault == "hang":
            raise OSError(_ETIMEDOUT, "timed out")
        if self.fault == "missing":
            raise OSError(_ENODEV, "nobody answers")

    def _disturb(self, data: bytes) -> bytes:
        return bytes([byte ^ 0x55 for byte in data]) if self.fault == "noise" else data

    def _holds(self, when) -> bool:
        if when is None:
            return True
        register, mask, values = when
        return self.memory[register] & mask in values

    def _settle(self):
        """Enter what was measured, once the time for it has passed."""
        if self._ready_ms is None or self._world.now_ms() < self._ready_ms:
            return
        self._ready_ms = None
        if self._status:
            register, mask = self._status
            self.memory[register] &= 255 ^ mask
        values = []
        for place in self._row[_QUANTITIES]:  # in a loop: each call here is deep in a small stack
            values.append(self._world.value(place))
        for at, size, shift, most, form, when, terms in self._model[_FIELDS]:
            if self._holds(when):
                self._enter(at, size, form, _sum_of(terms, values), shift, most)
        # one that measures without end measures again at once
        for register, mask, wanted, clears, ms, status, when in self._model[_BEGINS]:
            is_on = not clears and register < len(self.memory) and mask
            if is_on and self.memory[register] & mask in wanted:
                self._ready_ms, self._status = self._world.now_ms() + ms, status

    def _enter(self, at: int, size: int, form: int, value: float, shift: int, most: int):
        number = int(value + 0.5) if value >= 0 else -int(0.5 - value)
        least = -most - 1 if form & _TWOS else -most if form & _MAGNITUDE else 0
        number = max(least, min(most, number))
        if form & _MAGNITUDE and number < 0:
            number = -number | 1 << 8 * size - 1
        number = number << shift & (1 << 8 * size) - 1
        for step in range(size):
            place = at + step if form & _LITTLE else at + size - 1 - step
            self.memory[place] = number >> 8 * step & 255


def _sum_of(terms: list, values: list) -> float:
    found = 0.0
    for coefficient, places in terms:
        for place in places:
            coefficient *= values[place]
        found += coefficient
    return found


class _Port:
    """What the ports below have: the *chips* on their bus."""

    aside = None

    def __init__(self, chips: list):
        self.chips = chips


class SimulatedI2C(_Port):
    """A port (i2cbus.py) with simulated chips."""

    def transfer(self, address: int, data: bytes, read: int) -> bytes:
        found = None
        for chip in self.chips:
            if chip.fault == "hang":  # it holds the clock line, whoever is asked
                chip.check_there()
            if chip.address == address and chip.fault != "missing":
                if data:
                    chip.write(data)
                got = chip.read(read)
                # two at one address: a wire is low when either of them pulls it low
                found = got if found is None else bytes([a & b for a, b in zip(found, got)])
        if found is None:
            raise OSError(_ENODEV, "nobody answers")
        return found

    def values(self, address: int) -> dict:
        return {}


class SimulatedWire:
    """What onewire.OneWire is to ``wirebus.WirePort``, with simulated devices."""

    def __init__(self, chips: list):
        self.chips = chips
        self._chosen = []

    def search(self) -> list:
        """Return the devices' 8 bytes each."""
        self._check_free()
        return [chip.address for chip in self.chips if chip.fault != "missing"]

    def reset(self) -> bool:
        """Return whether anybody is there."""
        self._check_free()
        self._chosen = [chip for chip in self.chips if chip.fault != "missing"]
        return len(self._chosen) > 0

    def select(self, rom: bytes):
        self._chosen = [chip for chip in self._chosen if chip.address == rom]

    def command(self, code: int):
        """Send a command to those that are chosen."""
        for chip in self._chosen:
            chip.begin(code, code)

    def read(self, count: int) -> bytes:
        for chip in self._chosen:
            return chip.whole()[:count]
        return b"\xff" * count  # nobody pulls the wire low

    def _check_free(self):
        for chip in self.chips:
            if chip.fault == "hang":
                chip.check_there()


class SimulatedSPI(_Port):
    """A device that answers with the same bytes each time, then with zeros."""

    def transfer(self, data: bytes) -> bytes:
        for chip in self.chips:
            return chip.answer(data)
        return bytes(len(data))


class SimulatedUART(_Port):
    """A line whose far end sends back what arrives."""

    _waiting = b""

    def write(self, data: bytes) -> int:
        self._waiting = (self._waiting + data)[-1024:]
        return len(data)

    def any(self) -> int:
        return len(self._waiting)

    def read(self, count: int) -> bytes:
        found, self._waiting = self._waiting[:count], self._waiting[count:]
        return found


class SimulatedPixels(_Port):
    """A strip; ``shown`` is what its pixels show, three bytes each: red, green, blue."""

    shown = b""

    def show(self, colours: bytes):
        for chip in self.chips:
            chip.show(sum(colours) / len(colours))
        self.shown = bytes(colours)


class SimulatedDHT(_Port):
    """A DHT22: a frame of five bytes."""

    def frame(self) -> bytes:
        for chip in self.chips:
            chip.check_there()
            chip.begin(0, 0)
            return chip.whole()
        raise OSError(_ETIMEDOUT, "nobody answers")


_CLASSES = {
    I2C: SimulatedI2C,
    ONE_WIRE: lambda chips: WirePort(SimulatedWire(chips)),
    SPI: SimulatedSPI,
    UART: SimulatedUART,
    PIXELS: SimulatedPixels,
    DHT: SimulatedDHT,
}


class Simulator:
    """The devices of an image.

    section  its section SIMULATED, or None: every bus is empty
    bank     pins, of which outputs drive the world
    clock    function() -> monotonic ms
    Raises ``ImageError`` for a section of another shape.
    """

    def __init__(self, section, bank, clock):
        try:
            quantities, models, rows, drives, presses, scales, follows = section or [[]] * 7
            told = {row[_PLACE]: 0 for row in rows}
            self.world = World(quantities, drives, clock, bank, follows, told)
            self.chips = [(row[_PLACE], Chip(models[row[_MODEL]], row, self.world)) for row in rows]
            self._presses = {row[0]: row[1:] for row in presses}
            self._scales = {row[0]: row[1:] for row in scales}
        except (IndexError, TypeError, ValueError):
            raise ImageError(
                "image: its simulated devices have another shape than is known",
                "build it again with this version of clawlite",
            )
        self._began, self._ports = clock(), {}

    def port(self, name: str, kind: int):
        """Return the port of the bus *name*."""
        if name not in self._ports:
            found = [chip for place, chip in self.chips if place == name]
            self._ports[name] = _CLASSES[kind](found)
        return self._ports[name]

    def value(self, pin: str, otherwise):
        """Return what is on the input *pin*, or *otherwise* where no device is on it."""
        if pin in self._scales:
            place, factor, most = self._scales[pin]
            return max(0, min(most, int(self.world.value(place) * factor)))
        if pin not in self._presses:
            return otherwise
        idle, every_ms, length_ms, bounces = self._presses[pin]
        passed = (self.world.now_ms() - self._began) % every_ms
        # first comes a pause, then the press, whose contact opens and closes as it bounces
        passed -= every_ms - length_ms - 2 * sum(bounces)
        if passed < 0:
            return idle
        for place, part in enumerate(bounces + [length_ms] + bounces):
            if passed < part:
                return idle if place % 2 else 1 - idle
            passed -= part
        return idle
