"""``[[buses]]`` of clawlite.toml: the buses that tools may use, and what of each.
Anything else is -32010.

    name       by which tools call it
    kind       "i2c", "spi", "one-wire", "uart", "neopixel", "dht"
    bus        number on Linux: /dev/i2c-BUS (default 1), /dev/spidevBUS.DEVICE (default 0), of a
               uart /dev/serialBUS, and on a board which of its UARTs
    sda, scl; sck, mosi, miso, cs; tx, rx; pin   pins on a board; a Raspberry Pi has its own
    addresses  of an i2c bus: those that tools may talk to, 8 to 119
    registers  of an i2c bus: those that may be named, "0xF4" or "0xF2-0xF7"; writable: be written
    device     of an spi bus: its chip select; mode 0 to 3, speed_hz (of a uart: its baud)
    devices    of a one-wire bus: "28-0316a279d1ff", as in /sys/bus/w1/devices; of a dht the name of
               its IIO device, of a uart that of its tty
    pixels     of a neopixel strip: how many
    simulate   where this machine is no Raspberry Pi: an i2c device's registers or what an spi
               device answers, in hexadecimal; of one-wire a temperature in thousandths of a degree
    simulated  or devices by name (devices.py)
"""

import re
from typing import Annotated, Literal

from msgspec import Meta

from clawlite.core.buses.bustable import KINDS
from clawlite.core.buses.wirebus import rom_of
from clawlite.host.base.problems import enquote, one_of
from clawlite.host.hardware import devices
from clawlite.host.hardware.devices import SimulatedDevice
from clawlite.host.models.common import Name, Strict, Text

OF_TOOLS = {"i2c-transfer": "i2c", "spi-transfer": "spi", "one-wire-read": "one-wire"}
PINS = {
    "i2c": ("sda", "scl"),
    "spi": ("sck", "mosi", "miso", "cs"),
    "one-wire": ("pin",),
    "uart": ("tx", "rx"),
    "neopixel": ("pin",),
    "dht": ("pin",),
}
_OWN = {
    "i2c": {"bus", "addresses", "registers", "writable", "speed_hz"},
    "spi": {"bus", "device", "mode", "speed_hz"},
    "one-wire": {"devices"},
    "uart": {"bus", "speed_hz", "devices"},
    "neopixel": {"bus", "device", "pixels"},
    "dht": {"devices"},
}
_NEEDS = {
    "i2c": ("addresses",),
    "spi": (),
    "one-wire": ("devices",),
    "uart": (),
    "neopixel": ("pixels",),
    "dht": (),
}
_USED = re.compile(rb"\bboard\.(?:i2c|spi|uart|onewire|dht|neopixel|servo|tone|button)\(")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2} ?){1,256}")
_DEGREES = re.compile(r"-?[0-9]{1,6}")
_DEVICE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9_@.-]{1,64}")
_SPEEDS_HZ = {"i2c": 100000, "spi": 500000, "uart": 9600}
_NUMBERS = {"i2c": 1}  # of the bus on a Raspberry Pi's header
_MOST = {"i2c": 512, "uart": 512}  # bytes at once
Number = Annotated[int, Meta(ge=0, le=255)]
BoardPin = Annotated[int, Meta(ge=0, le=255)]


class Bus(Strict):
    name: Name
    kind: Literal["i2c", "spi", "one-wire", "uart", "neopixel", "dht"]
    bus: Number | None = None
    addresses: list[Annotated[int, Meta(ge=8, le=119)]] | None = None
    registers: list[Text] | None = None
    writable: list[Text] | None = None
    device: Number | None = None
    mode: Annotated[int, Meta(ge=0, le=3)] | None = None
    speed_hz: Annotated[int, Meta(ge=300, le=125000000)] | None = None
    devices: list[Text] | None = None
    pixels: Annotated[int, Meta(ge=1, le=300)] | None = None
    sda: BoardPin | None = None
    scl: BoardPin | None = None
    sck: BoardPin | None = None
    mosi: BoardPin | None = None
    miso: BoardPin | None = None
    cs: BoardPin | None = None
    tx: BoardPin | None = None
    rx: BoardPin | None = None
    pin: BoardPin | None = None
    simulate: Text | None = None
    simulated: list[SimulatedDevice] | None = None

    @property
    def pins(self) -> list:
        """The numbers of its pins, in the order of PINS, or []."""
        found = [getattr(self, role) for role in PINS[self.kind]]
        return found if None not in found else []

    @staticmethod
    def check_rules(value: dict, report) -> None:
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in _OWN:
            return
        every = set().union(*_OWN.values(), *PINS.values())
        for field in sorted(every - _OWN[kind] - set(PINS[kind])):
            if field in value:
                report(
                    (field,),
                    f"a bus of kind {enquote(kind)} has no {field}",
                    hint="remove it",
                    key=True,
                )
        for field in _NEEDS[kind]:
            if field not in value or value[field] == []:
                report(
                    (field,) if field in value else (),
                    f"a bus of kind {enquote(kind)} needs {field}",
                    hint=f"add {field} to the bus",
                )
        given = [role for role in PINS[kind] if role in value]
        for role in PINS[kind]:
            if given and role not in value:
                report((), f"it has {one_of(given)}, and no {role}", hint=f"add {role}")
        _check_devices(kind, value.get("devices"), report)
        devices.check_spans(value, ("registers", "writable"), report)
        _check_simulate(kind, value, report)


def _check_devices(kind: str, names, report) -> None:
    for index, one in enumerate(names if isinstance(names, list) else ()):
        if not isinstance(one, str):
            continue
        if kind == "one-wire" and not _DEVICE.fullmatch(one):
            report(
                ("devices", index),
                "",
                "an id as in /sys/bus/w1/devices, 28-0316a279d1ff",
                enquote(one),
            )
        elif kind != "one-wire" and not _NAME.fullmatch(one):
            report(("devices", index), "", "a name without folders", enquote(one))
        elif names.index(one) != index:
            report(
                ("devices", index), f"{enquote(one)} is already there", hint="remove one of them"
            )


def _check_simulate(kind: str, value: dict, report) -> None:
    simulate = value.get("simulate")
    if "simulate" in value and kind not in ("i2c", "spi", "one-wire"):
        report(
            ("simulate",),
            f"a bus of kind {enquote(kind)} has no simulate",
            hint='simulated = [{ device = "NAME" }], or nothing',
            key=True,
        )
    elif isinstance(simulate, str) and not (_DEGREES if kind == "one-wire" else _HEX).fullmatch(
        simulate
    ):
        report(
            ("simulate",),
            "",
            "thousandths of a degree" if kind == "one-wire" else "1 to 256 bytes in hexadecimal",
            enquote(simulate),
        )


def refuse_twice(manifest) -> None:
    """Add a problem for each bus whose name, or address on the same bus, is there already."""
    buses, problems = manifest.settings.buses, manifest.problems
    for index, bus in enumerate(buses):
        for other in buses[:index]:
            if other.name == bus.name:
                problems.add(
                    manifest.settings.place,
                    ("buses", index, "name"),
                    f"a bus {enquote(bus.name)} is already there",
                    hint="give one of them another name",
                )
                break
            same = set(bus.addresses or ()) & set(other.addresses or ())
            if same and _is_same(bus, other):
                problems.add(
                    manifest.settings.place,
                    ("buses", index, "addresses"),
                    f"0x{min(same):02x} is an address of {enquote(other.name)} already, "
                    "which is the same bus",
                    hint="two devices at one address disturb each other: set another address at "
                    "one of them, or remove it here",
                )


def _is_same(bus, other) -> bool:
    if bus.pins and other.pins:
        return bus.pins == other.pins
    return bus.kind == other.kind and number_of(bus) == number_of(other)


def number_of(bus) -> int:
    """Return the number of *bus* on Linux."""
    return _NUMBERS.get(bus.kind, 0) if bus.bus is None else bus.bus


def section(manifest) -> list | None:
    """Return the image's section BUSES (core/buses/bustable.py), or None for none."""
    settings = manifest.settings
    refuse_twice(manifest)
    for tool in manifest.tools:
        kind = OF_TOOLS.get(tool.name) if tool.origin == "registry" else None
        if kind and not any(bus.kind == kind for bus in settings.buses):
            manifest.problems.add(
                tool.report_place,
                (),
                f"{tool.name} has no bus that it may use",
                hint=f'declare [[buses]] with kind = "{kind}" in clawlite.toml; '
                f"kinds: {one_of(KINDS)}",
            )
    rows = [
        [
            bus.name,
            KINDS.index(bus.kind),
            number_of(bus),
            bus.device or 0,
            bus.mode or 0,
            bus.speed_hz or _SPEEDS_HZ.get(bus.kind, 0),
            list(bus.addresses or []),
            list(bus.devices or []),
            bus.pins,
            devices.spans(bus.registers),
            devices.spans(bus.writable),
            bus.pixels or _MOST.get(bus.kind, 0),
            bus.simulate is not None or bus.simulated is not None,
        ]
        for bus in settings.buses
    ]
    waves = [
        [pin.name, *(pin.frequency_hz or [0, 0]), *(pin.pulse_us or [0, 0]), pin.degrees or 0]
        for pin in settings.pins
        if pin.frequency_hz or pin.pulse_us
    ]
    return [rows, waves] if rows or waves or _has_devices(settings) or _are_used(manifest) else None


def _are_used(manifest) -> bool:
    """Return whether tools.py asks ``board`` for a bus, a button or the like."""
    source = dict(manifest.sources).get("tools.py", b"")
    return any(tool.function for tool in manifest.tools) and bool(_USED.search(source))


def _has_devices(settings) -> bool:
    return any(pin.simulate and pin.simulate.device for pin in settings.pins)


def make_simulated_section(manifest) -> list | None:
    """Return the image's section SIMULATED (core/buses/simulator.py), or None for none."""
    settings, rows = manifest.settings, devices.Rows()
    if not settings.buses and not _has_devices(settings):
        return None
    for index, bus in enumerate(settings.buses):
        _enter_plain(bus, rows)
        for number, one in enumerate(bus.simulated or []):
            _enter_device(manifest, bus, one, ("buses", index, "simulated", number), rows)
    for index, pin in enumerate(settings.pins):
        if pin.simulate and pin.simulate.device:
            _enter_pin(manifest, pin, ("pins", index, "simulate", "device"), rows)
    for index, pin in enumerate(settings.pins):
        drives = pin.simulate.raises if pin.simulate else None
        if drives and "." in drives:
            at, _, name = drives.partition(".")
            place = rows.quantity(at, name)
            if place is None:
                manifest.problems.add(
                    settings.place,
                    ("pins", index, "simulate", "raises"),
                    "",
                    "PLACE.QUANTITY of a simulated device",
                    enquote(drives),
                    hint="there are: " + (one_of(rows.names()) if rows.names() else "none"),
                )
            else:
                rows.drives.append([pin.name, place, float(pin.simulate.per_second)])
    return rows.section()


def _enter_plain(bus, rows) -> None:
    """Enter what ``simulate`` says."""
    if bus.simulate is None:
        return
    if bus.kind == "one-wire":
        file = devices.read_built_in("ds18b20")
        start = devices.Quantity(start=int(bus.simulate) / 1000)
        for name in bus.devices:
            device = SimulatedDevice(device="ds18b20", quantities={"temperature": start})
            rows.add(bus.name, rom_of(name), file, device)
    elif bus.kind == "i2c":
        for address in bus.addresses:
            rows.add_plain(bus.name, address, memory=bytes.fromhex(bus.simulate))
    else:
        rows.add_plain(bus.name, 0, answers=bytes.fromhex(bus.simulate))


def _enter_device(manifest, bus, one: SimulatedDevice, path: tuple, rows) -> None:
    place = manifest.settings.place, path
    file = manifest.settings.devices.get(one.device)
    if file is None:  # which has been said
        return
    if file.kind != bus.kind:
        manifest.problems.add(
            *place,
            f"{enquote(one.device)} is a device of kind {enquote(file.kind)}",
            enquote(bus.kind),
            hint="put it on another bus",
        )
        return
    unknown = [name for name in one.quantities or () if name not in (file.quantities or ())]
    if unknown:
        manifest.problems.add(
            *place,
            f"{enquote(one.device)} does not measure {unknown[0]}",
            hint="it measures " + one_of(list(file.quantities or {})),
        )
    address: int | bytes = 0
    if bus.kind == "i2c":
        address = one.address or (file.addresses or bus.addresses)[0]
        if file.addresses and address not in file.addresses:
            manifest.problems.add(
                *place,
                f"{enquote(one.device)} cannot have the address 0x{address:02x}",
                one_of([f"0x{a:02x}" for a in file.addresses]),
            )
    elif bus.kind == "one-wire":
        name = one.id or bus.devices[0]
        if not _DEVICE.fullmatch(name) or name[:2] not in (file.families or [name[:2]]):
            manifest.problems.add(
                *place,
                f"{enquote(one.device)} cannot have the id {enquote(name)}",
                " or ".join(f"{family}-..." for family in file.families or []),
            )
            return
        address = rom_of(name)
    rows.add(bus.name, address, file, one)


def _enter_pin(manifest, pin, path: tuple, rows) -> None:
    file, simulate = manifest.settings.devices.get(pin.simulate.device), pin.simulate
    if file is None:
        return
    if pin.kind not in {"pin": ("adc", "input"), "pwm": ("pwm",)}.get(file.kind, ()):
        manifest.problems.add(
            manifest.settings.place,
            path,
            f"{enquote(simulate.device)} is a device of kind {enquote(file.kind)}, "
            f"and the pin is of kind {enquote(pin.kind)}",
            hint='a device of kind "pin" is at a pin of kind "adc" or "input", one of kind '
            '"pwm" at one of kind "pwm"',
        )
        return
    found = rows.enter(pin.name, file, simulate.quantities or {})
    rows.follow(pin.name, file)
    if file.scale:
        most = 65535 if pin.kind == "adc" else 1
        quantity, factor = file.scale
        rows.scales.append([pin.name, found[quantity], float(factor), most])
    elif file.every_s:
        bounces = list(file.bounces_ms or [])
        every_ms = 1000 * (simulate.every_s or file.every_s)
        length_ms = simulate.length_ms or file.length_ms
        rows.presses.append([pin.name, file.idle, every_ms, length_ms, bounces])
