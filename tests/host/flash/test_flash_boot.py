"""What a flash says about how a board starts: /boot.json of the section [boot], and the device
key, which comes after all else.
"""

import json
import os
import subprocess

import pico_stack
import pytest
from agents import clawlite, eventually
from sims import needs_micropython, needs_mpy_cross
from slot_board import START, TOOLS, project

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build
from clawlite.host.flash import flash
from clawlite.host.flash.folder import Folder
from clawlite.host.sim.sim import Sim

pytestmark = needs_mpy_cross
KEY = b"0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("CLAWLITE_DEVICE_KEY_FILE", raising=False)


@pytest.fixture
def agent(tmp_path):
    """Return the folder of an agent with a section [boot]."""
    project(tmp_path / "agent", "1.0.0", TOOLS)
    with open(tmp_path / "agent/clawlite.toml", "a") as file:
        file.write("[boot]\nwindow_ms = 150\n")
    return tmp_path / "agent"


@pytest.fixture
def key(tmp_path):
    (tmp_path / "key").write_bytes(KEY + b"\n")
    (tmp_path / "key").chmod(0o600)
    return str(tmp_path / "key")


def flashed(name, target, key_file=None) -> dict:
    return flash.flash(
        str(name),
        target,
        False,
        None,
        lambda found: None,
        lambda: None,
        lambda total, more: None,
        key_file,
    )


def changed(found: dict) -> list:
    return [(file["path"], file["change"]) for file in found["files"] if file["change"] != "same"]


def test_boot_settings_travel_and_are_left_alone_without_a_section(agent, tmp_path):
    (tmp_path / "card").mkdir()
    found = flashed(agent, Folder(str(tmp_path / "card")))
    assert ("/boot.json", "new") in changed(found) and json.loads(
        (tmp_path / "card/boot.json").read_text()
    ) == {"window_ms": 150}
    assert not flashed(agent, Folder(str(tmp_path / "card")))["written"]
    text = (agent / "clawlite.toml").read_text()
    (agent / "clawlite.toml").write_text(text + "safe_pin = 15\n")
    found = flashed(agent, Folder(str(tmp_path / "card")))
    assert changed(found) == [("/boot.json", "changed")] or ("/boot.json", "changed") in changed(
        found
    )
    assert json.loads((tmp_path / "card/boot.json").read_text()) == {
        "safe_pin": 15,
        "window_ms": 150,
    }
    (agent / "clawlite.toml").write_text(text.partition("[boot]")[0])
    assert "/boot.json" not in dict(changed(flashed(agent, Folder(str(tmp_path / "card")))))
    assert (tmp_path / "card/boot.json").exists()


def test_the_key_is_the_last_that_comes_and_its_hash_is_not_shown(agent, tmp_path, key):
    want = flash.contents(str(agent), None, key)
    (tmp_path / "card").mkdir()
    made = flash.prepare(Folder(str(tmp_path / "card")), want)
    renamed = [step[2] for step in made.steps if step[0] == "rename"]
    assert renamed[-2:] == ["/claw.boot", "/device.key"]
    (row,) = [change for change in made.changes if change["path"] == "/device.key"]
    assert (row["change"], row["sha256"], row["bytes"]) == ("new", None, 32)
    flash.carry_out(Folder(str(tmp_path / "card")), made, lambda size: None)
    assert (tmp_path / "card/device.key").read_bytes() == KEY
    assert not flash.prepare(Folder(str(tmp_path / "card")), want).steps


def test_a_key_alone_does_not_touch_the_slots(agent, tmp_path, key):
    (tmp_path / "card").mkdir()
    signed = build.build(str(agent), None, key)["file"]
    flashed(signed, Folder(str(tmp_path / "card")))
    found = flashed(signed, Folder(str(tmp_path / "card")), key)
    assert (changed(found), found["boots"], found["slot"]) == ([("/device.key", "new")], "a", "a")


def test_an_image_that_is_not_signed_with_the_key_is_refused(agent, tmp_path, key):
    (tmp_path / "card").mkdir()
    unsigned = build.build(str(agent))["file"]
    with pytest.raises(ClawError, match="not signed"):
        flashed(unsigned, Folder(str(tmp_path / "card")), key)
    (tmp_path / "other").write_bytes(b"f" * 32)
    (tmp_path / "other").chmod(0o600)
    signed = build.build(str(agent), None, str(tmp_path / "other"))["file"]
    with pytest.raises(ClawError, match="signed with another key"):
        flashed(signed, Folder(str(tmp_path / "card")), key)
    (tmp_path / "short").write_bytes(b"f" * 15)
    (tmp_path / "short").chmod(0o600)
    with pytest.raises(ClawError, match="16 bytes or more"):
        flashed(agent, Folder(str(tmp_path / "card")), str(tmp_path / "short"))
    assert not os.listdir(tmp_path / "card")


@needs_micropython
def test_a_board_with_a_key_boots_what_is_signed_and_nothing_else(agent, tmp_path, key):
    with Sim(folder=str(tmp_path / "flash")) as board:
        with flash.target(board.path) as target:
            assert flashed(agent, target, key)["said"].endswith(
                "agent 1.0.0 is ready. /help lists the commands."
            )
        assert (tmp_path / "flash/device.key").read_bytes() == KEY
        (agent / "tools.py").write_text(TOOLS + "# other\n")
        with flash.target(board.path) as target:
            with pytest.raises(ClawError, match="(?s)did not boot.*not signed"):
                flashed(agent, target)
        with flash.target(board.path) as target:
            assert flashed(agent, target, key)["said"]


MACHINE = """class WDT:
    def __init__(self, id=0, timeout=5000):
        _log("watchdog", timeout)
    def feed(self):
        _log("fed")
class Timer:
    PERIODIC = 1
    def __init__(self, id):
        if id < 0: raise ValueError("Timer doesn't exist")
    def init(self, *, period, mode, callback):
        _log("timer", period, mode)
        callback(self)
def _log(*what):
    with open("/log", "a") as file:
        file.write(" ".join([str(one) for one in what]) + "\\n")
"""


@needs_micropython
def test_a_watchdog_that_runs_is_fed_while_its_board_is_flashed(agent, tmp_path):
    """The unix port has none: a module ``machine`` stands before its own, which says what it is
    told.
    """
    (tmp_path / "flash/lib").mkdir(parents=True)
    (tmp_path / "flash/lib/machine.py").write_text(MACHINE)
    with Sim(folder=str(tmp_path / "flash")) as board:
        with flash.target(board.path) as target:  # no agent has armed one
            assert flashed(agent, target)["written"]
        assert not (tmp_path / "flash/log").exists()
        (agent / "clawlite.toml").write_text(
            (agent / "clawlite.toml").read_text() + "watchdog_ms = 8000\n"
        )
        with flash.target(board.path) as target:
            assert flashed(agent, target)["said"].endswith(
                "agent 1.0.0 is ready. /help lists the commands."
            )
        log = tmp_path / "flash/log"
        # what runs now has armed it, and its loop feeds it
        eventually(lambda: "watchdog 8000\n" in log.read_text())
        before = log.read_text()
        assert "timer" not in before
        (agent / "tools.py").write_text(TOOLS + "# other\n")
        with flash.target(board.path) as target:
            while_it_waits = log.read_text()
            assert flashed(agent, target)["said"]
        assert "watchdog 8388\ntimer 1000 1\nfed\n" in while_it_waits[len(before) :]
        eventually(lambda: "watchdog 8000\n" in log.read_text()[len(while_it_waits) :])


@pytest.mark.parametrize(
    "line, said",
    [
        ("window_ms = 99", "boot.window_ms: expected"),
        ("window_ms = 60001", "boot.window_ms: expected"),
        ("safe_pin = 256", "boot.safe_pin: expected"),
        ("safe_pin = -1", "boot.safe_pin: expected"),
        ("watchdog = true", "boot.watchdog: unknown field"),
    ],
)
def test_settings_that_cannot_be(agent, line, said):
    text = (agent / "clawlite.toml").read_text().replace("window_ms = 150", line)
    (agent / "clawlite.toml").write_text(text)
    with pytest.raises(ManifestErrors) as refused:
        build.build(str(agent))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "value", ["window_ms = 100", "window_ms = 60000", "safe_pin = 0", "safe_pin = 255"]
)
def test_settings_at_their_bounds(agent, value):
    (agent / "clawlite.toml").write_text(
        (agent / "clawlite.toml").read_text().replace("window_ms = 150", value)
    )
    assert build.build(str(agent))["file"]


@pytest.mark.parametrize(
    "board, pin, said",
    [
        ("pico", 23, "pico has no digital pin 23"),
        ("esp32", 34, "pin 34 of esp32 has no pull-up"),
        ("pico", 15, "pin 15 is button already"),
        ("pico", 14, None),
        ("rpi-4", 99, None),
    ],
)
def test_a_safe_mode_pin_that_the_board_has(agent, board, pin, said):
    text = (agent / "clawlite.toml").read_text().replace(
        "window_ms = 150", f"safe_pin = {pin}"
    ) + '[[pins]]\nname = "button"\npin = 15\nkind = "input"\n'
    (agent / "clawlite.toml").write_text(text)
    try:
        build.build(str(agent), board=board)
    except ManifestErrors as e:
        assert said and said in str(e) and "boot.safe_pin" in str(e), str(e)
    else:
        assert said is None


def test_a_key_has_no_place_on_linux_or_in_firmware(tmp_path, key):
    done = clawlite("flash", "--firmware", "x.uf2", "--device-key", key, cwd=tmp_path)
    assert done.returncode == 2 and "without --ssh and --device-key" in done.stderr


@needs_micropython
def test_a_module_beside_tools_py_is_compiled_into_the_slot(tmp_path, agent):
    (agent / "helper.py").write_text("def double(n):\n    return 2 * n\n")
    (agent / "tools.py").write_text(
        "import helper\n\n\ndef look() -> int:\n    'Look.'\n    return helper.double(21)\n\n\n"
        "def fail() -> int:\n    'Fail.'\n    return 1 // 0\n"
    )
    (agent / "reflex.toml").write_text(
        '[[rule]]\nwhen = "look"\ncall = "look"\n[[rule]]\nwhen = "fail"\ncall = "fail"\n'
    )
    assert clawlite("build", "--board", "sim", cwd=agent).returncode == 0
    root = tmp_path / "card"
    root.mkdir()
    found = flashed(agent, Folder(str(root)))
    assert ("/claw-a/helper.mpy", "new") in changed(found)
    words = [pico_stack.micropython(), pico_stack.script(START), str(root)]
    done = subprocess.run(
        words,
        input=b"look\nfail\n",
        capture_output=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=".frozen"),
    )
    said = done.stdout.decode()
    assert "> 42\n" in said
    assert "fail failed: ZeroDivisionError: divide by zero (tools.py:11)\n" in said
