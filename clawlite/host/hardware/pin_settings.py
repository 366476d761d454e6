"""[[pins]] of clawlite.toml: what a pin is, how it is simulated, and what must follow a call."""

from typing import Annotated, Literal

from msgspec import Meta

from clawlite.core.teach.row_text import parse_duration
from clawlite.host.base.document import Place
from clawlite.host.base.problems import Problems, did_you_mean, enquote, one_of, value_text
from clawlite.host.hardware.devices import Quantity
from clawlite.host.models.common import Name, Strict, Text

MAX_WITHIN_MS = 600000
MAX_SETTLE_MS = 500  # the loop stands still meanwhile
KINDS = ("adc", "input", "output", "pwm")


class Simulate(Strict):
    """How a pin behaves on a virtual board: it starts at *start*; while it is on, what it *raises*,
    an ADC pin or a quantity PLACE.NAME of a simulated device, gains *per_second*.  *device*: what
    is at the pin (host/hardware/devices.py), with its *quantities*, or how often it is pressed.
    """

    start: Annotated[int, Meta(ge=0, le=65535)] = 0
    raises: Text | None = None
    per_second: Annotated[float, Meta(ge=-65535, le=65535)] = 0
    device: Name | None = None
    quantities: dict[str, Quantity] | None = None
    every_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None
    length_ms: Annotated[int, Meta(ge=1, le=60000)] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        speed, raises = value.get("per_second"), value.get("raises")
        if isinstance(speed, float) and speed != int(speed) and "." not in str(raises):
            report(("per_second",), "", "a whole number for an ADC pin", str(speed))


class Confirm(Strict):
    """What must follow a call: *reading* is above, or below, a number *within* a time of the
    handler's start; else *pins* go to their safe state (host/rules/confirms.py).
    """

    reading: Text
    within: Text
    above: float | None = None
    below: float | None = None
    pins: list[Name] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        sides = [key for key in ("above", "below") if key in value]
        if len(sides) != 1:
            found = " and ".join(sides) or "neither"
            report((), "a threshold has one side", "above or below", found)
        ms = parse_duration(value.get("within", "1s"))
        if isinstance(value.get("within"), str) and not (ms and 100 <= ms <= MAX_WITHIN_MS):
            wanted = 'a time such as "3s", from 100ms to 10m'
            report(("within",), "", wanted, enquote(value["within"]))


class Pin(Strict):
    """One pin.  *settle*: within this time an output has the level that was written to it, or the
    write is an error; an *open_drain* output may be held low by others.  *safe*: what an output has
    when nothing may run, 0 where it is left out; of a servo the angle, else it has no signal.
    """

    name: Name
    pin: Annotated[int, Meta(ge=0, le=65535)]
    kind: Literal[KINDS]  # type: ignore[valid-type]
    pull: Literal["up", "down"] | None = None
    open_drain: bool = False
    safe: Annotated[int, Meta(ge=0, le=65535)] | None = None
    settle: Text = "10ms"
    confirm: Confirm | None = None
    # what a servo takes (pulse_us, degrees), and what a tone may be: of a pin of kind "pwm"
    frequency_hz: list[Annotated[int, Meta(ge=10, le=1000000)]] | None = None
    pulse_us: list[Annotated[int, Meta(ge=100, le=10000)]] | None = None
    degrees: Annotated[int, Meta(ge=1, le=360)] | None = None
    simulate: Simulate | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field in ("frequency_hz", "pulse_us", "degrees"):
            if field in value and value.get("kind") != "pwm":
                report(
                    (field,),
                    'only a pin of kind "pwm" is a servo or a tone',
                    hint="remove it, or change the kind",
                    key=True,
                )
            elif isinstance(value.get(field), list) and (
                len(value[field]) != 2 or value[field][0] > value[field][1]
            ):
                report((field,), "", "[least, most]", value_text(value[field]))
        if ("pulse_us" in value) != ("degrees" in value):
            report((), "a servo has both pulse_us and degrees", hint="give both, or none")
        if "pull" in value and value.get("kind") != "input":
            report(
                ("pull",),
                'only a pin of kind "input" has a pull resistor',
                hint="remove pull, or change the kind",
                key=True,
            )
        for key in ("open_drain", "settle"):
            if value.get(key) and value.get("kind", "output") != "output":
                report(
                    (key,),
                    'only a pin of kind "output" has it',
                    hint=f"remove {key}, or change the kind",
                    key=True,
                )
        if value.get("open_drain") is True and "settle" in value:
            report(
                ("settle",),
                "the level of an open drain output is not compared with what was written",
                hint="remove settle, or open_drain",
                key=True,
            )
        _check_safe(value, report)
        ms = parse_duration(value.get("settle", "0ms"))
        if isinstance(value.get("settle"), str) and (ms is None or ms > MAX_SETTLE_MS):
            report(
                ("settle",),
                "",
                f'a time such as "5ms", from 0ms to {MAX_SETTLE_MS}ms',
                enquote(value["settle"]),
            )


def _check_safe(value: dict, report) -> None:
    """Compare the safe state of the pin *value* with what it is."""
    safe, kind = value.get("safe"), value.get("kind")
    if safe is None:
        return
    if kind not in ("output", "pwm"):
        wrong, hint = "only an output has a safe state", "remove it, or change the kind"
    elif "frequency_hz" in value and "pulse_us" not in value:
        wrong, hint = "the safe state of a tone is silence", "remove it"
    else:
        most = value.get("degrees", 65535) if kind == "pwm" else 1
        if isinstance(safe, int) and isinstance(most, int) and 65535 >= safe > most:
            report(("safe",), "", f"0 to {most}, for this pin", str(safe))
        return
    report(("safe",), wrong, hint=hint, key=True)


def check_names(pins, place: Place, problems: Problems) -> None:
    """Check names against names; *pins* is raw data, whose own mistakes are reported elsewhere."""
    pins = [pin if isinstance(pin, dict) else {} for pin in pins] if isinstance(pins, list) else []
    kinds = {}
    for index, pin in enumerate(pins):
        name = pin.get("name")
        if isinstance(name, str) and name in kinds:
            problems.add(
                place,
                ("pins", index, "name"),
                f"a pin {enquote(name)} is already there",
                hint="give one of them another name",
            )
        elif isinstance(name, str):
            kinds[name] = pin.get("kind")
    if any("name" not in pin or "kind" not in pin for pin in pins):
        # which of them is meant is not known; what they lack is reported elsewhere
        return
    inputs = [name for name, kind in kinds.items() if kind == "adc"]
    for index, pin in enumerate(pins):
        simulate = pin.get("simulate")
        raises = simulate.get("raises") if isinstance(simulate, dict) else None
        # of a quantity, buses.py looks whether a device has it; a wrong kind is reported elsewhere
        if not isinstance(raises, str) or kinds.get(raises) not in (None, *KINDS):
            continue
        if raises not in inputs and "." not in raises:
            found = (
                f"{enquote(raises)} is no pin"
                if raises not in kinds
                else f"{enquote(raises)} is of kind {value_text(kinds[raises])}"
            )
            hint = did_you_mean(raises, inputs) or (
                "ADC pins here: " + one_of(inputs) if inputs else 'declare a pin of kind "adc"'
            )
            problems.add(
                place,
                ("pins", index, "simulate", "raises"),
                f"expected the name of an ADC pin; {found}",
                hint=hint,
            )
