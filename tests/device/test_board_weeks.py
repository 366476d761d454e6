"""The templates with rules, each for a simulated week on a virtual Pico: its stack, its heap, the
template's own tools on simulated devices, an audit, power cuts at random moments, and a gateway
that is away for days (template_weeks.py says what must have happened).
"""

import json

import pytest
from rule_board import TemplateBoard
from template_weeks import (
    DOOR_RESTS,
    HOUR_S,
    JUDGES,
    compare_rehearsal,
    judge,
    live_a_week,
)

from clawlite.core.rules.rehearsal import OF_BOARD
from clawlite.linux.rules.board_samples import read_samples
from clawlite.linux.rules.samples import spread

# moments after the begin of the week at 08:00 at which something is under way
MORE = {"weather": (23 * HOUR_S, 47 * HOUR_S), "door": (9 * HOUR_S, 20 * HOUR_S)}
LONG_H = {"weather": 6 * 24}  # hours without a reset, else 36: each rule has run some times
LEAK = 1024  # bytes in 18 hours
AWAY_H = 60  # of a gateway: by then all that waits for it has its bound
COMES_BACK = ("hello", {"id": 1}), ("channels", {"text": ""})


@pytest.fixture
def board(micropython, mpy_cross, tmp_path):
    """Return a function that makes a board with the template *name*."""

    def make(name: str, has_gateway: bool = True) -> TemplateBoard:
        made = TemplateBoard(tmp_path / "board", name, has_gateway)
        made.write("rests", json.dumps(DOOR_RESTS if name == "door" else [0, 0, 0]))
        return made

    return make


@pytest.mark.parametrize("name", JUDGES)
def test_a_week_of_a_template_on_a_board_and_its_rehearsal(board, name):
    week = board(name)
    spans = live_a_week(week, 7, MORE.get(name, ()))
    judge(name, week, spans)
    compare(week)


def compare(week):
    samples, edges, lives = read_samples(str(week.flash / "readings"))
    record = samples, spread(edges), lives
    firsts = [samples[:1], lives[:1], [(at_ms // 1000,) for at_ms, _, _ in record[1][:1]]]
    from_s = min(rows[0][0] for rows in firsts if rows)  # of edges without readings, two days
    compare_rehearsal(week.image, record, week, from_s, 2, OF_BOARD)


@pytest.mark.parametrize("name", JUDGES)
def test_time_takes_no_more_of_the_heap_and_its_rehearsal_is_what_happened(board, name):
    week = board(name, False)
    week.run(LONG_H.get(name, 36) * HOUR_S, dies=True)
    used = week.heap()
    # an hour in which modules are loaded for a moment says nothing
    assert min(used[-6:]) - min(used[-24:-18]) < LEAK, used
    compare(week)


def test_what_waits_for_a_gateway_has_a_bound_and_goes_there(board):
    week = board("door")
    head = '\x1e{"jsonrpc":"2.0","method":"claw.gateway.%s","params":%s}'
    said = [
        (AWAY_H * HOUR_S - 20 + number, head % (method, json.dumps(params)))
        for number, (method, params) in enumerate(COMES_BACK)
    ]
    told = week.run(AWAY_H * HOUR_S, said)
    used = week.heap()
    assert min(used[-6:]) - min(used[-18:-12]) < LEAK, used
    assert '"method":"claw.gateway.say"' in told.replace(" ", "")
