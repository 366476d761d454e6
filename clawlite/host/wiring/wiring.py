"""What of a project goes where on a board: the rows that are shown, and that a picture draws."""

from typing import NamedTuple

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import Problems
from clawlite.host.boards import boards
from clawlite.host.hardware import board_pins as pins
from clawlite.host.manifest import manifest
from clawlite.host.wiring import header, parts
from clawlite.host.wiring.header import Header, Pad

BOARD = "pico-w"  # for a project alone; templates are made for its pins
_OF_PINS = "a pin gives some mA: motors, pumps, coils and lamps need a relay or a transistor, and "
_OF_PINS += "a supply of their own"


class Wire(NamedTuple):
    """A terminal of a part: where it goes in words, and its pad, None where the header has none."""

    terminal: str
    to: str
    pad: Pad | None


class Placed(NamedTuple):
    """A part, the side of the board that it is drawn on, and its wires."""

    part: parts.Part
    side: str
    wires: list[Wire]


class Wiring(NamedTuple):
    agent: str
    board: str
    header: Header
    placed: list[Placed]
    notes: list[str]


def find(name: str, board: str | None) -> Wiring:
    """Return the wiring of the manifest *name* on *board*.

    Raises ``ManifestErrors`` also for a pin that the board has not, ``ClawError`` for a board whose
    pins are not known, and for a project without hardware.
    """
    loaded = manifest.load(name)
    profile = boards.profile(board or BOARD, loaded.folder)
    known, found = header.read(profile), parts.find(loaded.settings, profile)
    if not found:
        raise ClawError(
            f"{loaded.name} has nothing to wire: clawlite.toml has no pins and no buses",
            "add [[pins]] or [[buses]] to it: docs/settings.md",
        )
    problems = Problems()
    pins.add_problems(loaded, profile, lambda can, otherwise: "name its board: --board", problems)
    problems.raise_all()
    placed = [_place(part, known) for part in found]
    notes = [f"The signals of this board have 3.3 V; {_OF_PINS}."]
    if profile.runtime == "cpython":
        notes += [message for _, message in pins.overlays(loaded)]
    return Wiring(loaded.name, profile.title, known, placed, notes)


def _place(part: parts.Part, known: Header) -> Placed:
    """Return *part* on the side where most of its signals are; its supply comes from near there."""
    found = [known.find(to) for _, to in part.terminals]
    signals = [pad for pad in found if pad is not None and pad.gives[0] == "gpio"]
    sides = [pad.side for pad in signals]
    side = max(sides, key=sides.count) if sides else header.RIGHT
    row = next((pad.row for pad in signals if pad.side == side), 0)
    wires = [_make_wire(terminal, to, known, side, row) for terminal, to in part.terminals]
    return Placed(part, side, wires)


def _make_wire(terminal: str, to: tuple, known: Header, side: str, row: int) -> Wire:
    pad = known.find(to, side, row)
    if pad:
        return Wire(terminal, pad.name(), pad)
    kind, what = to
    return Wire(terminal, f"GPIO {what}, on the board itself" if kind == "gpio" else what, None)


def rows(wiring: Wiring) -> list[dict]:
    """Return {part, about, note, terminal, to} of each wire."""
    return [
        {
            "part": one.part.name,
            "about": one.part.about,
            "note": one.part.note,
            "terminal": wire.terminal,
            "to": wire.to,
        }
        for one in wiring.placed
        for wire in one.wires
    ]
