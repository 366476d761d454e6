"""Imports of tools.py: known modules, modules beside it, and pins that it opens by itself."""

import pytest

from clawlite.host.base.problems import Problems
from clawlite.host.boards import boards
from clawlite.host.documents.sources import Sources
from clawlite.host.tools import imports


def read(folder, source, packages=(), **beside):
    (folder / "tools.py").write_text(source)
    for name, text in beside.items():
        (folder / f"{name}.py").write_text(text)
    problems = Problems()
    found = imports.read_imports(Sources(str(folder)), list(packages), [], problems)
    return found, [problem.text().replace(str(folder) + "/", "") for problem in problems.found]


@pytest.mark.parametrize(
    "line",
    [
        "import json, os.path",
        "from urllib.request import urlopen",
        "import machine",
        "import neopixel",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
        "try:\n    import numpy\nexcept (OSError, ModuleNotFoundError):\n    pass",
    ],
)
def test_what_somebody_has_is_no_problem(tmp_path, line):
    assert read(tmp_path, line)[1] == []


def test_a_module_that_nobody_has_is_a_problem_with_its_line(tmp_path):
    assert read(tmp_path, "import json\nimport bme280")[1] == [
        'tools.py:2: there is no module "bme280": not in Python\'s library, not in the firmware of '
        "a board, no driver of this project, and no file bme280.py beside tools.py - a driver: "
        "clawlite add bme280; or put bme280.py there; when the device has it installed: packages = "
        '["bme280"] above the first section of clawlite.toml'
    ]
    assert "did you mean" in read(tmp_path, "def _f():\n    import jsn")[1][0]
    assert read(tmp_path, "import bme280", ["bme280"])[1] == []
    # one that expects another error is no excuse
    assert len(read(tmp_path, "try:\n    import numpy\nexcept OSError: pass")[1]) == 1


def test_modules_beside_tools_py_travel_with_what_they_import(tmp_path):
    found, problems = read(
        tmp_path, "import b\nimport a", a="import b\nimport c", b="import a", c="", unused=""
    )
    assert found.modules == ["a.py", "b.py", "c.py"] and problems == []
    assert read(tmp_path, "import a", a="import nobody")[1][0].startswith("a.py:1: there is no")
    assert read(tmp_path, "import a", a="def (")[1] == [
        "a.py:1: not Python: invalid syntax - mend that line"
    ]
    assert "rename this one" in read(tmp_path, "import json", json="")[1][0]


def test_a_board_has_the_modules_of_its_firmware(tmp_path):
    source = "import machine\nimport enum\nimport network\nimport helper\nfrom typing import Any\n"
    found, problems = read(tmp_path, source, helper="match 1:\n    case _: pass\n")
    assert problems == []
    sources = {"helper.py": (tmp_path / "helper.py").read_bytes()}
    told = {}
    for name in ("pico", "pico-w"):
        problems = Problems()
        board = boards.profile(name)
        imports.add_board_problems(found, sources, board, {"stores"}, problems)
        told[name] = [problem.message for problem in problems.found]
    assert told["pico-w"] == [
        'pico-w has no module "enum"',
        'pico-w has no module "typing"',
        "match does not run on a MicroPython board",
    ]
    assert 'pico has no module "network"' in told["pico"]
    problems = Problems()
    imports.add_board_problems(found, sources, boards.profile("pico-w"), {"helper"}, problems)
    assert "clawlite has a module of this name on boards" in [p.message for p in problems.found]


def told(tmp_path, source: str, board: str, packages=(), **beside) -> list:
    found, said = read(tmp_path, source, packages, **beside)
    assert said == []
    sources = {name: (tmp_path / name).read_bytes() for name in ("tools.py", *found.modules)}
    problems = Problems()
    imports.add_board_problems(found, sources, boards.profile(board), set(), problems)
    return [f"{problem.message} - {problem.hint}" for problem in problems.found]


@pytest.mark.parametrize(
    "module, board, hint",
    [
        ("ds18x20", "sim", "pico, pico-w, pico2, pico2-w have it; or: clawlite add ds18x20"),
        ("aioble", "esp32", "pico-w, pico2-w have it; or: clawlite add aioble"),
        ("network", "pico", "pico-w, pico2-w have it"),
        ("logging", "pico", "clawlite add logging, or put one of that name beside tools.py"),
    ],
)
def test_a_board_that_lacks_a_module_names_those_that_have_it(tmp_path, module, board, hint):
    (said,) = told(tmp_path, f"import {module}", board)
    assert said.startswith(f'{board} has no module "{module}" - ')
    having, _, rest = said.partition(" - ")[2].partition(" have it")
    expected, _, more = hint.partition(" have it")
    assert set(expected.split(", ")) <= set(having.split(", ")) and rest == more


def test_what_the_firmware_has_is_no_problem(tmp_path):
    for board in ("pico", "pico2-w", "esp32", "esp32-c3"):
        assert told(tmp_path, "import ds18x20, dht, neopixel, onewire", board) == []


@pytest.mark.parametrize("board", ["linux", "rpi-4"])
def test_linux_has_no_modules_of_boards_and_the_kernel_has_a_driver(tmp_path, board):
    assert told(tmp_path, "import json, clawlite, numpy", board, ["numpy"]) == []
    assert told(tmp_path, "from micropython import const\nimport utime", board) == []
    assert told(tmp_path, "try:\n    import machine\nexcept ImportError: pass", board) == []
    (said,) = told(tmp_path, "import machine", board)
    assert said.startswith(f'{board} has no module "machine" - it is of MicroPython boards')
    (said,) = told(tmp_path, "import my_bme280", board, my_bme280="import machine")
    assert "its kernel has a driver: dtoverlay=i2c-sensor,bme280 in /boot/firmware" in said
    (said,) = told(tmp_path, "import dht", board)
    assert "dtoverlay=dht11,gpiopin=4" in said


@pytest.mark.parametrize(
    "source, what",
    [
        ("from machine import Pin\ndef _f(): return Pin(5)", [(2, "machine.Pin")]),
        ("from machine import Pin as P\n_p = P(5)", [(2, "machine.P")]),
        ("import machine\n_p = machine.PWM(5)", [(2, "machine.PWM")]),
        ("import machine\n_t = machine.reset_cause()", []),
        ("from gpiozero import LED", [(1, "gpiozero")]),
        ("import RPi.GPIO as GPIO", [(1, "RPi.GPIO")]),
        ("def Pin(n): pass\n_p = Pin(5)", []),
    ],
)
def test_pins_that_it_opens_by_itself_are_known(tmp_path, source, what):
    found, _ = read(tmp_path, source, ["gpiozero", "RPi"])
    assert [(line, name) for _, line, name in found.pins] == what
