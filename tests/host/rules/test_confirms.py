"""What must follow a call, as clawlite.toml declares it: what is compiled, and one clear message
for each mistake.
"""

import tomllib

import pytest
import tomli_w
from host.manifest.test_single_mistakes import mistakes
from host.rules.test_triggers import check
from rules_world import READING, project

from clawlite.core.rules import table
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards, profile
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.host.hardware.pin_settings import Pin
from clawlite.host.hardware.pin_uses import find_switched_on
from clawlite.linux.files.files import image_of

PUMP = '[[pins]]\nname = "pump"\npin = 5\nkind = "output"\n'
WATER = '[confirm.water]\nreading = "soil"\nabove = 5\nwithin = "3s"\npins = ["pump"]\n'
SLOW = {
    "inline": {
        "name": "slow",
        "description": "x",
        "input_schema": {"type": "object"},
        "timeout_ms": 2000,
    }
}
TOOLS = '''

def _on(board):
    board.write("pump", 1)


def slow(board) -> str:
    """Water slowly."""
    _on(board)
    yield 10
    board.write("pump", 0)
    return "x"
'''


def load(folder, settings: str, rules: str = READING, code: str = TOOLS, **more):
    # without an output it may not be set
    if '"output"' not in settings:
        code = code.replace('board.write("pump", 1)', "pass").replace('board.write("pump", 0)', "")
    return project(folder, rules, settings=settings, more_tools=[SLOW], more_code=code, **more)


def build(folder, settings: str, rules: str = READING):
    return image_of(compiler.build(load(folder, settings, rules)).data, "test")


def test_tools_and_pins_have_rows_and_others_pay_nothing(tmp_path):
    image = build(
        tmp_path, WATER + PUMP + 'confirm = { reading = "soil", below = 3.5, within = "1s" }\n'
    )
    (reading,) = image.section(table.SECTION)[table.READINGS]
    assert image.section(table.CONFIRMS) == [
        ["water", None, reading, False, 5, 3000, ["pump"]],
        [None, "pump", reading, True, 3.5, 1000, ["pump"]],
        ["slow", None, reading, True, 3.5, 1000, ["pump"]],
    ]
    check("confirms", image.part(table.CONFIRMS, 0, image.size_of(table.CONFIRMS)))
    assert build(tmp_path / "without", PUMP).section(table.CONFIRMS) is None


def test_what_a_function_switches_on_by_a_constant():
    found = find_switched_on(
        b'P = "fan"\n'
        b"def a(board):\n    board.write(P, 1)\n    board.write('pump', 0)\n"
        b"def b(board, on):\n    board.write('pump', on)\n    c(board)\n"
        b"def c(board):\n    a(board)\n    board.write('led', True)\n",
        [],
    )
    assert found == {"a": {"fan"}, "b": {"fan", "led"}, "c": {"fan", "led"}}
    relay = Pin(name="pump", pin=5, kind="output", safe=1)
    low = b"def on(board):\n    board.write('pump', 0)\n"
    low += b"def off(board):\n    board.write('pump', 1)\n"
    assert find_switched_on(low, [relay]) == {"on": {"pump"}, "off": set()}


@pytest.mark.parametrize(
    "settings, said",
    [
        (WATER.replace("soil", "flow") + PUMP, "confirm.water.reading: there is no reading"),
        (WATER.replace("soil", "sol") + PUMP, 'did you mean "soil"?'),
        (WATER, 'confirm.water.pins[0]: there is no pin "pump"'),
        (WATER + PUMP.replace("output", "input"), '"pump" is of kind input'),
        (WATER.replace("water", "watr") + PUMP, 'unknown tool "watr" - did you mean "water"?'),
        (WATER.replace('"3s"', '"3"') + PUMP, 'confirm.water.within: expected a time such as "3s"'),
        (WATER.replace('"3s"', "3") + PUMP, "confirm.water.within: expected text, found 3"),
        (WATER.replace('"3s"', '"11m"') + PUMP, "from 100ms to 10m"),
        (WATER.replace("water", "slow") + PUMP, "slow is ended after 2s, before that time is over"),
        (WATER.replace("above = 5\n", "") + PUMP, "a threshold has one side"),
        (WATER.replace("above", "below = 1\nabove") + PUMP, "a threshold has one side"),
        (
            PUMP.replace("output", "input")
            + 'confirm = { reading = "soil", above = 5, within = "3s" }\n',
            "pins[0].confirm: nothing sets pump, a pin of kind input",
        ),
        (
            PUMP + 'confirm = { reading = "soil", above = 5, within = "3s" }\n',
            "pins[0].confirm.within: slow is ended after 2s",
        ),
    ],
)
def test_one_message_for_each_mistake(tmp_path, settings, said):
    with pytest.raises(ManifestErrors) as raised:
        build(tmp_path, settings)
    (problem,) = raised.value.problems
    assert said in problem.text() and "clawlite.toml:" in problem.text(), problem.text()


def test_a_reading_with_side_effects_is_one_problem(tmp_path):
    rules = READING.replace("read-soil", "water").replace('field = "percent"\n', "")
    with pytest.raises(ManifestErrors) as raised:
        build(tmp_path, WATER + PUMP, rules)
    (problem,) = [one for one in raised.value.problems if "passes no arguments" not in one.text()]
    assert "water may have side effects" in problem.text()


def test_without_a_reflex_file_the_reading_is_unknown(tmp_path):
    with pytest.raises(ManifestErrors, match="there is no reading"):
        build(tmp_path, WATER + PUMP, "")


def test_a_single_mistake_is_one_problem(tmp_path):
    """Each key misspelt or left out, and each value another one."""
    data, several, count = tomllib.loads(WATER + PUMP), [], 0
    for what, path, wrong in mistakes({"confirm": data["confirm"]}):
        if path == ("confirm",) and what in ("misspelt", "missing"):
            continue
        try:
            build(tmp_path, tomli_w.dumps(wrong) + PUMP)
        except ManifestErrors as e:
            count += 1
            if len(e.problems) > 1:
                several.append((what, path, e.lines))
    assert several == [] and count > 15


def test_a_function_in_one_piece_is_told(tmp_path):
    loaded = load(tmp_path, WATER + PUMP)
    compiler.build(loaded)
    said = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert any("water runs in one piece" in text for text in said), said


def test_a_board_refuses_a_function_in_one_piece(tmp_path):
    pico = profile.read(boards.files()["pico"])
    for settings, path in (
        (WATER + PUMP, "confirm.water"),
        (
            PUMP + 'confirm = { reading = "soil", above = 5, within = "3s" }\n',
            "pins[0].confirm",
        ),
    ):
        loaded = load(tmp_path, settings, code=TOOLS.replace("    yield 10\n", ""))
        problems = board_fit.board_problems(loaded, pico)
        texts = [one.text() for one in problems if "runs in one piece" in one.text()]
        assert len(texts) == 1 and path in texts[0], [one.text() for one in problems]
