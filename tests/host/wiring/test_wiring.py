"""``clawlite wiring``: every template with hardware on every board that has a header, and what the
picture says.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.projects import new
from clawlite.host.wiring import drawing, header, wiring

PROFILES = [board for board in boards.load_all() if board.header]
HARDWARE = [
    name
    for name in new.templates()
    if name != new.TEAM
    and re.search(r"\[\[(pins|buses)", Path(new.FOLDER, name, "clawlite.toml").read_text())
]
# from the makers' own tables: (header, number or label, GPIO)
KNOWN = [
    ("pico", 1, 0),
    ("pico", 20, 15),
    ("pico", 21, 16),
    ("pico", 31, 26),
    ("pico", 34, 28),
    ("rpi", 3, 2),
    ("rpi", 7, 4),
    ("rpi", 12, 18),
    ("rpi", 33, 13),
    ("rpi", 40, 21),
    ("esp32-devkitc", "VP IO36", 36),
    ("esp32-c3-devkitm", "TX IO21", 21),
    ("esp32-s3-devkitc", "RX IO44", 44),
]


def _texts(lines: list) -> list:
    root = ElementTree.fromstring("\n".join(lines))
    return ["".join(one.itertext()) for one in root.iter() if one.tag.endswith("}text")]


@pytest.mark.parametrize("template", HARDWARE)
def test_each_template_is_drawn_for_each_board(tmp_path, template):
    for board in PROFILES:
        if board.name in new.TOO_SMALL.get(template, ()):
            continue
        folder = tmp_path / board.name / template
        new.new(str(folder), template, board=board.name, offline=template in new.WITH_MODEL)
        found = wiring.find(str(folder), board.name)
        lines = drawing.draw(found)
        texts = _texts(lines)
        assert found.placed and f"{template} on {board.title}" in texts
        for one in found.placed:
            # a part is named, each signal has its pin, and its supply too
            assert any(text.startswith(one.part.name + one.part.about) for text in texts)
            for wire in one.wires:
                assert wire.terminal in texts and wire.to in texts
            supplies = {w.pad.gives[1] for w in one.wires if w.pad and w.pad.gives[0] == "supply"}
            assert "GND" in supplies
        assert "http" not in "".join(lines).replace("http://www.w3.org/2000/svg", "")
        _judge_places(lines)


def _judge_places(lines: list):
    """Nothing lies outside of the picture, and no part on another one."""
    root = ElementTree.fromstring("\n".join(lines))
    width, height = map(int, root.get("viewBox").split()[2:])
    boxes = []
    for one in root.iter():
        kind = one.tag.rpartition("}")[2]
        if kind == "text":
            assert 0 < int(one.get("x")) < width and 0 < int(one.get("y")) < height
        if kind == "rect" and one.get("class") in ("p", "k"):
            x, y, w, h = (int(one.get(name)) for name in ("x", "y", "width", "height"))
            assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
            for a, b, c, d in boxes:
                assert x + w <= a or a + c <= x or y + h <= b or b + d <= y
            boxes.append((x, y, w, h))


@pytest.mark.parametrize("name, pin, gpio", KNOWN)
def test_headers_are_as_their_makers_say(name, pin, gpio):
    known = header.read(next(board for board in PROFILES if board.header == name))
    pad = known.find(("gpio", gpio))
    assert pin in (pad.number, pad.label)


@pytest.mark.parametrize("board", PROFILES, ids=lambda board: board.name)
def test_a_header_has_the_pins_of_its_board(board):
    """No GPIO twice; each pin that the profile offers is there, or known to be on the board."""
    known = header.read(board)
    gpios = [pad.gives[1] for pad in known.pads if pad.gives[0] == "gpio"]
    assert len(gpios) == len(set(gpios))
    numbers = [pad.number for pad in known.pads if pad.number]
    assert not numbers or sorted(numbers) == list(range(1, len(known.pads) + 1))
    offered = {n for text in board.pins.digital for n in range(*_ends(text))}
    inside = {"pico": {25}, "esp32": {37, 38}, "esp32-s3": {33, 34}, "pico2": {25}}
    inside["esp32-s3-psram"] = {33, 34} & offered
    assert offered - set(gpios) == inside.get(board.name, set())
    assert {"3V3", "5V", "GND"} <= {p.gives[1] for p in known.pads}


def _ends(text: str) -> tuple:
    first, last = text.partition("-")[::2]
    return int(first), int(last or first) + 1


def test_every_kind_of_part_is_drawn_and_lines_do_not_cross(tmp_path):
    folder = tmp_path / "all"
    new.new(str(folder), "weather")
    with (folder / "clawlite.toml").open("a") as file:
        for text in PARTS:
            file.write(text)
    found = wiring.find(str(folder), "pico-w")
    lines = drawing.draw(found)
    _judge_places(lines)
    texts = " ".join(_texts(lines))
    for word in (
        "servo, rests at 90 degrees",
        "passive buzzer",
        "NeoPixel strip",
        "SPI device",
        "analog sensor",
    ):
        assert word in texts
    assert "VBUS 5V" in texts and "MOSI" in texts and "safe mode" in texts
    paths = [
        _points(one) for one in re.findall(r'<path class="w [^"]*" d="([^"]*)"', "".join(lines))
    ]
    assert len(paths) == 11
    for index, one in enumerate(paths):
        for other in paths[:index]:
            assert not _cross(one, other), (one, other)


PARTS = (
    '\n[[buses]]\nname = "screen"\nkind = "spi"\nsck = 18\nmosi = 19\nmiso = 16\ncs = 17\n',
    '\n[[buses]]\nname = "strip"\nkind = "neopixel"\npin = 2\npixels = 8\n',
    '\n[[pins]]\nname = "flap"\npin = 0\nkind = "pwm"\npulse_us = [500, 2500]\ndegrees = 180\n'
    "safe = 90\n",
    '\n[[pins]]\nname = "horn"\npin = 15\nkind = "pwm"\nfrequency_hz = [100, 4000]\n',
    '\n[[pins]]\nname = "light"\npin = 26\nkind = "adc"\n',
    "\n[boot]\nsafe_pin = 14\n",
)


def _points(path: str) -> list:
    x, y, points = 0, 0, []
    for letter, numbers in re.findall(r"([MHV])([-\d ]+)", path):
        values = [int(number) for number in numbers.split()]
        x, y = values if letter == "M" else (values[0], y) if letter == "H" else (x, values[0])
        points.append((x, y))
    return points


def _cross(one: list, other: list) -> bool:
    """Return whether a level piece of one path meets an upright piece of the other."""
    return _meet(one, other) or _meet(other, one)


def _meet(levels: list, uprights: list) -> bool:
    for (a, y), (b, y2) in zip(levels, levels[1:]):
        for (x, c), (x2, d) in zip(uprights, uprights[1:]):
            if y == y2 and x == x2 and min(a, b) <= x <= max(a, b) and min(c, d) <= y <= max(c, d):
                return True
    return False


def test_buses_of_a_raspberry_pi_are_where_it_has_them(tmp_path):
    folder = tmp_path / "there"
    new.new(str(folder), "weather", board="rpi-4")
    rows = wiring.rows(wiring.find(str(folder), "rpi-4"))
    ways = {row["terminal"]: row["to"] for row in rows}
    assert ways["SDA"] == "pin 3, GPIO2" and ways["SCL"] == "pin 5, GPIO3"
    assert any("dtparam=i2c_arm=on" in note for note in wiring.find(str(folder), "rpi-4").notes)


@pytest.mark.parametrize(
    "template, board, said",
    [
        ("chat", None, "has nothing to wire"),
        ("door", "linux", "its pins are simulated"),
        ("door", "pico-x", "unknown board pico-x"),
    ],
)
def test_what_cannot_be_drawn_is_said(tmp_path, template, board, said):
    new.new(str(tmp_path / "there"), template)
    with pytest.raises(ClawError, match=said) as told:
        wiring.find(str(tmp_path / "there"), board)
    assert told.value.hint


def test_a_pin_that_the_board_has_not_is_told_with_its_line(tmp_path):
    new.new(str(tmp_path / "there"), "door")
    with pytest.raises(ManifestErrors, match="esp32-c3 has no pin|reserved") as told:
        wiring.find(str(tmp_path / "there"), "esp32-c3")
    assert "clawlite.toml:" in told.value.lines[0]


def test_a_board_of_ones_own_has_the_header_of_the_one_it_is_made_after(tmp_path):
    new.new(str(tmp_path / "there"), "door")
    boards.new("mine", "pico-w", str(tmp_path / "there"))
    assert wiring.find(str(tmp_path / "there"), "mine").header.title == "Raspberry Pi Pico"
    path = tmp_path / "there/boards/mine.toml"
    path.write_text(path.read_text().replace('header = "pico"', 'header = "pica"'))
    with pytest.raises(ClawError, match="no header pica; known: .*pico"):
        wiring.find(str(tmp_path / "there"), "mine")


def _clawlite(*words, cwd) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "clawlite", *words]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=300)


def test_the_command_writes_a_picture_and_overwrites_nothing_else(tmp_path):
    new.new(str(tmp_path / "there"), "door")
    shown = _clawlite("wiring", cwd=tmp_path / "there")
    assert shown.returncode == 0 and shown.stdout.startswith("<svg ")
    done = _clawlite("wiring", "there", "--output", "a.svg", cwd=tmp_path)
    assert done.returncode == 0 and "Wrote a.svg" in done.stderr and not done.stdout
    assert (tmp_path / "a.svg").read_text() == shown.stdout
    assert _clawlite("wiring", "there", "--output", "a.svg", cwd=tmp_path).returncode == 0
    shutil.copy(tmp_path / "there/tools.py", tmp_path / "b.svg")
    done = _clawlite("wiring", "there", "--output", "b.svg", cwd=tmp_path)
    assert done.returncode == 2 and "b.svg exists and is no SVG" in done.stderr
    assert "def ring" in (tmp_path / "b.svg").read_text()
