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
    found = imports.read_imports(Sources(str(folder)), list(packages), problems)
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
        "a board, and no file bme280.py beside tools.py - put bme280.py there; when the device has "
        'it installed: packages = ["bme280"] above the first section of clawlite.toml'
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
