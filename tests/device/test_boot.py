"""A board boots the right slot, or says why not and leaves the REPL free: what a flash really
writes, on MicroPython's unix port.
"""

import os
import shutil
import zlib

import pytest
from agents import Agent
from slot_board import TOOLS, WINDOW, Board, contents_of_any, ready

from clawlite.core.base.errors import ClawError
from clawlite.host.flash import flash
from clawlite.host.flash.folder import Folder
from clawlite.host.flash.plan import plan

HEAP = "88k"  # boot window, slots and a turn of the console: 64-bit words
KEY = b"0123456789abcdef"


@pytest.fixture(scope="session")
def whole(mpy_cross, tmp_path_factory):
    return contents_of_any(tmp_path_factory.mktemp("projects"))


@pytest.fixture
def board(micropython, whole, tmp_path):
    """Return the folder of a board that runs 1.0.0, and has booted."""
    made = Board(whole, tmp_path)
    made.flash("1.0.0")
    return made


def test_a_boot_within_a_small_heap(board):
    assert board.record() == ("a", 0, 0)
    assert board.boot("-X", "heapsize=" + HEAP) == WINDOW + ready("1.0.0")
    assert board.record() == ("a", 0, 1)
    board.flash("2.0.0")
    assert board.record() == ("b", 0, 0)
    assert board.boot() == WINDOW + ready("2.0.0")
    assert board.record() == ("b", 0, 1)


@pytest.mark.parametrize(
    "dies", ["import sys\nsys.exit(3)\n", "import os\nos.system('kill -9 $PPID')\n"]
)
def test_three_failed_boots_and_the_other_slot_is_taken(board, dies):
    board.boot()
    board.flash("2.0.0", TOOLS + dies)
    for trials in (1, 2, 3):
        assert board.boot() == WINDOW
        assert board.record() == ("b", trials, 0)
    assert (
        board.boot()
        == WINDOW
        + "clawlite: slot b was not ready in 3 boots: slot a is taken\n"
        + "clawlite: slot a boots now\n"
        + ready("1.0.0")
    )
    assert board.record() == ("a", 0, 1)
    assert board.boot() == WINDOW + ready("1.0.0")


def test_two_failed_boots_and_a_good_one_count_for_nothing(board):
    board.boot()
    board.flash(
        "2.0.0",
        TOOLS + "import os, sys\ntry:\n    os.stat(%r)\nexcept OSError:\n    "
        "sys.exit(3)\n" % str(board.tmp_path / "sensor"),
    )
    for _ in range(2):
        board.boot()
    (board.tmp_path / "sensor").touch()
    assert board.boot() == WINDOW + ready("2.0.0")
    assert board.record() == ("b", 0, 1)


def test_the_only_image_is_tried_at_each_reset(board):
    board.flash("1.0.1", TOOLS)
    board.image("a").unlink()
    (board.root / "claw-b/tools.py").write_text("import sys\nsys.exit(3)\n")
    for _ in range(5):
        said = board.boot()
        assert "clawlite: slot b: " in said and said.endswith(
            "clawlite: no image boots - write one with: clawlite flash\n"
        )
    assert board.record()[0] == "b"


def test_a_tool_that_cannot_be_loaded_leaves_its_slot_at_once(board):
    board.boot()
    board.flash("2.0.0", TOOLS + '__import__("nothing_of_the_kind")\n')
    said = board.boot()
    assert (
        "clawlite: slot b: tools.py cannot be loaded: ImportError: no module named "
        "'nothing_of_the_kind'" in said
    )
    assert said.endswith("clawlite: slot a boots now\n" + ready("1.0.0")) and board.record() == (
        "a",
        0,
        1,
    )


def with_crc(data: bytes) -> bytes:
    """Return an unsigned image with a right CRC, whatever its digest."""
    return data[:-39] + zlib.crc32(data[:-40]).to_bytes(4, "big") + data[-35:]


def test_the_digest_is_checked_when_a_slot_is_new(board):
    board.boot()
    old = board.image("a").read_bytes()
    assert with_crc(old) == old
    board.flash("2.0.0")
    data = board.image("b").read_bytes()
    edited = with_crc(data.replace(b"2.0.0", b"6.6.6"))
    assert edited != data
    board.image("b").write_bytes(edited)
    said = board.boot()
    assert "clawlite: slot b: image: bad digest" in said and said.endswith(
        "clawlite: slot a boots now\n" + ready("1.0.0")
    )


def test_the_crc_is_checked_at_each_boot(board):
    board.boot()
    board.flash("2.0.0")
    board.boot()
    data = bytearray(board.image("b").read_bytes())
    data[len(data) // 2] ^= 1
    board.image("b").write_bytes(data)
    said = board.boot()
    assert "clawlite: slot b: image: bad CRC" in said and said.endswith(ready("1.0.0"))
    board.image("a").write_bytes(data)
    said = board.boot()
    assert said.count("bad CRC") == 2 and said.endswith(
        "clawlite: no image boots - write one with: clawlite flash\n"
    )


def test_no_image_is_one_line(board):
    board.image("a").unlink()
    assert (
        board.boot()
        == WINDOW + "clawlite: there is no image here - write one with: clawlite flash\n"
    )


def test_a_board_with_a_key_boots_its_owners_images_alone(board):
    (board.root / "device.key").write_bytes(KEY + b"\n")
    assert (
        "clawlite: slot a: image: not signed, and this device runs signed images only"
        in board.boot()
    )
    board.flash("2.0.0", key=KEY)
    assert board.boot() == WINDOW + ready("2.0.0")
    board.flash("3.0.0", key=b"another key of 24 bytes.")
    said = board.boot()
    assert "image: signed with another key than this device's" in said and said.endswith(
        ready("2.0.0")
    )
    (board.root / "device.key").write_bytes(b"short")
    assert "clawlite: slot b: device.key holds 5 bytes, expected 16 or more" in board.boot()


def test_safe_mode_by_a_file(board):
    (board.root / "safe-mode").touch()
    assert (
        board.boot()
        == "clawlite: safe mode, the agent does not start: the file safe-mode is there\n"
    )
    assert board.record() == ("a", 0, 0)


def test_safe_mode_by_a_pin(board):
    """``machine`` here has no pins: one of a test stands before it, whose value is in a file."""
    (board.root / "lib/machine.py").write_text(
        "class Pin:\n    IN, PULL_UP = 1, 2\n    def "
        "__init__(self, *how):\n        self.how = how\n"
        "    def value(self):\n        assert self.how == "
        "(15, 1, 2)\n"
        "        with open(%r) as file:\n            "
        "return int(file.read())\n" % str(board.root / "level")
    )
    (board.root / "boot.json").write_text('{"window_ms": 100, "safe_pin": 15}')
    (board.root / "level").write_text("1")
    assert board.boot() == WINDOW + ready("1.0.0")
    (board.root / "level").write_text("0")
    assert board.boot() == "clawlite: safe mode, the agent does not start: its pin is low\n"


FED = "\0"


def test_a_watchdog_is_armed_after_the_window_and_anew_when_the_agent_runs(board):
    """``machine`` here has none: one of a test stands before it, which says when it is made and
    fed.
    """
    (board.root / "lib/machine.py").write_text(
        "class WDT:\n    def __init__(self, id=0, "
        "timeout=5000):\n        print('armed', timeout)\n"
        "    def feed(self):\n        print(end='\\0')\n"
    )
    (board.root / "boot.json").write_text('{"window_ms": 100, "watchdog_ms": 8000}')
    said = board.boot()
    assert (
        said.replace(FED, "").startswith(WINDOW + "armed 8388\nagent 1.0.0 is ready.")
        and said.count("armed 8000\n") == said.count("armed") - 1 == 1
    )
    assert said.count(FED) < 5  # the files were compared in the window, before it was armed
    board.flash("2.0.0")
    os.remove(board.root / "claw-b/core.mpy")
    assert board.boot().count(FED) > len(os.listdir(board.root / "claw-a")) - 2


def test_files_are_compared_while_the_window_passes(board):
    """``binascii`` and ``time`` of a test stand before MicroPython's, and say that they ran."""
    (board.root / "lib/binascii.py").write_text(
        "from ubinascii import *\nimport ubinascii\n"
        "def crc32(*data):\n    print(end='c')\n    return ubinascii.crc32(*data)\n"
    )
    (board.root / "lib/time.py").write_text(
        "from utime import *\nimport utime\n"
        "def sleep_ms(ms):\n    print(end='w')\n    utime.sleep_ms(ms)\n"
    )
    (board.root / "boot.json").write_text('{"window_ms": 2000}')
    used = board.boot().partition("from starting\n")[2].partition("agent 1.0.0")[0]
    assert used.count("w") > 1 and used.index("w") > used.count("c") // 2 > 50


def test_a_watchdog_that_cannot_be_armed_is_told(board):
    (board.root / "lib/machine.py").write_text(
        "class WDT:\n    def __init__(self, id=0, "
        "timeout=5000):\n        raise "
        "ValueError('timeout')\n"
    )
    (board.root / "boot.json").write_text('{"window_ms": 100, "watchdog_ms": 8000}')
    said = board.boot()
    assert said.startswith(
        WINDOW + "clawlite: there is no watchdog while the agent is loaded: timeout\n"
    )
    assert "clawlite: there is no watchdog of 8000 ms here: timeout\n" in said and said.endswith(
        "By rule.\n> "
    )


def test_ctrl_c_in_the_boot_window(board):
    (board.root / "boot.json").write_text('{"window_ms": 60000}')
    words, env = board.words()
    with Agent(words, board.tmp_path / "home", env=env) as agent:
        agent.expect("within 60000 ms")
        agent.signal_at_rest(2)
        assert agent.wait() == 0 and agent.text().endswith(
            "\nclawlite: interrupted, the agent does not start\n"
        )
    assert board.record() == ("a", 0, 0)


def test_ctrl_c_while_it_opens_is_no_failed_boot(board):
    board.flash("2.0.0", TOOLS + "print('opening')\nimport time\ntime.sleep(60)\n")
    words, env = board.words()
    with Agent(words, board.tmp_path / "home", env=env) as agent:
        agent.expect("opening")
        agent.signal_at_rest(2)
        assert agent.wait() == 0 and "interrupted" in agent.text()
    assert board.record() == ("b", 0, 0)


@pytest.mark.parametrize(
    "settings, said",
    [
        ("{", "boot.json: "),
        ("[]", "boot.json: "),
        ('{"window_ms": 99}', "boot.json: window_ms: expected 100 to 60000"),
        ('{"window_ms": 60001}', "boot.json: window_ms: expected"),
        ('{"window_ms": "x"}', "boot.json: window_ms: expected"),
        (
            '{"window_ms": 100, "safe_pin": 256}',
            "boot.json: safe_pin: expected the number of a pin",
        ),
        ('{"window_ms": 100, "safe_pin": -1}', "boot.json: safe_pin: expected the number of a pin"),
        (
            '{"window_ms": 100, "safe_pin": 255}',
            "boot.json: safe_pin: there are no pins here; the file safe-mode does the same",
        ),
        ('{"window_ms": 100, "watchdog_ms": 999}', "boot.json: watchdog_ms: expected 1000 to 8388"),
        (
            '{"window_ms": 100, "watchdog_ms": 8389}',
            "boot.json: watchdog_ms: expected 1000 to 8388",
        ),
        (
            '{"window_ms": 100, "watchdog_ms": 8388}',
            "boot.json: watchdog_ms: there is no watchdog here",
        ),
        ('{"window_ms": 100}' + " " * 600 + "x", ""),
        ('{"window_ms": 100' + " " * 600 + "}", "boot.json: "),
    ],
)
def test_settings_that_are_wrong_count_for_nothing(board, settings, said):
    (board.root / "boot.json").write_text(settings)
    text = board.boot()
    assert ("clawlite: " + said in text if said else text.startswith(WINDOW)) and text.endswith(
        ready("1.0.0")
    )


def test_a_record_that_cannot_be_written(board):
    (board.root / "claw.boot.new").mkdir()
    text = board.boot()
    assert (
        "clawlite: the boot record cannot be written: " in text and "agent 1.0.0 is ready" in text
    )


def test_what_an_agent_keeps_outlives_its_slot(board):
    board.boot()
    before = sorted(os.listdir(board.root / "state"))
    board.flash("2.0.0")
    board.boot()
    assert sorted(os.listdir(board.root / "state")) == before and not [
        name for name in os.listdir(board.root) if "log" in name or "meters" in name
    ]


# -- a flash that is interrupted, and one that is read back wrong


class Stopped(Exception):
    pass


class Stopping(Folder):
    """A folder that goes away after *count* steps, with half of the last one's file written."""

    def __init__(self, root, count: int):
        super().__init__(root)
        self._left = count

    def do(self, step: tuple, tell):
        if not self._left:
            if step[0] in ("write", "copy"):
                self.write(step[1], step[2][: len(step[2]) // 2])
            raise Stopped
        self._left -= 1
        super().do(step, tell)


def test_a_flash_stopped_at_any_step_leaves_an_image_that_boots(board):
    """Of the copies of the firmware every eighth; disk_board.py has each write of each block."""
    board.boot()
    steps = [
        step
        for step in plan(board.folder.read_state(), board.contents("2.0.0")).steps
        if step[0] != "verify"
    ]
    begin = os.path.join(board.tmp_path, "begin")
    shutil.copytree(board.root, begin)
    booted = []
    for count in [*range(0, len(steps) - 8, 16), *range(len(steps) - 8, len(steps) + 1)]:
        shutil.rmtree(board.root)
        shutil.copytree(begin, board.root)
        stopping = Stopping(str(board.root), count)
        try:
            flash.carry_out(
                stopping, plan(stopping.read_state(), board.contents("2.0.0")), lambda size: None
            )
        except Stopped:
            pass
        said = board.boot()
        booted.append(said.partition("\nagent ")[2][:5])
        board.flash("2.0.0")
        assert board.boot().endswith(ready("2.0.0"))
    assert booted == sorted(booted) and set(booted) == {"1.0.0", "2.0.0"}


def test_what_is_read_back_wrong_does_not_boot(board):
    board.boot()

    class Worn(Folder):
        def write(self, path: str, data: bytes):
            super().write(path, data[:-1] + b"?" if path.endswith("/tools.py.new") else data)

    worn = Worn(str(board.root))
    made = plan(worn.read_state(), board.contents("2.0.0", TOOLS + "# other\n"))
    with pytest.raises(
        ClawError, match="claw-b/tools.py is not what was written; the previous agent still boots"
    ):
        flash.carry_out(worn, made, lambda size: None)
    assert board.boot() == WINDOW + ready("1.0.0")
