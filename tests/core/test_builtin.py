"""The tools of the registry that work on pins, on every runtime."""

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.image.image import BUILTIN, GENERATOR, HAS_BOARD
from clawlite.core.image.pins import ADC, INPUT, OUTPUT, PWM, SimulatedPins
from clawlite.core.turns.builtin import HANDLERS
from clawlite.core.turns.handlers import Handlers

PINS = [
    ["soil", 26, ADC, 14000, None, 0, 0, 0, 0],
    ["door", 2, INPUT, 1, None, 0, 0, 0, 0],
    ["pump", 15, OUTPUT, 0, None, 0, 0, 0, 0],
    ["fan", 16, PWM, 0, None, 0, 0, 0, 0],
]


class Tool:
    def __init__(self, name, flags=HAS_BOARD):
        self.name, self.flags, self.handler = name, flags, (BUILTIN, name)


def run(name, flags=HAS_BOARD, **arguments):
    handlers = Handlers(HANDLERS, {}, SimulatedPins(PINS, lambda: 0))
    return handlers, handlers.start(1, Tool(name, flags), arguments, None, 1000)


def value(name, **arguments):
    done, outcome = run(name, **arguments)[1]
    assert done, outcome
    return outcome


def test_pins_are_read_and_written():
    assert value("adc-read", pin="soil") == {"pin": "soil", "value": 14000, "percent": 21}
    assert value("digital-read", pin="door") == {"pin": "door", "value": True}
    assert value("digital-write", pin="pump", value=True) == {"pin": "pump", "value": True}
    for duty in (0, 1, 65535):
        assert value("pwm-write", pin="fan", value=duty) == {"pin": "fan", "value": duty}
    assert [pin["name"] for pin in value("board-info")["pins"]] == ["soil", "door", "pump", "fan"]


def test_a_pin_of_another_kind_or_name_is_refused():
    for name, pin in (
        ("pwm-write", "soil"),
        ("pwm-write", "door"),
        ("pwm-write", "nobody"),
        ("digital-write", "door"),
    ):
        done, error = run(name, pin=pin, value=1)[1]
        assert not done and isinstance(error, SandboxDenied), (name, pin)


def test_sleep_goes_on_when_its_time_is_over_and_no_sooner():
    handlers, outcome = run("sleep", HAS_BOARD | GENERATOR, milliseconds=250)
    assert outcome is None and handlers.is_busy
    assert handlers.poll(1000) == [] and handlers.deadline() == 1250
    assert handlers.poll(1249) == [] and handlers.is_busy
    assert handlers.poll(1250) == [(1, (True, {"milliseconds": 250}))] and not handlers.is_busy


def test_sleep_of_no_time_ends_at_once():
    handlers, _ = run("sleep", HAS_BOARD | GENERATOR, milliseconds=0)
    handlers.poll(1000)
    assert handlers.poll(1000) == [(1, (True, {"milliseconds": 0}))]
