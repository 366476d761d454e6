"""``[[buses]]`` of clawlite.toml: the buses that tools may use, and of each the addresses.
Anything else is -32010.

    name       by which tools call it
    kind       "i2c", "spi", "one-wire"
    bus        number: /dev/i2c-BUS, /dev/spidevBUS.DEVICE
    addresses  of an i2c bus: those that tools may talk to, 8 to 119
    device     of an spi bus: its chip select; mode 0 to 3, speed_hz
    devices    of a one-wire bus: "28-0316a279d1ff", as in /sys/bus/w1/devices
    simulate   where this machine is no Raspberry Pi: an i2c device's registers or what an spi
               device answers, in hexadecimal; of one-wire a temperature in thousandths of a degree
"""

import re
from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.base.problems import one_of, quoted
from clawlite.host.models.common import Name, Strict, Text

KINDS = ("i2c", "spi", "one-wire")
OF_TOOLS = {"i2c-transfer": "i2c", "spi-transfer": "spi", "one-wire-read": "one-wire"}
_OWN = {
    "i2c": {"bus", "addresses"},
    "spi": {"bus", "device", "mode", "speed_hz"},
    "one-wire": {"devices"},
}
_NEEDS = {"i2c": ("bus", "addresses"), "spi": ("bus",), "one-wire": ("devices",)}
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2} ?){1,256}")
_DEGREES = re.compile(r"-?[0-9]{1,6}")
_DEVICE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{12}")
SPEED_HZ = 500000


class Bus(Strict):
    name: Name
    kind: Literal["i2c", "spi", "one-wire"]
    bus: Annotated[int, Meta(ge=0, le=255)] | None = None
    addresses: list[Annotated[int, Meta(ge=8, le=119)]] | None = None
    device: Annotated[int, Meta(ge=0, le=255)] | None = None
    mode: Annotated[int, Meta(ge=0, le=3)] | None = None
    speed_hz: Annotated[int, Meta(ge=1000, le=125000000)] | None = None
    devices: list[Text] | None = None
    simulate: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in _OWN:
            return
        for field in sorted(set().union(*_OWN.values()) - _OWN[kind]):
            if field in value:
                report(
                    (field,),
                    f"a bus of kind {quoted(kind)} has no {field}",
                    hint="remove it",
                    key=True,
                )
        for field in _NEEDS[kind]:
            if field not in value or value[field] == []:
                report(
                    (field,) if field in value else (),
                    f"a bus of kind {quoted(kind)} needs {field}",
                    hint=f"add {field} to the bus",
                )
        for index, one in enumerate(
            value["devices"] if isinstance(value.get("devices"), list) else ()
        ):
            if isinstance(one, str) and not _DEVICE.fullmatch(one):
                report(
                    ("devices", index),
                    "",
                    "an id as in /sys/bus/w1/devices, 28-0316a279d1ff",
                    quoted(one),
                )
        simulate = value.get("simulate")
        if isinstance(simulate, str) and not (_DEGREES if kind == "one-wire" else _HEX).fullmatch(
            simulate
        ):
            report(
                ("simulate",),
                "",
                "thousandths of a degree"
                if kind == "one-wire"
                else "1 to 256 bytes in hexadecimal",
                quoted(simulate),
            )


def records(manifest) -> list:
    """Return [[name, kind, bus, device, mode, speed, [address, ...], [id, ...], simulated bytes
    or None], ...] for linux/hardware/buses.py.
    """
    buses = manifest.settings.buses
    names = [bus.name for bus in buses]
    for index, name in enumerate(names):
        if name in names[:index]:
            manifest.problems.add(
                manifest.settings.place,
                ("buses", index, "name"),
                f"a bus {quoted(name)} is already there",
                hint="give one of them another name",
            )
    for tool in manifest.tools:
        kind = OF_TOOLS.get(tool.name) if tool.origin == "registry" else None
        if kind and not any(bus.kind == kind for bus in buses):
            manifest.problems.add(
                tool.report_place,
                (),
                f"{tool.name} has no bus that it may use",
                hint=f"declare "
                f"[[buses]] "
                f"with "
                f"kind "
                f"= "
                f'"{kind}" '
                f"in "
                f"clawlite.toml; "
                f"kinds: "
                f"{one_of(KINDS)}",
            )
    return [
        [
            bus.name,
            KINDS.index(bus.kind),
            bus.bus or 0,
            bus.device or 0,
            bus.mode or 0,
            bus.speed_hz or SPEED_HZ,
            list(bus.addresses or []),
            list(bus.devices or []),
            _simulated(bus),
        ]
        for bus in buses
    ]


def _simulated(bus) -> bytes | None:
    if bus.simulate is None:
        return None
    return bus.simulate.encode() if bus.kind == "one-wire" else bytes.fromhex(bus.simulate)
