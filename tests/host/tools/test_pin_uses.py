"""Pins and buses that tools.py names and clawlite.toml does not have are found by ``check``, before
a tool needs them.
"""

import textwrap

import pytest

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.image.pins import ADC, INPUT, OUTPUT, PWM, SimulatedPins
from clawlite.host.base.problems import ManifestErrors, Problems
from clawlite.host.hardware import pin_uses
from clawlite.host.hardware.buses import Bus
from clawlite.host.hardware.pin_settings import Pin
from clawlite.host.manifest import manifest

PINS = [
    Pin("soil", 26, "adc"),
    Pin("door", 3, "input"),
    Pin("pump", 15, "output"),
    Pin("lamp", 16, "pwm"),
]
WAVES = [
    Pin("lid", 17, "pwm", pulse_us=[500, 2500], degrees=180),
    Pin("horn", 18, "pwm", frequency_hz=[100, 4000]),
]
BUSES = [
    Bus("room", "i2c", addresses=[0x76]),
    Bus("cold", "one-wire", devices=["28-0316a279d1ff"]),
    Bus("strip", "neopixel", pixels=3),
    Bus("meter", "uart"),
    Bus("display", "spi"),
    Bus("shed", "dht"),
]
KINDS = {"adc": ADC, "input": INPUT, "output": OUTPUT, "pwm": PWM}


def found(text: str, pins=PINS, buses=()) -> list[str]:
    problems = Problems()
    pin_uses.check(textwrap.dedent(text).encode(), "tools.py", pins, buses, problems)
    return [problem.text() for problem in problems.found]


WRONG = {
    'board.read("sooil")': 'no pin is called "sooil" - did you mean "soil"?',
    'board.read(name="sooil")': 'no pin is called "sooil" - did you mean "soil"?',
    'board.read("valve9")': 'no pin is called "valve9" - clawlite.toml has "soil", "door", "pump" '
    'or "lamp"',
    'board.write("pmup", 1)': 'no pin is called "pmup" - did you mean "pump"?',
    'board.write("soil", 1)': 'the pin "soil" is of kind "adc" and cannot be written - kind = '
    '"output" or "pwm" in clawlite.toml can',
    'board.write("door", 1)': 'the pin "door" is of kind "input" and cannot be written - kind = '
    '"output" or "pwm" in clawlite.toml can',
    'board.write("pump", 2)': 'the pin "pump" of kind "output", expected 0 to 1, found 2',
    'board.write("lamp", 65536)': 'the pin "lamp" of kind "pwm", expected 0 to 65535, found 65536',
}
RIGHT = [
    'board.read("soil")',
    'board.read("lamp")',
    'board.write("pump", True)',
    'board.write("pump", 0)',
    'board.write("lamp", 65535)',
]


@pytest.mark.parametrize("call", WRONG)
def test_what_every_call_would_be_refused_for(call):
    assert found(f"def f(board):\n    x = 1\n    return {call}\n") == [f"tools.py:3: {WRONG[call]}"]
    with pytest.raises(SandboxDenied):
        eval(call, {"board": bank()})


@pytest.mark.parametrize("call", RIGHT)
def test_what_is_allowed_there_is_allowed_here(call):
    assert found(f"def f(board):\n    return {call}\n") == []
    eval(call, {"board": bank()})


BUS_CALLS = {
    'board.i2c("rom")': 'no i2c bus is called "rom" - did you mean "room"?',
    'board.i2c("zzz")': 'no i2c bus is called "zzz" - clawlite.toml has "room"',
    'board.i2c(name="cold")': 'the bus "cold" is of kind "one-wire", expected "i2c" - '
    'clawlite.toml has "room"',
    'board.onewire("room")': 'the bus "room" is of kind "i2c", expected "one-wire" - clawlite.toml '
    'has "cold"',
    'board.neopixel("stripe")': 'no neopixel bus is called "stripe" - did you mean "strip"?',
    'board.uart("metre")': 'no uart bus is called "metre" - did you mean "meter"?',
    'board.spi("dsplay")': 'no spi bus is called "dsplay" - did you mean "display"?',
    'board.dht("shad")': 'no dht bus is called "shad" - did you mean "shed"?',
    'board.servo("lidd")': 'no pin is called "lidd" - did you mean "lid"?',
    'board.servo("horn")': 'the pin "horn" is not declared for a servo - give it kind = "pwm" and '
    "pulse_us in clawlite.toml, under [[pins]]",
    'board.tone("lid")': 'the pin "lid" is not declared for a tone - give it kind = "pwm" and '
    "frequency_hz in clawlite.toml, under [[pins]]",
    'board.button("dor")': 'no pin is called "dor" - did you mean "door"?',
}


@pytest.mark.parametrize("call", BUS_CALLS)
def test_a_bus_that_is_not_declared(call):
    text = f"def f(board):\n    x = 1\n    return {call}.y(1)\n"
    assert found(text, PINS + WAVES, BUSES) == [f"tools.py:3: {BUS_CALLS[call]}"]


@pytest.mark.parametrize(
    "call",
    [
        *('board.i2c("room")', 'board.onewire("cold")', 'board.neopixel("strip")'),
        *('board.uart("meter")', 'board.spi("display")', 'board.dht("shed")'),
        *('board.servo("lid")', 'board.tone("horn")', 'board.button("door")'),
        *("board.i2c(x)", "board.servo(*x)", 'other.i2c("rom")'),
    ],
)
def test_a_bus_that_is_declared(call):
    assert found(f"def f(board, x, other):\n    {call}\n", PINS + WAVES, BUSES) == []


def test_without_buses_it_says_where_to_declare_one():
    text = 'NAME = "room"\ndef _read(board):\n    return board.i2c(NAME)\n'
    assert found(text) == [
        'tools.py:3: no i2c bus is called "room" - declare it in clawlite.toml under [[buses]] '
        'with kind = "i2c"'
    ]


def bank() -> SimulatedPins:
    return SimulatedPins(
        [[pin.name, pin.pin, KINDS[pin.kind], 0, None, 0, 0, 0, 0] for pin in PINS], lambda: 0
    )


@pytest.mark.parametrize(
    "text",
    [
        'NAME = "sooil"\ndef f(board):\n    return board.read(NAME)\n',
        'def _helper(board):\n    return board.read("sooil")\n',
        'def f(board):\n    def inner():\n        return board.read("sooil")\n    return inner()\n',
        'def f(board):\n    return [board.read("sooil") for i in range(3)]\n',
        'def f(*, board):\n    return (lambda: board.read("sooil"))()\n',
    ],
)
def test_where_a_name_is_found(text):
    assert len(found(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        # no board
        'def f(file):\n    return file.read("sooil")\n',
        # one of the module's own
        'board = open("x")\ndef f():\n    return board.read("sooil")\n',
        # something else by then
        'def f(board):\n    board = open("x")\n    return board.read("sooil")\n',
        # an argument of the tool
        'def f(board: str):\n    return board.read("sooil")\n',
        # known when it is called
        "def f(board, pin: str):\n    return board.read(pin)\n",
        'NAME = "sooil"\ndef f(board):\n    global NAME\n    NAME = "soil"\n    return '
        "board.read(NAME)\n",
        'NAME = "sooil"\ndef f(board, NAME: str):\n    return board.read(NAME)\n',
        'def f(board):\n    return board.describe("sooil")\n',
        "def f(board, *a):\n    board.write(*a)\n",
    ],
)
def test_what_cannot_be_known_is_left_alone(text):
    assert found(text) == []


def test_without_pins_it_says_where_to_declare_one():
    assert found('def f(board):\n    return board.read("soil")\n', []) == [
        'tools.py:2: no pin is called "soil" - declare it in clawlite.toml under [[pins]]'
    ]


def test_check_says_so_by_file_and_line(tmp_path):
    from clawlite.host.projects import new

    new.new(str(tmp_path / "g"))
    text = (tmp_path / "g/tools.py").read_text()
    (tmp_path / "g/tools.py").write_text(text.replace('read("soil")', 'read("sooil")'))
    with pytest.raises(ManifestErrors) as e:
        manifest.load(str(tmp_path / "g"))
    assert str(e.value).endswith('tools.py:9: no pin is called "sooil" - did you mean "soil"?')


def test_check_says_so_of_a_bus(tmp_path):
    from clawlite.host.projects import new

    new.new(str(tmp_path / "w"), template="weather")
    text = (tmp_path / "w/tools.py").read_text()
    line = next(n for n, one in enumerate(text.splitlines(), 1) if 'i2c("' in one)
    (tmp_path / "w/tools.py").write_text(text.replace('i2c("', 'i2c("x'))
    with pytest.raises(ManifestErrors) as e:
        manifest.load(str(tmp_path / "w"))
    assert f"tools.py:{line}: no i2c bus is called" in str(e.value)


def test_a_mistake_in_the_settings_is_told_alone(tmp_path):
    from clawlite.host.projects import new

    new.new(str(tmp_path / "g"))
    text = (tmp_path / "g/clawlite.toml").read_text()
    (tmp_path / "g/clawlite.toml").write_text(text.replace('kind = "adc"', 'kind = "adk"'))
    with pytest.raises(ManifestErrors) as e:
        manifest.load(str(tmp_path / "g"))
    assert "tools.py" not in str(e.value)
