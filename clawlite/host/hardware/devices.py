"""Simulated devices: ``devices/NAME.toml`` here, or beside claw.yaml, where one of the same name
comes first.

    simulated = [{ device = "bme280", quantities = { temperature = { start = 19.0 } } }]

A file says what a chip's registers hold, what begins a measurement and what is measured then; the
core knows no chip (core/buses/simulator.py, which says what the rows that are made here mean).
"""

import pathlib
import re
import tomllib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import Problems, did_you_mean, enquote, one_of, value_text
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.models.common import Name, Strict, Text
from clawlite.host.models.walk import convert

_FOLDER = pathlib.Path(__file__).with_name("devices")
_SPAN = re.compile(r"0[xX][0-9a-fA-F]{1,2}(-0[xX][0-9a-fA-F]{1,2})?")
_BYTES = re.compile(r"(?:[0-9A-Fa-f]{2} ?){1,256}")
_CHECKS = (None, "crc8", "sum")
_FORMS = {None: 0, "twos": 2, "magnitude": 4}
Byte = Annotated[int, Meta(ge=0, le=255)]
Milliseconds = Annotated[int, Meta(ge=0, le=86400000)]


class Quantity(Strict):
    """A quantity of the world: it moves by *per_hour*, and swings by *swing* once a day."""

    start: float | None = None
    per_hour: float | None = None
    swing: float | None = None
    least: float | None = None
    most: float | None = None


class SimulatedDevice(Strict):
    """A device on a bus: which, where, what it measures, and how it fails."""

    device: Name
    address: Annotated[int, Meta(ge=8, le=119)] | None = None
    id: Text | None = None
    quantities: dict[str, Quantity] | None = None
    fault: Literal["missing", "hang", "noise"] | None = None


class Begin(Strict):
    at: Byte
    mask: Byte
    values: list[Byte]
    clears: Byte = 0
    ms: Milliseconds = 0
    status: list[Byte] | None = None
    when: list[Any] | None = None


class Field(Strict):
    at: Byte
    size: Annotated[int, Meta(ge=1, le=4)]
    most: Annotated[int, Meta(ge=0, le=4294967295)]
    terms: list[Any]
    shift: Annotated[int, Meta(ge=0, le=31)] = 0
    little: bool = False
    signed: Literal["twos", "magnitude"] | None = None
    when: list[Any] | None = None


class Follow(Strict):
    """*quantity* follows what an actor is told: *raw*, the lowest and the highest, *gives* these
    values, so fast (0: at once).
    """

    quantity: Text
    raw: list[Annotated[int, Meta(ge=0, le=65535)]]
    gives: list[float]
    per_second: Annotated[float, Meta(ge=0)] = 0.0


class DeviceFile(Strict):
    """What a file says of a chip, or of what is at a pin."""

    kind: Literal["i2c", "one-wire", "spi", "dht", "pin", "pwm", "neopixel"]
    addresses: list[Annotated[int, Meta(ge=8, le=119)]] | None = None
    families: list[Text] | None = None
    size: Annotated[int, Meta(ge=0, le=256)] = 0
    check: Literal["crc8", "sum"] | None = None
    answers: Text | None = None
    memory: dict[str, Text] | None = None
    writable: list[Text] | None = None
    reset: list[Byte] | None = None
    quantities: dict[str, Quantity] | None = None
    begin: list[Begin] | None = None
    field: list[Field] | None = None
    idle: Annotated[int, Meta(ge=0, le=1)] = 1
    every_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None
    length_ms: Milliseconds = 150
    bounces_ms: list[Milliseconds] | None = None
    scale: list[Any] | None = None
    follow: Follow | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for text in value["memory"] if isinstance(value.get("memory"), dict) else ():
            if not _SPAN.fullmatch(text):
                report(("memory", text), "", "a register, 0x00 to 0xff", enquote(text), key=True)
            elif not _BYTES.fullmatch(str(value["memory"][text])):
                report(("memory", text), "", "bytes in hexadecimal", enquote(value["memory"][text]))
        check_spans(value, ("writable",), report)
        _check_parts(value, report)


def _check_parts(value: dict, report) -> None:
    """Check what the types of ``when``, ``terms``, ``scale``, ``status`` cannot say."""
    known = value["quantities"] if isinstance(value.get("quantities"), dict) else {}
    size = _whole(value, "size", 0)
    for table in ("begin", "field"):
        for index, one in enumerate(value[table] if isinstance(value.get(table), list) else ()):
            if not isinstance(one, dict):
                continue
            when = one.get("when")
            if when is not None and not _is_condition(when, size):
                report((table, index, "when"), "", "[register, mask, [value, ...]]", "another")
            if not _has_two(one.get("status")):
                report((table, index, "status"), "", "[register, mask]", "another")
            if table == "field" and isinstance(one.get("at"), int):
                if one["at"] + _whole(one, "size", 1) > size:
                    report((table, index, "at"), "", f"a register below {size}", str(one["at"]))
                if not _are_terms(one.get("terms"), known):
                    at = (table, index, "terms")
                    report(at, "", "[[number, [quantity, ...]], ...]", "another", _near(known))
    scale = value.get("scale")
    if not _has_two(scale) or scale and not _are_in(scale[:1], known):
        report(("scale",), "", "[quantity, number]", value_text(scale), _near(known))
    follow = value["follow"] if isinstance(value.get("follow"), dict) else {}
    for name in ("raw", "gives"):
        both = follow.get(name)
        if not _has_two(both) or name == "raw" and both and both[0] == both[1]:
            report(("follow", name), "", "two different numbers", value_text(both))
    if isinstance(follow.get("quantity"), str) and follow["quantity"] not in known:
        report(("follow", "quantity"), "", "one of its quantities", hint=_near(known))
    if not _has_two(value.get("reset")):
        report(("reset",), "", "[register, value]", value_text(value["reset"]))


def _whole(value: dict, name: str, other: int) -> int:
    """Return the whole number *name* of *value*; *other* when there is none."""
    return value[name] if isinstance(value.get(name), int) else other


def _has_two(value) -> bool:
    """Return whether *value* is absent, or a list of two."""
    return value is None or isinstance(value, list) and len(value) == 2


def _are_in(names: list, known: dict) -> bool:
    return all(isinstance(name, str) and name in known for name in names)


def _is_condition(when, size: int) -> bool:
    if not isinstance(when, list) or len(when) != 3:
        return False
    register, mask, values = when
    whole = [register, mask, *(values if isinstance(values, list) else [None])]
    return all(isinstance(one, int) and 0 <= one < 256 for one in whole) and register < size


def _are_terms(terms, known) -> bool:
    return isinstance(terms, list) and all(_is_term(term, known) for term in terms)


def _is_term(term, known) -> bool:
    if not isinstance(term, list) or len(term) != 2:
        return False
    number, names = term
    return isinstance(number, (int, float)) and isinstance(names, list) and _are_in(names, known)


def _near(known) -> str:
    return "quantities here: " + ", ".join(known) if known else "declare [quantities.NAME]"


def check_spans(value: dict, fields: tuple, report) -> None:
    """Report what is no register or span of registers in the lists *fields* of *value*."""
    for field in fields:
        for index, text in enumerate(value[field] if isinstance(value.get(field), list) else ()):
            if isinstance(text, str) and not _SPAN.fullmatch(text):
                report((field, index), "", '"0xF4" or "0xF2-0xF7"', enquote(text))


def spans(texts) -> list | None:
    """Return [[first, last], ...] of texts such as "0xF2-0xF7"; None for None."""
    if texts is None:
        return None
    found = []
    for text in texts:
        first, _, last = text.partition("-")
        found.append([int(first, 16), int(last or first, 16)])
    return found


def names() -> list[str]:
    """Return the names of the devices that come with clawlite."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_built_in(name: str) -> DeviceFile:
    """Return a device that comes with clawlite."""
    data = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return msgspec.convert(data, DeviceFile)


def read(name: str, sources: Sources, place, path: tuple, problems: Problems):
    """Return the ``DeviceFile`` of the device *name*, or None: mistakes go to *problems*, at
    *path* of *place*.
    """
    own = f"devices/{name}.toml"
    try:
        if sources.exists(own):
            text, file = sources.read(own), sources.find_path(own)
        else:
            text, file = (_FOLDER / f"{name}.toml").read_bytes(), f"{name}.toml"
        data = tomllib.loads(text.decode())
    except FileNotFoundError:
        problems.add(
            place,
            path,
            f"no simulated device is called {enquote(name)}",
            hint=did_you_mean(name, names())
            or f"{one_of(names())}, or write {own} beside claw.yaml",
        )
        return None
    except Refused as e:
        problems.add(place, path, e.message, hint=e.hint)
        return None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        problems.add(LinePlace(file), (), f"this is no TOML: {e}", hint="mend it")
        return None

    def report(path, *words, **named):
        problems.add(LinePlace(file), path, *words, **named)

    return convert(data, DeviceFile, report)


class Rows:
    """The image's section SIMULATED, as it grows (core/buses/simulator.py)."""

    def __init__(self):
        self.quantities, self.models, self.devices = [], [], []
        self.drives, self.presses, self.scales, self.follows = [], [], [], []
        self._places, self._models = {}, {}

    def section(self) -> list | None:
        parts = [
            self.quantities,
            self.models,
            self.devices,
            self.drives,
            self.presses,
            self.scales,
            self.follows,
        ]
        return parts if any(parts) else None

    def quantity(self, place: str, name: str) -> int | None:
        """Return the number of what is called "PLACE.NAME", or None."""
        return self._places.get((place, name))

    def names(self) -> list[str]:
        return [f"{place}.{name}" for place, name in self._places]

    def enter(self, place: str, file: DeviceFile, given: dict) -> dict:
        """Enter the quantities that a device at *place* measures; return {name: number}.

        given  {name: ``Quantity``} of clawlite.toml
        """
        found = {}
        for name, own in (file.quantities or {}).items():
            if (place, name) not in self._places:
                self._places[place, name] = len(self.quantities)
                parts = []
                for part, default in (
                    ("start", 0.0),
                    ("per_hour", 0.0),
                    ("swing", 0.0),
                    ("least", -1e9),
                    ("most", 1e9),
                ):
                    value = getattr(given.get(name), part, None)
                    value = getattr(own, part) if value is None else value
                    parts.append(float(default if value is None else value))
                self.quantities.append(parts)
            found[name] = self._places[place, name]
        return found

    def follow(self, place: str, file: DeviceFile) -> None:
        """Let a quantity follow the actor at *place*, where *file* says so."""
        if file.follow:
            number = self._places[place, file.follow.quantity]
            gives = [float(one) for one in file.follow.gives]
            raw, per_second = list(file.follow.raw), float(file.follow.per_second)
            self.follows.append([place, number, raw, gives, per_second])

    def add(self, place: str, address, file: DeviceFile, device: SimulatedDevice) -> None:
        """Add a device on the bus *place*."""
        found = self.enter(place, file, device.quantities or {})
        order = list(found)
        model = _model(file, order)
        key = repr(model)
        if key not in self._models:
            self._models[key] = len(self.models)
            self.models.append(model)
        row = [place, address, self._models[key], [found[name] for name in order], device.fault]
        self.devices.append(row)
        self.follow(place, file)

    def add_plain(self, place: str, address, memory: bytes = b"", answers: bytes = b"") -> None:
        """Add a device that only remembers what is written to it, or answers the same each time."""
        whole = [[0, 255]] if memory else []
        self.models.append([memory.ljust(256, b"\0"), whole, 0, [], [], [], answers])
        self.devices.append([place, address, len(self.models) - 1, [], None])


def _model(file: DeviceFile, order: list) -> list:
    """Return the row of *file*, whose quantities are numbered as in *order*."""
    memory = bytearray(file.size)
    for register, text in (file.memory or {}).items():
        data, at = bytes.fromhex(text), int(register, 16)
        memory[at : at + len(data)] = data
    begins = [
        [one.at, one.mask, one.values, one.clears, one.ms, one.status, one.when]
        for one in file.begin or []
    ]
    fields = [
        [
            one.at,
            one.size,
            one.shift,
            one.most,
            int(one.little) + _FORMS[one.signed],
            one.when,
            [[float(number), [order.index(name) for name in of]] for number, of in one.terms],
        ]
        for one in file.field or []
    ]
    return [
        bytes(memory[: file.size]),
        spans(file.writable) or [],
        _CHECKS.index(file.check),
        fields,
        begins,
        [file.reset] if file.reset else [],
        bytes.fromhex(file.answers or ""),
    ]
