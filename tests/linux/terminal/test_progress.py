"""The progress of long work: what is left, on a terminal and elsewhere, and nothing of what is
quick.
"""

import io
import sys

import pytest

from clawlite.linux.terminal.progress import Progress, duration


class Screen(io.StringIO):
    def __init__(self, is_terminal: bool):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.fixture
def play(monkeypatch):
    """Return a function(is_terminal, [(second, done), ...]) -> what stderr gets, of 100 in all."""

    def play(is_terminal: bool, steps: list) -> str:
        screen, now = Screen(is_terminal), [0.0]
        monkeypatch.setattr(sys, "stderr", screen)
        with Progress("Verifying", 100, lambda: now[0]) as progress:
            for now[0], done in steps:
                progress.reach(done)
        return screen.getvalue()

    return play


def test_what_takes_less_than_a_second_shows_nothing(play):
    for is_terminal in (True, False):
        assert play(is_terminal, [(0.1, 10), (0.5, 50), (0.99, 99)]) == ""


def test_a_terminal_has_one_line_that_is_removed(play):
    seen = play(True, [(1.0, 25), (1.1, 30), (2.0, 50), (3.0, 90)])
    rows = seen.split("\r")
    assert rows[1] == "Verifying: 25 %, about 3 s left\x1b[K"
    assert rows[2] == "Verifying: 50 %, about 2 s left\x1b[K"
    assert rows[-1] == "\x1b[K" and "\n" not in seen and len(rows) == 5


def test_elsewhere_there_is_a_line_every_few_seconds(play):
    seen = play(False, [(second, second) for second in range(1, 21)])
    assert seen.splitlines()[0] == "Verifying: 1 %, about 2 min left"
    assert len(seen.splitlines()) == 4 and "\r" not in seen and "\x1b" not in seen


def test_what_has_no_size_shows_nothing(monkeypatch):
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("Verifying", 0, iter([0.0, 5.0, 9.0]).__next__) as progress:
        assert list(progress.count([b"one", b"two"])) == [b"one", b"two"]
    assert screen.getvalue() == ""


def test_a_reader_that_is_gone_stops_nothing(monkeypatch):
    screen = Screen(True)
    screen.write = lambda text: (_ for _ in ()).throw(BrokenPipeError())
    monkeypatch.setattr(sys, "stderr", screen)
    now = iter(range(0, 100, 5))
    with Progress("Verifying", 8, lambda: next(now)) as progress:
        assert list(progress.count([b"one", b"two"])) == [b"one", b"two"]


def test_durations():
    assert [duration(s) for s in (0.4, 59.4, 60, 150)] == ["0 s", "59 s", "1 min", "2 min"]
