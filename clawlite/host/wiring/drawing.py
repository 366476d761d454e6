"""A wiring as an SVG: the header of the board, the parts beside it, a line for each signal.

1. It has no script, no font and nothing of elsewhere; its colours follow a light or a dark screen.
2. A supply has no line, which would cross the others: the part names the pin, and both have the
   colour of the supply.
3. Lines of one side do not cross, as far as no two parts share pins: parts stand in the order of
   their pins, and each line has a channel of its own.
"""

import html
import textwrap
from typing import NamedTuple

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import make_write_error
from clawlite.host.base.regular_file import open_regular
from clawlite.host.base.without_links import replace_named
from clawlite.host.wiring.header import LEFT, RIGHT
from clawlite.host.wiring.wiring import Placed, Wiring

_ROW, _BOARD, _PART, _CHANNEL, _MARGIN = 24, 250, 280, 10, 20
_TOP, _HEAD, _GAP = 76, 42, 16
_SIGNALS = 6  # colours, s0 to s5
_STYLE = (
    "text{font:13px ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2937}"
    ".t{font-size:18px;font-weight:600}.b{font-weight:600}.d{fill:#6b7280}.n{font-size:12px}"
    ".e{text-anchor:end}.m{text-anchor:middle}.bg{fill:#ffffff}"
    ".k{fill:#e8f3ec;stroke:#2f7d4f;stroke-width:1.5}.p{fill:#f6f7f9;stroke:#9ca3af}"
    ".o{fill:#d1d5db}.w{fill:none;stroke-width:2.5;stroke-linejoin:round}"
    ".s0{--c:#2563eb}.s1{--c:#c2410c}.s2{--c:#047857}.s3{--c:#7e22ce}.s4{--c:#be185d}"
    ".s5{--c:#0e7490}.v3{--c:#dc2626}.v5{--c:#b45309}.g{--c:#111827}"
    ".f{fill:var(--c)}.w{stroke:var(--c)}"
    "@media (prefers-color-scheme:dark){text{fill:#e5e7eb}.d{fill:#9ca3af}.bg{fill:#16191f}"
    ".k{fill:#1c2b23;stroke:#4ade80}.p{fill:#20252d;stroke:#6b7280}.o{fill:#4b5563}"
    ".s0{--c:#60a5fa}.s1{--c:#fb923c}.s2{--c:#34d399}.s3{--c:#c084fc}.s4{--c:#f472b6}"
    ".s5{--c:#22d3ee}.v3{--c:#f87171}.v5{--c:#fbbf24}.g{--c:#f9fafb}}"
)
_SUPPLIES = {"3V3": "v3", "5V": "v5", "GND": "g"}


class _Box(NamedTuple):
    """A part at a place: the y of its top, and the colour of each of its wires."""

    placed: Placed
    top: int
    colours: list

    def row(self, index: int) -> int:
        return self.top + _HEAD + _ROW * index + (_GAP if self.placed.part.note else 0)

    def bottom(self) -> int:
        return self.row(len(self.placed.wires)) - 4


def draw(wiring: Wiring) -> list[str]:
    """Return the lines of the SVG."""
    boxes = _stack(wiring)
    lanes = {side: 40 + _CHANNEL * _count(boxes, side) for side in (LEFT, RIGHT)}
    has = {side: any(box.placed.side == side for box in boxes) for side in (LEFT, RIGHT)}
    left = _MARGIN + (_PART + lanes[LEFT] if has[LEFT] else 0)
    width = left + _BOARD + _MARGIN + (lanes[RIGHT] + _PART if has[RIGHT] else 0)
    count = max(pad.row for pad in wiring.header.pads) + 1
    board_end = _TOP + _ROW * count
    end = max([board_end, *(box.bottom() for box in boxes)]) + _MARGIN + 10
    lines = [line for note in wiring.notes for line in textwrap.wrap(note, (width - 40) // 7)]
    height = end + 17 * len(lines) + 8
    drawn = [_text(_MARGIN, 32, f"{wiring.agent} on {wiring.board}", "t")]
    drawn += _draw_board(wiring, boxes, left, board_end)
    for side, edge in ((LEFT, left), (RIGHT, left + _BOARD)):
        drawn += _draw_side([box for box in boxes if box.placed.side == side], side, edge, lanes)
    drawn += [_text(_MARGIN, end + 17 * n + 4, line, "d n") for n, line in enumerate(lines)]
    title = html.escape(f"How {wiring.agent} is wired to {wiring.board}")
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="bg" width="{width}" height="{height}" rx="8"/>',
        *drawn,
        "</svg>",
    ]


def save(path: str, lines: list[str]) -> None:
    """Write a picture to the file *path*.  Raises ``ClawError`` for what is there and is none."""
    otherwise = "name another file with --output, or move it away"
    try:
        with open(path, "rb", opener=open_regular) as file:
            if not file.read(4).startswith(b"<svg"):
                raise ClawError(f"{path} exists and is no SVG", otherwise)
    except FileNotFoundError:
        pass
    except OSError as e:
        raise make_write_error(path, e, otherwise) from None
    try:
        replace_named(path, "".join(line + "\n" for line in lines).encode())
    except OSError as e:
        raise make_write_error(path, e, otherwise) from None


def _stack(wiring: Wiring) -> list[_Box]:
    """Return a box for each part, each side from the top in the order of its pins."""
    boxes = []
    signal = 0
    for side in (LEFT, RIGHT):
        end = _TOP - 20
        for one in sorted((one for one in wiring.placed if one.side == side), key=_first_row):
            wires = sorted(one.wires, key=lambda wire: _order(wire, side))
            colours = []
            for wire in wires:
                supply = wire.pad.gives[1] if wire.pad else wire.to
                colours.append(_SUPPLIES.get(supply) or f"s{signal % _SIGNALS}")
                signal += colours[-1].startswith("s")
            wanted = _TOP + _ROW * _first_row(one) - _HEAD - (_GAP if one.part.note else 0)
            box = _Box(one._replace(wires=wires), max(end, wanted), colours)
            boxes.append(box)
            end = box.bottom() + 14
    return boxes


def _first_row(one: Placed) -> int:
    rows = [wire.pad.row for wire in one.wires if wire.pad and _is_line(wire, one.side)]
    return min(rows, default=0)


def _order(wire, side: str) -> tuple:
    """Signals first, from the top; the others as they are."""
    return (0, wire.pad.row) if _is_line(wire, side) else (1, 0)


def _is_line(wire, side: str) -> bool:
    return wire.pad is not None and wire.pad.gives[0] == "gpio" and wire.pad.side == side


def _count(boxes: list, side: str) -> int:
    return sum(
        _is_line(w, side) for box in boxes if box.placed.side == side for w in box.placed.wires
    )


def _draw_board(wiring: Wiring, boxes: list, left: int, end: int) -> list[str]:
    used = {
        wire.pad: colour for box in boxes for wire, colour in zip(box.placed.wires, box.colours)
    }
    drawn = [
        f'<rect class="k" x="{left}" y="{_TOP - 22}" width="{_BOARD}" height="{end - _TOP + 22}" '
        'rx="10"/>',
        _text(left + _BOARD // 2, _TOP - 30, wiring.header.title, "d m"),
    ]
    for pad in wiring.header.pads:
        y, colour, is_left = _TOP + _ROW * pad.row, used.get(pad), pad.side == LEFT
        x = left if is_left else left + _BOARD
        name = f"f {colour}" if colour else "o"
        drawn.append(
            f'<rect class="{name}" x="{x - 6}" y="{y - 10}" width="12" height="12" rx="2"/>'
        )
        parts = ["" if pad.number is None else str(pad.number), pad.label]
        label = "  ".join(part for part in (parts if is_left else parts[::-1]) if part)
        style = ("b" if colour else "d") + ("" if is_left else " e")
        drawn.append(_text(x + (14 if is_left else -14), y, label, style))
    return drawn


def _draw_side(boxes: list, side: str, edge: int, lanes: dict) -> list[str]:
    """Return the parts of one side of the board, whose *edge* is there, and their lines."""
    out = -1 if side == LEFT else 1
    inner = edge + out * lanes[side]
    drawn, lines = [], []
    for box in boxes:
        drawn += _draw_part(box, side, inner)
        for index, (wire, colour) in enumerate(zip(box.placed.wires, box.colours)):
            if _is_line(wire, side):
                lines.append((_TOP + _ROW * wire.pad.row - 4, box.row(index) - 4, colour))
    for number, (start, end, colour) in enumerate(lines):
        lane = len(lines) - number if end > start else number + 1
        x = edge + out * (20 + _CHANNEL * lane)
        drawn.append(
            f'<path class="w {colour}" d="M{edge + out * 6} {start}H{x}V{end}H{inner - out * 6}"/>'
        )
    return drawn


def _draw_part(box: _Box, side: str, inner: int) -> list[str]:
    part, is_left = box.placed.part, side == LEFT
    x = inner - _PART if is_left else inner
    drawn = [
        f'<rect class="p" x="{x}" y="{box.top}" width="{_PART}" height="{box.bottom() - box.top}" '
        'rx="8"/>',
        f'<text x="{x + 14}" y="{box.top + 20}"><tspan class="b">{html.escape(part.name)}</tspan>'
        f'<tspan class="d n" dx="8">{html.escape(part.about)}</tspan></text>',
    ]
    if part.note:
        drawn.append(_text(x + 14, box.top + 37, part.note, "d n"))
    for index, (wire, colour) in enumerate(zip(box.placed.wires, box.colours)):
        y = box.row(index)
        at, end = (inner - 14, " e") if is_left else (inner + 14, "")
        far, far_end = (x + 14, "") if is_left else (x + _PART - 14, " e")
        drawn.append(f'<circle class="f {colour}" cx="{inner}" cy="{y - 4}" r="6"/>')
        drawn.append(_text(at, y, wire.terminal, "b" + end))
        drawn.append(_text(far, y, wire.to, f"d n{far_end}"))
    return drawn


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{html.escape(text)}</text>'
