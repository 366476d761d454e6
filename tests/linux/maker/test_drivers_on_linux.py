"""Drivers for MicroPython on Linux: run with tools.py at both levels of the sandbox."""

import subprocess
import sys

import pytest
from agents import clawlite
from driver_packages import OF_PACKAGES, PACKAGES
from mip_index import Index
from slot_board import MANIFEST

from clawlite.host.builder import build, drivers
from clawlite.host.tools.imports import SHIMS
from clawlite.linux.maker import board_modules, maker_run

DRIVER = """\
import micropython
import time
import utime
import ustruct
import logging
from micropython import const

_TEN = const(10)


@micropython.native
def read():
    began = time.ticks_ms()
    time.sleep_us(1)
    utime.sleep_ms(0)
    spent = time.ticks_diff(time.ticks_add(began, _TEN), began)
    return [spent, ustruct.unpack(">H", b"\\\\x01\\\\x00")[0], logging.INFO, time.time() > 1]
"""
TOOLS = '''\
import sensor


def look() -> str:
    """Look."""
    import time

    return "%s %s" % (sensor.read(), hasattr(time, "sleep_ms"))
'''


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "claw.yaml").write_text(MANIFEST.format(version="1.0.0"))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "*"\ncall = "look"\narguments = {}\nthen = [{ say = "{result}" }]\n'
    )
    return folder


def add(project, name: str, text: str):
    source = project.parent / f"{name}.py"
    source.write_text(text.replace("\\\\", "\\"))
    drivers.add(str(source), str(project))


def confine(project):
    path = project / "claw.yaml"
    path.write_text(path.read_text().replace('level: "none"', 'level: "process"'))


@pytest.mark.parametrize("level", ["none", "process"])
def test_a_driver_in_plain_python_runs(project, level):
    add(project, "sensor", DRIVER)
    if level == "process":
        confine(project)
    done = clawlite("ask", "hello", cwd=project)
    assert done.stdout == "[10, 256, 20, True] False\n", done


def test_a_driver_of_a_name_that_python_has_is_for_boards(project):
    add(project, "sensor", DRIVER)
    entry = project / "drivers/logging.py"
    entry.write_text("INFO = 5\n")
    drivers.add(str(entry), str(project))
    assert [row["file"] for row in build.build(str(project))["drivers"]] == [
        "drivers/logging.py",
        "drivers/sensor.py",
    ]
    assert clawlite("ask", "hello", cwd=project).stdout == "[10, 256, 20, True] False\n"


@pytest.mark.parametrize("level", ["none", "process"])
def test_what_needs_the_pins_of_a_board_says_what_to_use(project, level):
    add(project, "sensor", "import machine\n")
    if level == "process":
        confine(project)
    done = clawlite("ask", "hello", cwd=project)
    said = done.stdout + done.stderr
    assert "No module named 'machine'" in said and "(drivers/sensor.py:1)" in said
    assert level == "process" or "a driver of the kernel" in said, said


@pytest.mark.parametrize("level", ["none", "process"])
def test_a_package_is_imported_as_by_python(project, level, monkeypatch):
    index = Index()
    try:
        for name, files in PACKAGES.items():
            index.publish(name, files)
            drivers.add(name, str(project), index.url)
    finally:
        index.close()
    (project / "tools.py").write_text(OF_PACKAGES)
    if level == "process":
        confine(project)
    done = clawlite("ask", "hello", cwd=project)
    assert done.stdout == "6 7 8 True\n", done
    (project / "tools.py").write_text("import flat.other\n" + OF_PACKAGES)
    said = clawlite("ask", "hello", cwd=project)
    assert "No module named 'flat.other'" in said.stdout + said.stderr


def test_imports_of_a_package_are_those_of_python(tmp_path):
    """Python's own import of the same files gives the same names."""
    files = {name: text for package in PACKAGES.values() for name, text in package.items()}
    files["deep/inner/leaf.py"] += "from .. import SEVEN, one\nfrom ..one import six\n"
    for name, text in files.items():
        (tmp_path / "drivers" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "drivers" / name).write_text(text)
    modules = {f"drivers/{name[:-3]}": compile(text, name, "exec") for name, text in files.items()}
    code = (
        OF_PACKAGES
        + "\nsaid = look(), leaf.__name__, sorted(n for n in vars(deep) if n[0] != '_')\n"
    )
    ours = maker_run.run(compile(code, "tools.py", "exec"), "tools.py", modules, print)["said"]
    done = subprocess.run(
        [sys.executable, "-c", code + "print(said)"],
        env={"PYTHONPATH": str(tmp_path / "drivers")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == f"{ours}\n", done


def test_a_changed_driver_does_not_start(project):
    add(project, "sensor", DRIVER)
    build.build(str(project))
    (project / "drivers/sensor.py").write_text("")
    done = clawlite("run", "claw.cbor", cwd=project)
    assert "drivers/sensor.py is not the file that the image was built with" in done.stderr


def test_the_compiler_knows_what_the_runtime_has_for_drivers():
    assert set(SHIMS) == {"micropython", *board_modules.RENAMED}
    assert {*SHIMS, "time"} == maker_run._OF_BOARDS


def test_ticks_wrap_as_on_a_board():
    time = board_modules.find("utime", False)
    last = (1 << 30) - 1
    assert time.ticks_add(last, 2) == 1 and time.ticks_diff(1, last) == 2
    assert time.ticks_diff(last, 1) == -2
    assert board_modules.find("time", False) is None
