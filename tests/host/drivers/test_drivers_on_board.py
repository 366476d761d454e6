"""Drivers in a board's slot: compiled, imported by tools.py, and only those that it imports."""

import subprocess

import pico_stack
import pytest
from driver_packages import OF_PACKAGES, PACKAGES
from sims import needs_micropython, needs_mpy_cross
from slot_board import START

from clawlite.core.base.errors import ClawError
from clawlite.host.boards.boards import profile
from clawlite.host.builder import build, drivers
from clawlite.host.firmware.board_files import board_files
from clawlite.host.flash import flash
from clawlite.host.flash.folder import Folder

from .conftest import BME280

pytestmark = [needs_micropython, needs_mpy_cross]


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("CLAWLITE_DEVICE_KEY_FILE", raising=False)


def boot(project, card, monkeypatch) -> str:
    """Flash *project* to the folder *card*; return what the board says to a line."""
    card.mkdir(exist_ok=True)
    target = Folder(str(card))
    words = (False, None, lambda found: None, lambda: None, lambda total, more: None, None)
    flash.flash(str(project), target, *words)
    (card / "boot.json").write_text('{"window_ms": 100}')
    return start(card)


def start(card) -> str:
    """Switch the board on; return what it says to a line."""
    done = subprocess.run(
        [pico_stack.micropython(), pico_stack.script(START), str(card)],
        input=b"hello\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        env={"MICROPYPATH": ".frozen", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout.decode()


def test_a_driver_is_compiled_into_the_slot_and_runs_there(index, project, tmp_path, monkeypatch):
    drivers.add("bme280", str(project))
    index.publish("spare", {"spare.py": "X = 1\n"})
    drivers.add("spare", str(project))
    card = tmp_path / "card"
    assert "> read 6\n" in boot(project, card, monkeypatch)
    names = {path.name for path in (card / "claw-a").iterdir()}
    assert {"bme280.mpy", "bus_help.mpy", "tools.py"} <= names
    assert not {"spare.mpy", "bme280.py", "drivers"} & names
    compiled = (card / "claw-a/bme280.mpy").read_bytes()
    assert compiled[:1] == b"M" and b"drivers" not in compiled

    (project / "drivers/bme280.py").write_text(BME280.replace("const(3)", "const(4)"))
    drivers.add(str(project / "drivers/bme280.py"), str(project))
    assert "> read 8\n" in boot(project, card, monkeypatch)


def test_a_driver_that_changed_on_the_board_is_told_and_nothing_runs(
    index, project, tmp_path, monkeypatch
):
    """The list of a slot's files has the check of each driver: no agent, so no pin, is begun."""
    drivers.add("bme280", str(project))
    card = tmp_path / "card"
    assert "> read 6\n" in boot(project, card, monkeypatch)
    path = card / "claw-a/bme280.mpy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    said = start(card)
    assert said.count("bme280.mpy is damaged") == 1 and "> " not in said, said
    assert said.endswith("no image boots - write one with: clawlite flash\n")
    path.write_bytes(whole)
    assert "> read 6\n" in start(card)


def test_a_package_lies_flat_in_the_slot(index, project, tmp_path, monkeypatch):
    for name, files in PACKAGES.items():
        index.publish(name, files)
    drivers.add("deep", str(project))
    drivers.add("flat.simple", str(project))
    (project / "tools.py").write_text(OF_PACKAGES)
    card = tmp_path / "card"
    assert "> 6 7 8 True\n" in boot(project, card, monkeypatch)
    names = {path.name for path in (card / "claw-a").iterdir()}
    assert {"deep.mpy", "inner.mpy", "leaf.mpy", "one.mpy", "flat.mpy", "simple.mpy"} <= names


NATIVE = "import micropython\n\n\n@micropython.native\ndef double(n):\n    return n + n\n"


def compiled(project, tmp_path, board) -> bytes:
    folder = tmp_path / f"made-{board}"
    files = board_files(str(project / "claw.cbor"), str(folder), board and profile(board))
    path = next(path for path, place in files if place.endswith("/bus_help.mpy"))
    with open(path, "rb") as file:
        return file.read()


def test_machine_code_is_made_for_the_chip_of_the_board(index, project, tmp_path, monkeypatch):
    index.publish("bus_help", {"bus_help.py": NATIVE}, "2.0.0")
    drivers.add("bme280", str(project))
    build.build(str(project))
    with pytest.raises(ClawError, match="bus_help has machine code") as caught:
        compiled(project, tmp_path, None)
    assert "--board" in caught.value.hint
    # the third byte of an .mpy: the architecture, times four (py/persistentcode.h)
    names = ("pico", "pico2-w", "esp32", "esp32-s3", "esp32-c3", "esp32-c6")
    found = {board: compiled(project, tmp_path, board)[2] >> 2 for board in names}
    assert found == {
        "pico": 4,
        "pico2-w": 7,
        "esp32": 10,
        "esp32-s3": 10,
        "esp32-c3": 11,
        "esp32-c6": 11,
    }


def test_the_rooms_of_a_driver_are_counted(index, project):
    drivers.add("bme280", str(project))
    before = build.build(str(project))
    big = BME280 + "".join(f"\n\ndef more_{n}(value):\n    return value + {n}\n" for n in range(99))
    index.publish("bme280", {"bme280.py": big}, "1.3.0", [("bus_help", "latest")])
    drivers.add("bme280", str(project), replace=True)
    after = build.build(str(project))
    for key in ("heap_bytes", "held_bytes", "flash_bytes"):
        assert after[key] > before[key]
