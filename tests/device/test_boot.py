"""A board boots the right slot, or says why not and leaves the REPL free: what a flash really writes, on MicroPython's unix port."""
import dataclasses
import json
import os
import subprocess
import zlib

import pytest
from agents import Agent

from clawlite.host import build, flash
from clawlite.host.flash_folder import Folder
from clawlite.host.flash_plan import newest, plan

HEAP = "96k"                    # boot window, slots and a turn of the console: 64-bit words
START = """
import sys
ROOT = sys.argv[1] + "/"
ROOT = ROOT[:-1]
sys.path.insert(0, ROOT + "/lib")
import bootwindow
agent = bootwindow.start(ROOT)
del bootwindow
def ready():
    import slots
    del sys.modules["slots"]
    slots.ready(ROOT)
if agent:
    agent[0](agent[1], ready)
"""
MANIFEST = """\
claw: "0.3.0"
kind: Claw
metadata: {{ name: "agent", version: "{version}" }}
spec:
  identity: {{ inline: {{ name: "agent", personality: "You are under test.", autonomy: "autonomous" }} }}
  providers:
    - inline: {{ name: "reflex", protocol: "custom", endpoint: "builtin:reflex", model: "reflex", auth: {{ type: "none" }} }}
  sandbox: {{ inline: {{ name: "in-process", level: "none" }} }}
  policies: [{{ inline: {{ name: "p", rules: [{{ id: "all", action: "allow", scope: "all" }}] }} }}]
"""
TOOLS = 'def look() -> str:\n    """Look."""\n    return "seen"\n'
KEY = b"0123456789abcdef"


def project(folder, version: str, tools: str = TOOLS, key: bytes = None):
    """Build an agent in *folder*; return its image."""
    folder.mkdir()
    for name, text in {"claw.yaml": MANIFEST.format(version=version), "tools.py": tools, "clawlite.toml": 'reflex = "reflex.toml"\n',
                       "reflex.toml": '[[rule]]\nwhen = "*"\nsay = "By rule."\n'}.items():
        (folder / name).write_text(text)
    if key:
        (folder / "key").write_bytes(key)
    return build.build(str(folder), None, str(folder / "key") if key else None)["file"]


@pytest.fixture(scope="session")
def whole(mpy_cross, tmp_path_factory):
    """Return ``flash.contents`` of any image; the firmware is linked once."""
    return flash.contents(project(tmp_path_factory.mktemp("whole") / "agent", "0.0.1"))


@pytest.fixture
def board(micropython, whole, tmp_path):
    """Return the folder of a board that runs 1.0.0, and has booted."""
    made = Board(micropython, whole, tmp_path)
    made.flash("1.0.0")
    return made


class Board:
    def __init__(self, micropython, whole, tmp_path):
        self.micropython, self.whole, self.tmp_path = micropython, whole, tmp_path
        self.root = tmp_path / "board"
        self.root.mkdir()
        (self.root / "boot.json").write_text('{"window_ms": 100}')
        self.folder = Folder(str(self.root))

    def contents(self, version: str, tools: str = TOOLS, key: bytes = None):
        name = "agent-%d" % len(list(self.tmp_path.glob("agent-*")))
        image = project(self.tmp_path / name, version, tools, key)
        with open(image, "rb") as file:
            return dataclasses.replace(self.whole, slot={**self.whole.slot, "tools.py": tools.encode()}, image=file.read())

    def flash(self, *what, **more):
        flash.carry_out(self.folder, plan(self.folder.look(), self.contents(*what, **more)), lambda size: None)

    def words(self, *options) -> tuple:
        return [self.micropython, *options, "-c", START, str(self.root)], {"MICROPYPATH": ".frozen"}

    def boot(self, *options, stdin: bytes = b"hello\n") -> str:
        """Return what a boot says, with the end of input after its first turn."""
        words, env = self.words(*options)
        done = subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, env=dict(os.environ, **env))
        return done.stdout.decode()

    def record(self) -> tuple:
        """Return (slot, trials, checked)."""
        return newest(self.folder.look().records)[1:]

    def image(self, slot: str):
        return self.root / f"claw-{slot}.cbor"


WINDOW = "clawlite: Ctrl-C within 100 ms keeps the agent from starting\n"


def ready(version: str) -> str:
    return f"agent {version} is ready. /help lists the commands.\n> By rule.\n> "


def test_a_boot_within_a_small_heap(board):
    assert board.record() == ("a", 0, 0)
    assert board.boot("-X", "heapsize=" + HEAP) == WINDOW + ready("1.0.0")
    assert board.record() == ("a", 0, 1)
    board.flash("2.0.0")
    assert board.record() == ("b", 0, 0)
    assert board.boot() == WINDOW + ready("2.0.0")
    assert board.record() == ("b", 0, 1)


@pytest.mark.parametrize("dies", ["import sys\nsys.exit(3)\n", "import os\nos.system('kill -9 $PPID')\n"])
def test_three_failed_boots_and_the_other_slot_is_taken(board, dies):
    board.boot()
    board.flash("2.0.0", TOOLS + dies)
    for trials in (1, 2, 3):
        assert board.boot() == WINDOW
        assert board.record() == ("b", trials, 0)
    assert board.boot() == WINDOW + "clawlite: slot b was not ready in 3 boots: slot a is taken\n" + "clawlite: slot a boots now\n" + ready("1.0.0")
    assert board.record() == ("a", 0, 1)
    assert board.boot() == WINDOW + ready("1.0.0")


def test_two_failed_boots_and_a_good_one_count_for_nothing(board):
    board.boot()
    board.flash("2.0.0", TOOLS + "import os, sys\ntry:\n    os.stat(%r)\nexcept OSError:\n    sys.exit(3)\n" % str(board.tmp_path / "sensor"))
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
        assert "clawlite: slot b: " in said and said.endswith("clawlite: no image boots - write one with: clawlite flash\n")
    assert board.record()[0] == "b"


def test_a_tool_that_cannot_be_loaded_leaves_its_slot_at_once(board):
    board.boot()
    board.flash("2.0.0", TOOLS + "import nothing_of_the_kind\n")
    said = board.boot()
    assert "clawlite: slot b: tools.py cannot be loaded: ImportError: no module named 'nothing_of_the_kind'" in said
    assert said.endswith("clawlite: slot a boots now\n" + ready("1.0.0")) and board.record() == ("a", 0, 1)


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
    assert "clawlite: slot b: image: bad digest" in said and said.endswith("clawlite: slot a boots now\n" + ready("1.0.0"))


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
    assert said.count("bad CRC") == 2 and said.endswith("clawlite: no image boots - write one with: clawlite flash\n")


def test_no_image_is_one_line(board):
    board.image("a").unlink()
    assert board.boot() == WINDOW + "clawlite: there is no image here - write one with: clawlite flash\n"


def test_a_board_with_a_key_boots_its_owners_images_alone(board):
    (board.root / "device.key").write_bytes(KEY + b"\n")
    assert "clawlite: slot a: image: not signed, and this device runs signed images only" in board.boot()
    board.flash("2.0.0", key=KEY)
    assert board.boot() == WINDOW + ready("2.0.0")
    board.flash("3.0.0", key=b"another key of 24 bytes.")
    said = board.boot()
    assert "image: signed with another key than this device's" in said and said.endswith(ready("2.0.0"))
    (board.root / "device.key").write_bytes(b"short")
    assert "clawlite: slot b: device.key holds 5 bytes, expected 16 or more" in board.boot()


def test_safe_mode_by_a_file(board):
    (board.root / "safe-mode").touch()
    assert board.boot() == "clawlite: safe mode, the agent does not start: the file safe-mode is there\n"
    assert board.record() == ("a", 0, 0)


def test_safe_mode_by_a_pin(board):
    """``machine`` here has no pins: one of a test stands before it, whose value is in a file."""
    (board.root / "lib/machine.py").write_text("class Pin:\n    IN, PULL_UP = 1, 2\n    def __init__(self, *how):\n        self.how = how\n"
                                               "    def value(self):\n        assert self.how == (15, 1, 2)\n"
                                               "        with open(%r) as file:\n            return int(file.read())\n" % str(board.root / "level"))
    (board.root / "boot.json").write_text('{"window_ms": 100, "safe_pin": 15}')
    (board.root / "level").write_text("1")
    assert board.boot() == WINDOW + ready("1.0.0")
    (board.root / "level").write_text("0")
    assert board.boot() == "clawlite: safe mode, the agent does not start: its pin is low\n"


def test_ctrl_c_in_the_boot_window(board):
    (board.root / "boot.json").write_text('{"window_ms": 60000}')
    words, env = board.words()
    with Agent(words, board.tmp_path / "home", env=env) as agent:
        agent.expect("within 60000 ms")
        agent.signal(2)
        assert agent.wait() == 0 and agent.text().endswith("\nclawlite: interrupted, the agent does not start\n")
    assert board.record() == ("a", 0, 0)


def test_ctrl_c_while_it_opens_is_no_failed_boot(board):
    board.flash("2.0.0", TOOLS + "print('opening')\nimport time\ntime.sleep(60)\n")
    words, env = board.words()
    with Agent(words, board.tmp_path / "home", env=env) as agent:
        agent.expect("opening")
        agent.signal(2)
        assert agent.wait() == 0 and "interrupted" in agent.text()
    assert board.record() == ("b", 0, 0)


@pytest.mark.parametrize("settings, said", [
    ("{", "boot.json: "), ("[]", "boot.json: "), ('{"window_ms": 99}', "boot.json: window_ms: expected 100 to 60000"),
    ('{"window_ms": 60001}', "boot.json: window_ms: expected"), ('{"window_ms": "x"}', "boot.json: window_ms: expected"),
    ('{"window_ms": 100, "safe_pin": 256}', "boot.json: safe_pin: expected the number of a pin"),
    ('{"window_ms": 100, "safe_pin": -1}', "boot.json: safe_pin: expected the number of a pin"),
    ('{"window_ms": 100, "safe_pin": 255}', "boot.json: safe_pin: there are no pins here; the file safe-mode does the same"),
    ('{"window_ms": 100}' + " " * 600 + "x", ""), ('{"window_ms": 100' + " " * 600 + "}", "boot.json: "),
])
def test_settings_that_are_wrong_count_for_nothing(board, settings, said):
    (board.root / "boot.json").write_text(settings)
    text = board.boot()
    assert ("clawlite: " + said in text if said else text.startswith(WINDOW)) and text.endswith(ready("1.0.0"))


def test_a_record_that_cannot_be_written(board):
    (board.root / "claw.boot.new").mkdir()
    text = board.boot()
    assert "clawlite: the boot record cannot be written: " in text and "agent 1.0.0 is ready" in text


def test_what_an_agent_keeps_outlives_its_slot(board):
    board.boot()
    before = sorted(os.listdir(board.root / "state"))
    board.flash("2.0.0")
    board.boot()
    assert sorted(os.listdir(board.root / "state")) == before and not [name for name in os.listdir(board.root) if "log" in name or "meters" in name]
