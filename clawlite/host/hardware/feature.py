"""Pins and buses of clawlite.toml, as the compiler sees them."""

from clawlite.core.buses import bustable, pulses
from clawlite.core.image.image import PINS
from clawlite.core.image.pins import KINDS as PIN_KINDS
from clawlite.core.image.pins import OPEN_DRAIN, PULL_DOWN, PULL_UP
from clawlite.core.teach.row_text import parse_duration
from clawlite.host.base.document import LinePlace
from clawlite.host.hardware import board_pins, buses
from clawlite.host.models.feature import Feature, Requirement

_PWM_HZ = 1000
_PULLS = {"up": PULL_UP, "down": PULL_DOWN}


def _compile_pins(manifest) -> list | None:
    pins = []
    for pin in manifest.settings.pins:
        simulate = pin.simulate
        is_quantity = simulate is not None and "." in (simulate.raises or "")
        safe = pin.safe or 0
        if pin.pulse_us and pin.safe is not None:
            least_us, most_us = pin.pulse_us
            safe = pulses.duty_of(pin.safe, least_us, most_us, pin.degrees)
        pins.append(
            [
                pin.name,
                pin.pin,
                OPEN_DRAIN if pin.open_drain else _PULLS.get(pin.pull, PIN_KINDS.index(pin.kind)),
                (simulate.start if simulate else 0) or safe,
                None if is_quantity else simulate.raises if simulate else None,
                int(simulate.per_second) if simulate and not is_quantity else 0,
                parse_duration(pin.settle) or 0,
                safe,
                pulses.SERVO_HZ if pin.pulse_us else _PWM_HZ if pin.kind == "pwm" else 0,
            ]
        )
    return pins or None


def compile_sections(manifest, work) -> dict:
    return {
        PINS: _compile_pins(manifest),
        bustable.BUSES: buses.section(manifest),
        bustable.SIMULATED: buses.make_simulated_section(manifest),
    }


def find_needs(manifest) -> list[Requirement]:
    found, root = [], LinePlace(manifest.file, 1)
    if manifest.settings.pins:
        found.append(Requirement("pins", manifest.settings.place, ("pins", 0)))
    if buses.section(manifest):
        found += [Requirement(bustable.ABILITY, root), Requirement("pins", root)]
    return found


def warn(manifest, work) -> list:
    """Return a warning for each pin that tools.py opens by itself."""
    return [
        (
            (file, line),
            f"{what} opens pins by itself: they have no safe state, and stay as they are when the "
            "call or the agent ends - declare them under [[pins]] in clawlite.toml, and use board",
        )
        for file, line, what in (manifest.imports.pins if manifest.imports else ())
    ]


def find_notes(manifest, board, free_bytes) -> list:
    found = []
    if board.pins.simulated and manifest.settings.pins:
        found.append(
            (
                manifest.settings.where("pins", 0),
                f"this version drives no pin of {board.name}: they are simulated",
            )
        )
    return found + (board_pins.overlays(manifest) if board.name.startswith("rpi-") else [])


FEATURE = Feature(
    "hardware",
    compile=compile_sections,
    needs=find_needs,
    warn=warn,
    fit=board_pins.add_problems,
    note=find_notes,
)
