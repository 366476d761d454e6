"""``clawlite firmware``: packages that name every file that is there and nothing else, installed
by MicroPython's own mip.
"""

import functools
import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

import pico_stack
import pytest
from agents import clawlite
from sims import needs_micropython, needs_mpy_cross
from slot_board import TOOLS, project

from clawlite.core.base.errors import ClawError
from clawlite.host.firmware import firmware
from clawlite.host.firmware import package as firmware_package
from clawlite.host.firmware.board_files import board_files

pytestmark = needs_mpy_cross


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("firmware") / "out"
    assert firmware_package.write(str(folder)) == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    return folder


def listed(folder: Path) -> dict:
    """Return {place: file} of a package.json, every file of it there."""
    package = json.loads((folder / "package.json").read_text())
    assert sorted(package) == ["deps", "urls", "version"] and package["deps"] == []
    for _, source in package["urls"]:
        assert (folder / source).is_file()
    return dict(package["urls"])


def frozen(folder: Path) -> list:
    """Return the modules that a MicroPython build would freeze (docs.micropython.org, "manifest
    files": module).
    """
    found = []
    exec(
        (folder / "manifest.py").read_text(),
        {"module": lambda path, opt: found.append(path) or opt == 3 or pytest.fail("opt")},
    )
    return found


def test_mip_gets_what_a_flash_brings_but_for_the_agent(made, tmp_path):
    image = project(tmp_path / "agent", "1.0.0", TOOLS)
    flashed = {
        place.lstrip("/"): Path(path).read_bytes()
        for path, place in board_files(image, str(tmp_path / "built"))
    }
    got = {
        place: (made / "mip" / source).read_bytes()
        for place, source in listed(made / "mip").items()
    }
    assert {place for place in flashed if place not in got} == {
        "claw-a.cbor",
        "claw-a/parts",
        "claw-a/tools.py",
    }
    left = {place for place in got if place not in flashed}
    # the agent asks no provider over a network
    assert "claw-a/remote.mpy" in left and "claw-a/core.mpy" not in left
    assert {place: flashed[place] for place in got if place in flashed} == {
        place: got[place] for place in got if place not in left
    }
    here = {
        path.relative_to(made / "mip").as_posix()
        for path in (made / "mip").rglob("*")
        if path.is_file()
    }
    assert here == set(listed(made / "mip").values()) | {"package.json"}


def test_what_is_frozen_and_what_is_beside_it_is_all_there_is(made):
    folder = made / "frozen"
    modules, beside = frozen(folder), listed(folder)
    assert sorted(modules) == sorted(f"{name}.py" for name in firmware.link()[0] if name != "main")
    assert {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    } == {*modules, *beside.values(), "manifest.py", "package.json"}
    assert set(beside) == {
        "sentences",
        "main.py",
        "claw-a/main.mpy",
        "lib/slots.mpy",
        "lib/bootwindow.mpy",
    }


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def install(package: Path, target: Path) -> None:
    """Install a package with MicroPython's mip, from an HTTP server on loopback."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(package))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            code = "import sys, mip; mip.install(sys.argv[1], target=sys.argv[2])"
            done = subprocess.run(
                [
                    pico_stack.micropython(),
                    pico_stack.script(code),
                    f"http://127.0.0.1:{server.server_address[1]}/package.json",
                    str(target),
                ],
                capture_output=True,
                text=True,
                timeout=300,
            )
        finally:
            server.shutdown()
            thread.join()
    assert done.returncode == 0 and "Done" in done.stdout, done.stdout + done.stderr


def says(board: Path, *path) -> str:
    """Start the agent in slot a of *board*, which has said what it has to say when its input
    ends.
    """
    start = (
        "import sys; sys.path.insert(0, sys.argv[1] + '/claw-a'); import main; "
        "sys.exit(main.main([sys.argv[1] + '/claw-a.cbor']))"
    )
    done = subprocess.run(
        [pico_stack.micropython(), pico_stack.script(start), str(board)],
        capture_output=True,
        text=True,
        timeout=300,
        input="hello\nrun nothing\n/trace x\n",
        cwd=board,
        env={**os.environ, "MICROPYPATH": ":".join([*map(str, path), ".frozen"])},
    )
    return done.stdout + done.stderr


def put_agent(board: Path, folder: Path) -> None:
    image = Path(project(folder / "agent", "1.0.0", TOOLS))
    (board / "claw-a.cbor").write_bytes(image.read_bytes())
    # beside the image, where main.main looks
    (board / "tools.py").write_bytes((image.parent / "tools.py").read_bytes())


@needs_micropython
def test_mip_installs_it_and_it_runs(made, tmp_path):
    board = tmp_path / "board"
    board.mkdir()
    install(made / "mip", board)
    assert {
        path.relative_to(board).as_posix(): path.read_bytes()
        for path in board.rglob("*")
        if path.is_file()
    } == {
        place: (made / "mip" / source).read_bytes()
        for place, source in listed(made / "mip").items()
    }
    put_agent(board, tmp_path)
    assert "agent 1.0.0 is ready." in says(board) and "By rule." in says(board)


@needs_micropython
def test_frozen_modules_run_with_what_is_beside_them(made, tmp_path):
    """No firmware is built here: the modules lie in a folder that is searched last, as what is
    frozen is.
    """
    board, firm = tmp_path / "board", tmp_path / "firm"
    board.mkdir()
    firm.mkdir()
    install(made / "frozen", board)
    for name in frozen(made / "frozen"):
        (firm / name).write_bytes((made / "frozen" / name).read_bytes())
    # a frozen module's __file__ has no folder: it reads /sentences
    os.rename(board / "sentences", firm / "sentences")
    put_agent(board, tmp_path)
    said = says(board, firm)
    assert (
        "agent 1.0.0 is ready." in said
        and "By rule." in said
        and "Expected /trace with a number" in said
        or "No tool has been called" in said
    )


def test_the_command(tmp_path):
    done = clawlite("firmware", "out", cwd=tmp_path)
    assert done.returncode == 0 and "mip install --target / out/mip/package.json" in done.stderr
    done = clawlite("firmware", "out", "--json", cwd=tmp_path)
    assert done.returncode == 2 and "out is not empty" in done.stderr
    with pytest.raises(ClawError, match="Not a directory"):
        firmware_package.write(str(tmp_path / "out/mip/package.json/x"))
