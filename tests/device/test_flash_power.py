"""A board whose power goes at any moment of a flash or of a boot: littlefs on MicroPython, every
write of a block torn and dropped.
"""

import base64
import json
import subprocess
from pathlib import Path

import pico_stack
import pytest
from flash_model import Model

from clawlite.host.flash.plan import Contents

HERE = Path(__file__).parent
BOOT = HERE.parents[1] / "firmware-host/micropython/boot"
# Stands in for what a slot holds: it boots when its image, its firmware and its tools.py are those
# of one build.
MAIN = """
VERSION = %r
def attempt(path, folder, operator, state, seal, key):
    with open(path, "rb") as file:
        image = file.read()
    with open(folder + "/tools.py", "rb") as file:
        tools = file.read()
    with open(folder + "/more.py", "rb") as file:
        more = file.read()
    if image != VERSION.encode() * 300:
        return None, "damaged"
    return (VERSION if tools == b"# " + VERSION.encode() and more == VERSION.encode() * 200 else "MIXED"), ""
def run(device, ready):
    pass
"""  # noqa: E501


def build(version: str, shared: str = "one") -> Contents:
    """Return what a flash of *version* shall bring: the real choosers are not on the disk, their
    stand-ins are.
    """
    return Contents(
        {"/lib/slots.mpy": shared.encode() * 100, "/main.py": b"# " + shared.encode()},
        {
            "main.py": (MAIN % version).encode(),
            "more.py": version.encode() * 200,
            "tools.py": b"# " + version.encode(),
        },
        version.encode() * 300,
    )


def powerless(micropython, tmp_path, script: list) -> list:
    (tmp_path / "job.json").write_text(
        json.dumps({"boot": pico_stack.compiled(BOOT), "script": script})
    )
    done = subprocess.run(
        [
            *pico_stack.program(HERE / "disk_board.py"),
            str(tmp_path / "job.json"),
            str(tmp_path / "out.json"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and not done.stderr, (done.stdout, done.stderr)
    return json.loads((tmp_path / "out.json").read_text())


def held_to(found: list, begins: dict) -> None:
    """From each step in *begins* on only those versions boot, and once a later one did, no
    earlier one does; twice in a row the same.
    """
    may, last = begins[0], 0
    for step, first, second in found:
        may = begins.get(step, may)
        assert first in may and second == first, (step, first, second, may)
        version = int(first[1:]) if first else 0
        assert version >= last, (step, first)
        last = version


def test_the_checker_bites(micropython, tmp_path):
    """An image that gets its name before what stands in its folder is there; without the list of
    files, which would tell.
    """
    board = Model()
    script = [
        step
        for step in board.flash(build("v1"))
        + board.boot()
        + board.flash(build("v2"))
        + board.boot()
        if "/files" not in "".join(step[1:2])
    ]
    begin, third = (
        len(script),
        [step for step in board.flash(build("v3")) if "/files" not in step[1]],
    )
    late = [step for step in third if "/more.py" in step[1] or "/tools.py" in step[1]]
    found = [
        row
        for row in powerless(
            micropython, tmp_path, script + [step for step in third if step not in late] + late
        )
        if row[0] >= begin
    ]
    with pytest.raises(AssertionError, match="MIXED"):
        held_to(found, {0: ("v2", "v3")})


def test_a_first_and_two_more_flashes(micropython, tmp_path):
    board = Model()
    first = board.flash(build("v1"))
    script = first + board.boot()
    second = board.flash(build("v2"))
    script += second + board.boot()
    third = board.flash(build("v3", "two"))
    at = len(first)
    found = powerless(micropython, tmp_path, script + third + board.boot())
    held_to(
        found,
        {
            0: (None, "v1"),
            at: ("v1",),
            at + 1: ("v1", "v2"),
            at + 1 + len(second): ("v2",),
            at + 2 + len(second): ("v2", "v3"),
            at + 2 + len(second) + len(third): ("v3",),
        },
    )
    assert found[-1][1:] == ["v3", "v3"] and len(found) > 300


@pytest.mark.parametrize("stopped", range(1, 10, 2))
def test_a_flash_after_one_that_was_interrupted(micropython, tmp_path, stopped):
    board = Model()
    first = board.flash(build("v1"))
    script = first + board.boot() + board.flash(build("v2")) + board.boot()
    begin = len(script)
    script += board.flash(build("v3"), stopped)
    script += board.flash(build("v4")) + board.boot()
    found = [row for row in powerless(micropython, tmp_path, script) if row[0] >= begin]
    held_to(found, {begin: ("v2", "v4"), 0: ("v2", "v4"), len(script) - 1: ("v4",)})
    assert found[-1][1:] == ["v4", "v4"]


def test_a_torn_or_missing_record(micropython, tmp_path):
    board = Model()
    script = board.flash(build("v1")) + board.boot() + board.flash(build("v2")) + board.boot()
    begin = len(script)
    torn = base64.b64encode(b"CLB1\0\0\0\x09b\0\1").decode()
    script += [
        ["write", "/claw.boot.new", torn],
        ["write", "/claw.boot", torn],
        ["remove", "/claw.boot.new"],
        ["remove", "/claw.boot"],
    ]
    found = [row for row in powerless(micropython, tmp_path, script) if row[0] >= begin]
    assert {row[1] for row in found} == {"v1", "v2"} and found[-1][1:] == ["v1", "v1"]
