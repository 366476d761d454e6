"""A run of ``clawlite bench`` says on a terminal how far it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import measure
import pytest
from terminals import on_terminal

from clawlite.host.base import progress
from clawlite.host.bench import bench

ROOT = Path(__file__).resolve().parents[3]
RUN = [sys.executable, "-m", "clawlite", "bench", "load", "netrules", "--here", "--rounds", "2"]
ENVIRONMENT = dict(os.environ, PYTHONPATH=str(ROOT))
ERASED = "\r\x1b[K"


def test_a_terminal_shows_the_part_and_the_time_left_between_the_rows():
    code, said, _ = on_terminal(RUN, env=ENVIRONMENT, stdout=None)
    assert code == 0, said
    pieces = said.decode().split(ERASED)
    drawn = [piece for piece in pieces if " left\r" in piece]
    names = [re.fullmatch(r"(.*), about \d+ (s|min) left\r", piece)[1] for piece in drawn]
    assert names[0] == "load: load, 1 of 2" and names[-1] == "netrules: netrules, 2 of 2"
    rows = [piece for piece in pieces if piece.startswith(("load  ", "netrules  "))]
    assert len(rows) >= 4 and all(
        row.endswith("\n") for row in rows
    )  # the line is gone before each
    # and after the last one, before what was measured elsewhere
    assert pieces[-1].lstrip("\r\n").startswith("Medians, beside ")


def test_elsewhere_it_says_nothing_and_rows_are_whole():
    done = subprocess.run(RUN, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0 and " left" not in done.stderr and "\x1b" not in done.stdout


def test_with_json_the_terminal_has_the_line_and_stdout_the_rows():
    code, said, out = on_terminal([*RUN, "--json"], env=ENVIRONMENT)
    assert code == 0 and b"1 of 2, about" in said and b"left" not in out
    assert all(line.startswith(b'{"suite":') for line in out.splitlines())


@pytest.mark.parametrize(
    "at, before_s, now_s, expected",
    [
        (0, 0, 0, 100),  # as recorded
        (0, 0, 4, 96),
        (1, 20, 0, 180),  # twice as slow as recorded
        (2, 80, 100, 20),
        (2, 80, 500, 0),  # never below
    ],
)
def test_the_time_left(at, before_s, now_s, expected):
    parts = [("a", 10), ("b", 30), ("c", 60)]
    assert progress.seconds_left(parts, at, before_s, now_s) == expected


def test_durations():
    said = [progress.duration(seconds) for seconds in (0, 59.4, 60, 89, 600)]
    assert said == ["0 s", "59 s", "1 min", "1 min", "10 min"]


def test_recorded_seconds_are_those_of_parts_that_exist():
    names = {
        f"{suite}: {function.__name__}"
        for suite, functions in measure.FUNCTIONS.items()
        for function in functions
    }
    assert set(measure.RECORDED_S) | set(measure.RECORDED_LONG_S) <= names
    assert bench.seconds_of("boards", measure.RECORDED_LONG_S) > bench.seconds_of("boards")
    assert bench.seconds_of("ready") > bench.seconds_of("ready: ready")
