"""``board`` with buses: the same tools.py and the same simulated devices on Linux and on a virtual
board, with the same answers; and what a board with real buses is told.
"""

import json
from pathlib import Path

import pytest
from agents import Agent, board, linux, tool_call

from clawlite.host.builder.build import build_beside
from clawlite.host.projects import new

WEATHER = Path(new.FOLDER) / "weather/tools.py"
MODULES = Path(__file__).parent / "modules"
MANIFEST = """\
claw: "0.3.0"
kind: Claw
metadata: { name: bused, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:reflex", model: r, auth: { type: none } } } ]
  tools:
    - "claw://registry/clawlite/i2c-transfer@1.0.0"
    - "claw://registry/clawlite/spi-transfer@1.0.0"
    - "claw://registry/clawlite/one-wire-read@1.0.0"
  sandbox: { inline: { level: none } }
  policies: [ { inline: { rules: [ { id: all, action: allow, scope: all } ] } } ]
"""  # noqa: E501
TOOLS = '''

def read_freezer(board, device: str = "") -> dict:
    """Measure."""
    cold = board.onewire("cold")
    mc = yield from cold.temperature_mc(device or None)
    return {"mc": mc, "there": cold.scan()}


def ring(board) -> str:
    """Wait for the button."""
    press = yield from board.button("bell").wait(4000)
    return press or "nothing"


def registers(board, address: int, register: int, count: int, write: int = -1) -> list:
    """Read registers, or write one."""
    room = board.i2c("room")
    if write >= 0:
        room.writeto_mem(address, register, bytes([write]))
    return list(room.readfrom_mem(address, register, count))


def shine(board, red: int, pixel: int = 0) -> list:
    """Show a colour."""
    strip = board.neopixel("strip")
    strip[pixel] = (red, 1, 2)
    strip.write()
    return [len(strip)] + list(strip[pixel])


def turn(board, degrees: int) -> int:
    """Turn the servo."""
    board.servo("lid").turn(degrees)
    return board.read("lid")


def play(board, hertz: int) -> int:
    """Sound."""
    board.tone("horn").play(hertz)
    return board.read("horn")


def shed(board) -> list:
    """Measure with the DHT22."""
    return list(board.dht("shed").measure())


def talk(board, text: str) -> list:
    """Send a line, and read it."""
    meter = board.uart("meter")
    meter.write(text.encode() + b"\\r\\nrest")
    return [meter.readline().decode(), meter.any(), meter.read(9).decode()]


def swap(board) -> list:
    """Exchange bytes."""
    return list(board.spi("chip").transfer(b"abc"))


def soil(board) -> int:
    """Read the soil after the pump ran for a second."""
    board.write("pump", 1)
    yield 1000
    board.write("pump", 0)
    return board.read("soil")
'''
SETTINGS = """reflex = "reflex.toml"
[[buses]]
name = "room"
kind = "i2c"
sda = 4
scl = 5
addresses = [0x76, 0x77, 0x20]
registers = ["0x88-0xA1", "0xD0", "0xE1-0xE7", "0xF2-0xFE"]
writable = ["0xF2", "0xF4"]
simulated = [
  { device = "bme280", address = 0x76, quantities = { temperature = { start = -7.5 }, humidity = { start = 81.0 }, pressure = { start = 987.0 } } },
]
[[buses]]
name = "cold"
kind = "one-wire"
pin = 6
devices = ["28-0316a279d1ff", "28-000000000002", "28-000000000003"]
simulated = [
  { device = "ds18b20", quantities = { temperature = { start = -18.5 } } },
  { device = "ds18b20", id = "28-000000000002", fault = "noise" },
]
[[buses]]
name = "strip"
kind = "neopixel"
pin = 7
pixels = 3
simulated = []
[[buses]]
name = "shed"
kind = "dht"
pin = 8
simulated = [{ device = "dht22", quantities = { temperature = { start = -3.4 }, humidity = { start = 71.5 } } }]
[[buses]]
name = "meter"
kind = "uart"
bus = 1
tx = 20
rx = 21
simulated = []
[[buses]]
name = "chip"
kind = "spi"
sck = 10
mosi = 11
miso = 12
cs = 13
simulate = "01 02"
[[buses]]
name = "stuck"
kind = "i2c"
sda = 14
scl = 17
addresses = [0x76]
simulated = [{ device = "bme280", fault = "hang" }]
[[pins]]
name = "bell"
pin = 9
kind = "input"
pull = "up"
simulate = { device = "button", every_s = 2, length_ms = 300 }
[[pins]]
name = "lid"
pin = 15
kind = "pwm"
pulse_us = [500, 2500]
degrees = 180
[[pins]]
name = "horn"
pin = 16
kind = "pwm"
frequency_hz = [200, 2000]
[[pins]]
name = "soil"
pin = 26
kind = "adc"
simulate = { device = "soil", quantities = { moisture = { start = 20.0, per_hour = 0.0 } } }
[[pins]]
name = "pump"
pin = 18
kind = "output"
simulate = { raises = "soil.moisture", per_second = 2.0 }
"""  # noqa: E501


@pytest.fixture
def project(tmp_path):
    (tmp_path / "claw.yaml").write_text(MANIFEST)
    (tmp_path / "tools.py").write_text(WEATHER.read_text() + TOOLS)
    (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    (tmp_path / "clawlite.toml").write_text(SETTINGS)
    (tmp_path / "levels").mkdir()
    return tmp_path


@pytest.fixture(params=["linux", "board"])
def agent(request, project):
    """An agent on this machine, and on a virtual board."""
    if request.param == "linux":
        words, env = linux("serve", build_beside(str(project)), "--stdio"), {}
        with Agent(words, project / "home") as running:
            yield running.initialize()
        return
    request.getfixturevalue("micropython")
    words, env = board(build_beside(str(project)), "--stdio")
    with Agent(words, project / "home", env=env) as running:
        yield running.initialize()


_number = iter(range(5, 10**6))


def call(agent, name, **arguments):
    """Return what the tool *name* returns, or its error's text."""
    number = next(_number)
    agent.line(json.dumps(tool_call(name, arguments, number)))
    answer = agent.message()
    if "error" in answer:
        return f"{answer['error']['code']} {answer['error']['message']}"
    text = answer["result"]["content"][0]["text"]
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_a_bme280_is_measured_as_its_datasheet_says(agent):
    assert call(agent, "read-weather") == {"temperature": -7.5, "humidity": 81, "pressure": 987}


def test_a_ds18b20_is_measured_and_what_is_damaged_or_missing_is_said(agent):
    first = call(agent, "read-freezer", device="28-0316a279d1ff")
    assert first == {"mc": -18500, "there": ["28-0316a279d1ff", "28-000000000002"]}
    assert "damaged" in call(agent, "read-freezer", device="28-000000000002")
    assert "does not answer" in call(agent, "read-freezer", device="28-000000000003")
    assert "device 28-000000000009 is not declared; declared: 28-0316a279d1ff" in call(
        agent, "read-freezer", device="28-000000000009"
    )
    # the agent goes on
    assert call(agent, "read-freezer", device="28-0316a279d1ff")["mc"] == -18500


def test_the_tools_of_the_registry_are_the_same_on_a_board(agent):
    assert call(agent, "i2c-transfer", bus="room", address=0x76, write=[0xD0], read=1) == {
        "bus": "room",
        "address": 0x76,
        "data": [0x60],
    }
    assert call(agent, "one-wire-read", bus="cold", device="28-0316a279d1ff") == {
        "bus": "cold",
        "device": "28-0316a279d1ff",
        "temperature_mc": -18500,
    }
    assert call(agent, "one-wire-read", bus="cold")["devices"] == [
        "28-0316a279d1ff",
        "28-000000000002",
    ]
    assert call(agent, "spi-transfer", bus="chip", data=[9, 9, 9])["data"] == [1, 2, 0]
    assert "address 0x50 is not declared; declared: 0x76, 0x77, 0x20" in call(
        agent, "i2c-transfer", bus="room", address=0x50, read=1
    )
    assert "nothing to write" in call(agent, "i2c-transfer", bus="room", address=0x76)


@pytest.mark.parametrize(
    "tool, arguments, says",
    [
        ("registers", (0x76, 0xD0, 2), "register 0xd0 to 0xd1 is not in registers: 0x88-0xa1"),
        ("registers", (0x76, 0x10, 1), "register 0x10 is not in registers"),
        ("registers", (0x76, 0xF5, 1, 3), "register 0xf5 is not in writable: 0xf2, 0xf4"),
        ("registers", (0x77, 0xD0, 1), "bus room: 0x77: nobody answers"),
        ("registers", (0x21, 0xD0, 1), "address 0x21 is not declared; declared: 0x76, 0x77, 0x20"),
        ("shine", (256,), "a colour of 256, expected 0 to 255"),
        ("shine", (1, 3), "it has no pixel 3, expected 0 to 2"),
        ("turn", (181,), "181 degrees, expected 0 to 180"),
        ("play", (100,), "100 Hz, expected 200 to 2000"),
        ("i2c-transfer", ("stuck", 0x76, [0xD0], 1), "bus stuck: 0x76: the bus hangs"),
    ],
)
def test_what_is_out_of_bounds_or_fails_is_one_clear_error(agent, tool, arguments, says):
    names = {
        "registers": ("address", "register", "count", "write"),
        "shine": ("red", "pixel"),
        "turn": ("degrees",),
        "play": ("hertz",),
        "i2c-transfer": ("bus", "address", "write", "read"),
    }[tool]
    assert says in call(agent, tool, **dict(zip(names, arguments)))
    assert agent.is_serving()


def test_actors_and_lines(agent):
    assert call(agent, "shine", red=9, pixel=2) == [3, 9, 1, 2]
    assert call(agent, "turn", degrees=90) == 4915  # 1.5 ms of 20 ms
    assert call(agent, "play", hertz=440) == 32768
    assert call(agent, "shed") == [-3400, 71500]
    assert call(agent, "talk", text="hello") == ["hello", 4, "rest"]
    assert call(agent, "swap") == [1, 2, 0]


def test_a_button_that_bounces_is_one_press(agent):
    assert call(agent, "ring") == "short"


def test_a_pump_wets_the_soil(agent):
    assert 13107 + 1000 < call(agent, "soil") < 13107 + 3000
