"""Names that MicroPython's ports have stay as they are, and a slot asks of its board only for
what that has.
"""

import ast
import re

import board_apis
import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.boards import boards
from clawlite.host.firmware import firmware, foreign_names, rename, slot

BOARDS = [board for board in boards.load_all() if board.runtime == "micropython"]


def refused(text: str, api: str = "rp2-rpi-pico-w", **more) -> str:
    trees = {name: ast.parse(source) for name, source in {"trial": text, **more}.items()}
    with pytest.raises(ClawError) as caught:
        foreign_names.check(foreign_names.uses(trees), list(trees), api, "the board")
    return caught.value.message


def allowed(text: str, api: str = "rp2-rpi-pico-w", **more) -> None:
    trees = {name: ast.parse(source) for name, source in {"trial": text, **more}.items()}
    foreign_names.check(foreign_names.uses(trees), list(trees), api, "the board")


def test_the_file_is_what_the_stub_packages_say():
    try:
        made = board_apis.text()
    except FileNotFoundError as e:
        pytest.skip(str(e))
    assert board_apis.TARGET.read_text() == made, "make apis"


def test_every_board_of_micropython_names_its_stub_package():
    assert len(BOARDS) > 8 and {board.api for board in BOARDS} == set(foreign_names.stub_packages())


def test_the_modules_that_boards_import_are_all_known():
    assert set(board_apis.modules()) == {
        name for name in foreign_names.names_of() if "." not in name
    }


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_the_largest_slot_of_a_board_asks_for_what_it_has(board):
    parts = {part for ways in slot.ways().values() for way in ways for part in way} - set(
        slot.OF_BOARDS
    )
    having = [part for part in parts if slot.ability(part) in board.abilities] + slot.of_board(
        board
    )
    modules = slot.choose(firmware.link()[0], having)
    assert len(modules) > 50 and ("wifi" in modules) is (
        "network" in foreign_names.names_of(board.api) and "wifi" in board.network.links
    )
    foreign_names.check(firmware.uses(), modules, board.api, board.name)


def test_an_attribute_of_a_port_is_asked_for_by_its_name():
    asked = {(owner, name) for found in firmware.uses().values() for owner, name, _ in found}
    assert {
        ("machine.WDT", "feed"),
        ("network.WLAN", "connect"),
        ("socket.socket", "sendto"),
        ("", "duty_u16"),
    } <= asked
    found = {
        node.attr
        for text in firmware.link()[0].values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
    }
    # from machine import WDT
    assert {name for _, name in asked} - found <= {
        name for owner, name in asked if owner and "." not in owner
    }
    assert re.search(r"\.feed\(\)", firmware.link()[0]["core"])


@pytest.mark.parametrize("api", foreign_names.stub_packages())
def test_no_class_of_ours_takes_a_name_of_a_port_away(api):
    names = sorted(foreign_names.attributes(api) - {"__init__"})
    source = "class Box:\n" + "".join(
        f"    def {name}(self):\n        return self.{name}\n"
        for name in names
        if not name.startswith("__")
    )
    trees = {"trial": ast.parse(source)}
    rename.rename(trees, ("trial",))
    assert ast.unparse(trees["trial"]) == ast.unparse(ast.parse(source))


def test_what_a_port_lacks_is_found():
    assert "machine.WDT has no kick" in refused("import machine\nmachine.WDT(timeout=5).kick()")
    assert refused("import machine\nmachine.Relay()").startswith(
        "trial: machine.Relay does not fit the board: machine has no Relay"
    )
    assert "machine has no Relay" in refused("from machine import Relay")
    assert "machine.Pin has no UP" in refused("from machine import Pin\nPin(1, Pin.UP)")
    assert "there is no module network" in refused("import network\nnetwork.WLAN()", "rp2-rpi-pico")
    assert "no object has frob" in refused("def f(x):\n    x.frob()")


def test_what_an_object_is_follows_from_where_it_is_made():
    made = (
        "from machine import WDT\nclass Box:\n    dog = None\ndef make(box):\n    box.dog = "
        "WDT(timeout=5)\n"
    )
    asked = (
        "class Other:\n    def kick(self):\n        pass\ndef alive(device):\n    dog = "
        "device.dog\n    dog.kick()\n"
    )
    assert "machine.WDT has no kick" in refused(asked, made=made)
    # then it may be one of ours
    allowed(asked, made=made + "def also(box, other):\n    box.dog = other\n")


def test_code_that_expects_it_may_ask_for_what_is_not_there():
    allowed("import machine\nif hasattr(machine.ADC, 'GAIN'):\n    machine.ADC.GAIN")
    allowed("try:\n    from machine import Relay\nexcept ImportError:\n    pass")
    allowed("import os\ntry:\n    os.urandom_of_old()\nexcept (AttributeError, OSError):\n    pass")
    # on boards nobody has some
    allowed("class Agent:\n    channels = None\n    def run(self):\n        self.channels.frob()")
    assert "os has no urandom_of_old" in refused(
        "import os\ntry:\n    os.urandom_of_old()\nexcept OSError:\n    pass"
    )


def test_a_profile_that_names_no_stub_package_of_ours_is_told():
    with pytest.raises(ClawError, match="expected one of .*rp2-rpi-pico.*, got rp9"):
        foreign_names.names_of("rp9")


@pytest.mark.parametrize("name", ["machine", "network"])
def test_a_stand_in_for_a_module_of_micropython_is_never_linked(tmp_path, name):
    with pytest.raises(ClawError, match="never linked"):
        firmware.link({name: board_apis.ROOT / "tests/device/modules" / f"{name}.py"})
