"""Real pins: what MicroPython's ``machine`` is told.  The unix port has no pins;
modules/machine.py stands in for a board's.
"""

import json
import signal
from pathlib import Path

import pytest
from agents import Agent, board, eventually, tool_call
from run_core_micropython import BOARD

from clawlite.core.image import pins
from clawlite.host.builder.build import build_beside

MODULES = Path(__file__).parent / "modules"
MANIFEST = """\
claw: "0.3.0"
kind: Claw
metadata: { name: pins, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You drive pins.", autonomy: autonomous } }
  providers:
    - inline: { name: rules, protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: { type: none } }
  tools:
    - "claw://registry/clawlite/adc-read@1.0.0"
    - "claw://registry/clawlite/digital-read@1.0.0"
    - "claw://registry/clawlite/digital-write@1.0.0"
    - "claw://registry/clawlite/pwm-write@1.0.0"
    - "claw://registry/clawlite/board-info@1.0.0"
  sandbox: { inline: { level: none } }
  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }] } }]
"""  # noqa: E501
TOOLS = '''
def pump(seconds: int, board):
    """Run the pump."""
    board.write("pump", 1)
    yield seconds * 1000
    board.write("pump", 0)
    return "done"


def low(seconds: int, board):
    """Run the pump by a relay that is on while its pin is low."""
    board.write("pump", 0)
    yield seconds * 1000
    return "done"


def broken(board) -> str:
    """Break while the pump runs."""
    board.write("pump", 1)
    raise OSError("no water")


def careless(board) -> str:
    """Leave the pump on."""
    board.write("pump", 1)
    return "on"
'''
STICKS = '''
def sticks(board) -> str:
    """Break while nothing is in its safe state."""
    board.write("pump", 0)
    board.write("fan", 0)
    board.servo("lid").turn(180)
    raise OSError("it sticks")
'''
PINS = """reflex = "reflex.toml"
[[pins]]
name = "soil"
pin = 26
kind = "adc"
simulate = { start = 14000 }
[[pins]]
name = "door"
pin = 4
kind = "input"
pull = "up"
[[pins]]
name = "rain"
pin = 5
kind = "input"
[[pins]]
name = "pump"
pin = 15
kind = "output"
simulate = { raises = "soil", per_second = 6000 }
[[pins]]
name = "fan"
pin = 16
kind = "pwm"
"""
SERVO = """[[pins]]
name = "lid"
pin = 18
kind = "pwm"
pulse_us = [500, 2500]
degrees = 180
safe = 90
"""


@pytest.fixture
def device(micropython, tmp_path):
    """Return a function that starts a board with pins."""
    (tmp_path / "claw.yaml").write_text(MANIFEST)
    (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    (tmp_path / "levels").mkdir()

    def start(settings=PINS, tools=TOOLS):
        (tmp_path / "tools.py").write_text(tools)
        (tmp_path / "clawlite.toml").write_text(settings)
        words, env = board(build_beside(str(tmp_path)), "--stdio", stand_ins=[MODULES])
        return Agent(words, tmp_path / "home", env=dict(env, PINS=tmp_path / "levels"))

    return start


@pytest.fixture
def level(tmp_path):
    return lambda name: (tmp_path / "levels" / str(name)).read_text()


def call(agent, name, arguments={}, number=5):
    agent.line(json.dumps(tool_call(name, arguments, number)))
    answer = agent.message()
    text = (
        answer["result"]["content"][0]["text"]
        if "result" in answer and not answer["result"]["isError"]
        else ""
    )
    return json.loads(text) if text[:1] == "{" else text or answer


def test_both_banks_call_the_kinds_the_same():
    assert repr(pins.KINDS).replace("'", '"') in (BOARD / "io/machinepins.py").read_text()


def test_outputs_are_off_before_anything_runs_and_inputs_pull(device, level, tmp_path):
    (tmp_path / "levels/15").write_text("1")
    with device() as agent:
        agent.initialize()
        assert (level(15), level(16), level("4.pull"), level("5.pull"), level("26.atten")) == (
            "0",
            "0",
            "1",
            "None",
            "3",
        )


def test_tools_read_and_drive_real_pins(device, level, tmp_path):
    (tmp_path / "levels/26.adc").write_text("32768")
    (tmp_path / "levels/4").write_text("1")
    with device().initialize() as agent:
        assert call(agent, "adc-read", {"pin": "soil"}) == {
            "pin": "soil",
            "value": 32768,
            "percent": 50,
        }
        assert call(agent, "digital-read", {"pin": "door"}, 6) == {"pin": "door", "value": True}
        assert call(agent, "digital-write", {"pin": "pump", "value": True}, 7) == {
            "pin": "pump",
            "value": True,
        }
        assert call(agent, "pwm-write", {"pin": "fan", "value": 65535}, 8) == {
            "pin": "fan",
            "value": 65535,
        }
        assert (level(15), level(16)) == ("1", "65535")
        info = call(agent, "board-info", {}, 9)
        assert info["simulated"] is False and [pin["value"] for pin in info["pins"]] == [
            32768,
            1,
            0,
            1,
            65535,
        ]
        assert [pin["kind"] for pin in info["pins"]] == ["adc", "input", "input", "output", "pwm"]
        agent.end()
        assert agent.wait() == 0 and (level(15), level(16)) == ("0", "0")


@pytest.mark.parametrize(
    "name, arguments, says",
    [
        (
            "adc-read",
            {"pin": "nothing"},
            "no pin is called nothing; declared: soil, door, rain, pump, fan",
        ),
        (
            "digital-write",
            {"pin": "door", "value": True},
            "pin door is input, expected output or pwm",
        ),
        ("pwm-write", {"pin": "pump", "value": 2}, "pin pump: expected 0 to 1, got 2"),
    ],
)
def test_what_is_not_declared_is_refused(device, name, arguments, says):
    with device().initialize() as agent:
        assert says in json.dumps(call(agent, name, arguments))


def test_a_handler_that_fails_leaves_nothing_on(device, level):
    with device().initialize() as agent:
        call(agent, "pwm-write", {"pin": "fan", "value": 9}, 4)
        assert "no water" in json.dumps(call(agent, "broken"))
        assert (level(15), level(16)) == ("0", "0")
        # it succeeded: what it meant stays
        assert call(agent, "careless", {}, 6) == "on" and level(15) == "1"


def test_safe_states_that_are_not_0(device, level, tmp_path):
    """Before anything runs, and after a failure: a relay that is on while its pin is low, a driver
    whose signal is turned around, and a servo.
    """
    settings = PINS.replace('kind = "output"', 'kind = "output"\nopen_drain = true\nsafe = 1')
    settings = settings.replace('kind = "pwm"', 'kind = "pwm"\nsafe = 65535') + SERVO
    with device(settings, STICKS).initialize() as agent:
        safe = ("1", "65535", str(int(1500 * 65535 / 20000)))
        assert (level(15), level(16), level(18)) == safe and level("18.freq") == "50"
        written = (tmp_path / "levels/all").read_text().split()
        assert "15=0" not in written and "16=0" not in written
        assert "it sticks" in json.dumps(call(agent, "sticks"))
        assert (level(15), level(16), level(18)) == safe
        written = (tmp_path / "levels/all").read_text().split()
        assert {"15=0", "16=0", "18=8191"} <= set(written)


def test_an_output_that_fails_keeps_no_other_one_on(device, level, tmp_path):
    with device().initialize() as agent:
        call(agent, "pwm-write", {"pin": "fan", "value": 60000}, 4)
        for path in tmp_path.rglob("16"):
            path.with_name("15.broken").write_text("1")
        assert "EIO" in json.dumps(call(agent, "broken", {}, 5))
        assert level(16) == "0" and agent.is_serving()
        assert "an output cannot be switched off" in agent.errors()


@pytest.mark.parametrize("end", [signal.SIGINT, None])
@pytest.mark.parametrize("safe", [0, 1])
def test_the_pump_is_off_however_the_agent_ends(device, level, end, safe):
    settings = PINS.replace('kind = "output"', 'kind = "output"\nsafe = %d' % safe)
    with device(settings).initialize() as agent:
        assert level(15) == str(safe)
        agent.line(json.dumps(tool_call("low" if safe else "pump", {"seconds": 60}, 5)))
        eventually(lambda: level(15) == str(1 - safe))
        if end:
            agent.signal_at_rest(end)
        else:
            agent.line(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": 9,
                        "method": "claw.shutdown",
                        "params": {"timeout_ms": 0},
                    }
                )
            )
            agent.end()
        agent.wait()
        assert level(15) == str(safe)


def test_a_level_that_does_not_come_is_an_error_and_switches_off(device, level, tmp_path):
    (tmp_path / "levels/15.slow").write_text("99999")
    with device().initialize() as agent:
        answer = call(agent, "digital-write", {"pin": "pump", "value": True})
        assert answer["result"]["isError"]
        assert answer["result"]["content"][0]["text"] == (
            "digital-write failed: pin pump was set to 1 and reads 0: something holds it"
        )
        assert level(15) == "0"
        (tmp_path / "levels/15.slow").write_text("5")
        assert call(agent, "digital-write", {"pin": "pump", "value": True}, 6)["value"] is True


def test_an_open_drain_output_may_read_as_others_hold_it(device, level, tmp_path):
    (tmp_path / "levels/15.slow").write_text("99999")
    settings = PINS.replace('kind = "output"', 'kind = "output"\nopen_drain = true')
    with device(settings).initialize() as agent:
        answer = call(agent, "digital-write", {"pin": "pump", "value": True})
        assert answer == {"pin": "pump", "value": False} and level("15.open") == "1"


def test_a_pin_that_the_board_does_not_have(device):
    with device(PINS.replace("pin = 16", "pin = 99")) as agent:
        assert agent.wait() == 2
        assert "pin fan: this board has no pin 99 for pwm: invalid pin" in agent.errors()
    with device(PINS.replace("pin = 26", "pin = 3")) as agent:
        assert agent.wait() == 2
        assert (
            "pin soil: this board has no pin 3 for adc: Pin doesn't have ADC capabilities"
            in agent.errors()
        )
