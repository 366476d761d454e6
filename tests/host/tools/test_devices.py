"""Simulated devices as data: those that come with clawlite, actors among them, and a project's own
in ``devices/``.
"""

import pytest

from clawlite.core.buses.bustable import BUSES, SIMULATED
from clawlite.core.image.pins import SimulatedPins
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler
from clawlite.host.hardware import devices
from clawlite.host.manifest import manifest
from clawlite.host.projects import new
from clawlite.linux.files.files import image_of
from clawlite.linux.hardware.buses import make_board

ACTORS = """
[[buses]]
name = "strip"
kind = "neopixel"
pixels = 2
simulated = [{ device = "neopixel"%s }]

[[pins]]
name = "lid"
pin = 16
kind = "pwm"
pulse_us = [500, 2500]
degrees = 180
simulate = { device = "servo" }
"""
OWN = """
kind = "i2c"
addresses = [0x40]
size = 4
memory = { "0x00" = "0a 0b" }
writable = ["0x02"]

[quantities.flow]
start = 25.0

[[begin]]
at = 2
mask = 1
values = [1]
ms = 100

[[field]]
at = 3
size = 1
most = 255
terms = [[2.0, ["flow"]]]
"""
METER = """
[[buses]]
name = "pipe"
kind = "i2c"
addresses = [0x40]
simulated = [{ device = "meter", quantities = { flow = { start = %s } } }]
"""


def load(folder, settings: str, own: str = ""):
    new.new(str(folder), template="empty")
    if own:
        (folder / "devices").mkdir()
        (folder / "devices" / "meter.toml").write_text(own)
    path = folder / "clawlite.toml"
    path.write_text((path.read_text() if path.exists() else "") + settings)
    return manifest.load(str(folder))


def simulated(folder, settings: str, own: str = "") -> tuple:
    """Return (``board``, its clock: [ms]) of an agent with *settings*."""
    image, now = image_of(compiler.build(load(folder, settings, own)).data, "test"), [0]
    bank = SimulatedPins([["lid", 16, 3, 0, None, 0, 0, 0, 50]], lambda: now[0])
    made = make_board(bank, image.section(BUSES), image.section(SIMULATED), lambda: now[0], False)
    return made, now


def level(board, name: str) -> float:
    """Return the only quantity of the place *name*."""
    world = board._simulator.world
    (number,) = [row[1] for row in world._follows if row[0] == name]
    return world.value(number)


def test_each_that_comes_with_clawlite_can_be_read():
    assert set(devices.names()) == {
        *("bme280", "ds18b20", "dht22", "button", "soil", "servo", "neopixel")
    }
    for name in devices.names():
        assert devices.read_built_in(name).kind


def test_a_servo_turns_as_fast_as_it_can_and_stays_without_pulses(tmp_path):
    board, now = simulated(tmp_path / "p", ACTORS % "")
    lid = board.servo("lid")
    assert level(board, "lid") == 90
    lid.turn(180)
    now[0] += 100
    assert level(board, "lid") == pytest.approx(150, abs=0.1)
    now[0] += 100
    assert level(board, "lid") == pytest.approx(180, abs=0.1)
    lid.turn(0)
    now[0] += 50
    board.off()
    now[0] += 5000
    assert level(board, "lid") == pytest.approx(150, abs=0.1)


def test_a_strip_gives_light_and_is_dark_when_all_is_off(tmp_path):
    board, now = simulated(tmp_path / "p", ACTORS % "")
    strip = board.neopixel("strip")
    strip.fill((255, 255, 255))
    assert level(board, "strip") == 0, "before it is written"
    strip.write()
    assert level(board, "strip") == 100
    strip[0] = (0, 0, 0)
    strip.write()
    assert level(board, "strip") == 50
    board.off()
    assert level(board, "strip") == 0


@pytest.mark.parametrize("fault, said", [("missing", "nobody answers"), ("hang", "the bus hangs")])
def test_a_strip_that_fails_is_told(tmp_path, fault, said):
    from clawlite.core.base.errors import ClawError

    board, _ = simulated(tmp_path / "p", ACTORS % f', fault = "{fault}"')
    with pytest.raises(ClawError, match="strip.*" + said):
        board.neopixel("strip").write()
    board.off()  # goes on with the others


def test_a_device_of_the_project_is_used(tmp_path):
    board, now = simulated(tmp_path / "p", METER % "30.0", OWN)
    pipe = board.i2c("pipe")
    assert pipe.readfrom_mem(0x40, 0, 2) == b"\x0a\x0b"
    pipe.writeto_mem(0x40, 2, b"\x01")
    assert pipe.readfrom_mem(0x40, 3, 1) == b"\0", "it takes 100 ms"
    now[0] += 100
    assert pipe.readfrom_mem(0x40, 3, 1) == bytes([60])


@pytest.mark.parametrize(
    "old, new_text, said",
    [
        ("", "[", "meter.toml: this is no TOML"),
        ('kind = "i2c"', 'kind = "uart"', "kind"),
        ('"0a 0b"', '"0a 0"', "bytes in hexadecimal"),
        ('["flow"]', '["flaw"]', "quantities here: flow"),
        ("size = 4", "size = 2", "a register below 2"),
        ("[[begin]]", '[follow]\nquantity = "x"\nraw = [1, 1]\ngives = [0.0]\n[[begin]]', "follow"),
    ],
)
def test_a_mistake_in_it_is_told_with_its_file(tmp_path, old, new_text, said):
    text = OWN.replace(old, new_text, 1) if old else OWN + new_text
    with pytest.raises(ManifestErrors) as e:
        compiler.build(load(tmp_path / "p", METER % "30.0", text))
    assert "meter.toml" in str(e.value) and said in str(e.value), str(e.value)


def test_one_that_nobody_knows_is_told(tmp_path):
    with pytest.raises(ManifestErrors) as e:
        compiler.build(load(tmp_path / "p", METER % "30.0"))
    assert 'no simulated device is called "meter"' in str(e.value)
    assert "or write devices/meter.toml beside claw.yaml" in str(e.value)


def test_a_servo_is_at_no_input(tmp_path):
    wrong = ACTORS % "" + '[[pins]]\nname = "x"\npin = 4\nkind = "input"\n'
    with pytest.raises(ManifestErrors, match='one of kind "pwm" at one'):
        compiler.build(load(tmp_path / "p", wrong + 'simulate = { device = "servo" }\n'))
