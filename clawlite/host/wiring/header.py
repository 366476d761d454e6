"""The pins of a board as a person finds them: ``boards/headers/NAME.toml``, which the profile of a
board names.

    title    what the picture calls the board
    numbers  "around" or "pairs": how its pins are counted; absent: they have names alone
    sources  where the facts come from
    left, right  what is printed beside the pins, from the top; "TX IO1" is GPIO 1, "VBUS 5V" gives
             5 V
"""

import re
from typing import Any, Literal, NamedTuple

from clawlite.core.base.errors import ClawError
from clawlite.host.base.data import boards_dir
from clawlite.host.base.document import Place
from clawlite.host.base.problems import Problems
from clawlite.host.base.toml_text import TOMLDocument
from clawlite.host.boards.profile import Profile
from clawlite.host.models.common import Strict, Text
from clawlite.host.models.walk import convert

FOLDER = "headers"
LEFT, RIGHT = "left", "right"
_GPIO = re.compile(r"(?:GPIO|GP|IO)(\d+)")
_SUPPLIES = {"3V3": "3V3", "5V": "5V", "GND": "GND", "AGND": "GND"}


class _File(Strict):
    title: Text
    sources: list[Text]
    left: list[Text]
    right: list[Text]
    numbers: Literal["around", "pairs"] | None = None


class Pad(NamedTuple):
    """One pin of a header: what is printed there, its number or None, its side and place from the
    top, and what it gives: ("gpio", number), ("supply", "3V3", "5V" or "GND") or ("", label).
    """

    label: str
    number: int | None
    side: str
    row: int
    gives: tuple

    def name(self) -> str:
        """Return how a person finds it: by its number, where it has one."""
        return self.label if self.number is None else f"pin {self.number}, {self.label}"


class Header(NamedTuple):
    title: str
    pads: list[Pad]

    def find(self, gives: tuple, side: str = LEFT, row: int = 0) -> Pad | None:
        """Return the pad that *gives* this, of several the nearest to *row* of *side*, or None."""
        found = [pad for pad in self.pads if pad.gives == gives]
        return min(found, key=lambda pad: (pad.side != side, abs(pad.row - row)), default=None)


def read(board: Profile) -> Header:
    """Return the header of *board*.  Raises ``ClawError`` for a board that has none."""
    if board.header is None:
        why = "its pins are simulated" if board.pins.simulated else "its profile names no header"
        raise ClawError(
            f"nothing is known of the pins of {board.name}: {why}",
            "name another board: clawlite wiring --board pico-w; clawlite boards lists them",
        )
    path = boards_dir() / FOLDER / f"{board.header}.toml"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in path.parent.glob("*.toml")))
        raise ClawError(
            f"{board.name}: there is no header {board.header}; known: {known}",
            "name one of them in the profile of the board",
        )
    # a TOMLDocument has the face of a Document
    document: Any = TOMLDocument(path.read_bytes(), str(path))
    place, problems = Place(document), Problems()
    file = convert(
        document.data, _File, lambda at, *a, **named: problems.add(place, at, *a, **named)
    )
    problems.raise_all()
    return Header(file.title, _make_pads(file))


def _make_pads(file: _File) -> list[Pad]:
    count, pads = len(file.left), []
    for side, labels in ((LEFT, file.left), (RIGHT, file.right)):
        for row, label in enumerate(labels):
            number = None
            if file.numbers == "pairs":
                number = 2 * row + (1 if side == LEFT else 2)
            elif file.numbers == "around":
                number = row + 1 if side == LEFT else 2 * count - row
            pads.append(Pad(label, number, side, row, _read_label(label)))
    return pads


def _read_label(label: str) -> tuple:
    """Return what the pin with this label gives."""
    last = label.rpartition(" ")[2]
    gpio = _GPIO.fullmatch(last)
    if gpio:
        return "gpio", int(gpio[1])
    return ("supply", _SUPPLIES[last]) if last in _SUPPLIES else ("", label)
