"""``clawlite new`` on a terminal asks what no option says; ``--list`` shows the templates."""

import io
import json
import os
import sys
from types import SimpleNamespace

import pytest
from agents import clawlite

from clawlite.host.cli import project, ui
from clawlite.host.projects import new as project_new
from clawlite.host.projects.new import templates
from clawlite.host.serial import ports

NO_OPTIONS = {
    "lists": False,
    "template": None,
    "endpoint": None,
    "model": None,
    "offline": False,
    "local": False,
    "board": None,
    "as_json": False,
}


@pytest.fixture
def answer(monkeypatch, capsys, tmp_path):
    """Return what plays a person who answers with lines, and gives (folder, what was shown)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ui, "is_asking", lambda: True)
    monkeypatch.setattr(ports, "ports", lambda: [])

    def play(*lines, **options):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(line + "\n" for line in lines)))
        project.new("made", **{**NO_OPTIONS, **options})
        return tmp_path / "made", capsys.readouterr().err

    return play


def test_enter_is_the_greenhouse_here_without_a_model(answer):
    made, shown = answer("", "", "")
    assert shown.count("Enter: ") == 3  # at most three questions
    assert 'endpoint: "builtin:reflex"' in (made / "claw.yaml").read_text()
    assert (made / "tools/water.yaml").exists()


def test_the_end_of_input_is_enter(answer):
    assert "Made made with claw.yaml" in answer()[1]


def test_number_name_and_a_typing_error(answer):
    made, shown = answer("pico-ww", "pico-w", "chat", "3", "http://127.0.0.1:8080/v1")
    assert "'pico-ww' is none of them - did you mean" in shown
    assert "http://127.0.0.1:8080/v1" in (made / "claw.yaml").read_text()


def test_the_model_in_this_machine_where_it_can_run(answer, monkeypatch):
    monkeypatch.setattr(project_new, "can_understand", lambda template, board: True)
    made, shown = answer("", "", "words")
    assert "37 MB" in shown and 'endpoint: "builtin:local"' in (made / "claw.yaml").read_text()


@pytest.mark.parametrize(
    "machine, count, board, able",
    [
        ("x86_64", 2, None, True),
        ("aarch64", 4, None, True),
        ("armv7l", 4, None, False),
        ("x86_64", 1, None, False),
        ("x86_64", 2, "pico", False),
    ],
)
def test_where_the_model_can_run(monkeypatch, machine, count, board, able):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert project_new.can_understand("greenhouse", board) is able
    assert not project_new.can_understand("chat", board)


def test_a_template_without_a_model_asks_for_none(answer):
    made, shown = answer("", "weather")
    assert "Which model" not in shown and shown.count("Enter: ") == 2
    assert (made / "claw.yaml").exists()


def test_a_board_that_is_attached_comes_first(answer, monkeypatch):
    found = [{"boards": ["pico", "pico-w"], "usb": "2e8a:0005"}]
    monkeypatch.setattr(ports, "ports", lambda: found)
    _, shown = answer("", "blink")
    assert shown.index("1  pico ") < shown.index("3  here") and "on the pico: " in shown


@pytest.mark.parametrize(
    "option", [{"template": "blink"}, {"offline": True}, {"local": True}, {"board": "pico"}]
)
def test_an_option_asks_nothing(answer, option):
    assert "?" not in answer(**option)[1]


def test_the_list_has_a_line_for_each_template(tmp_path):
    done = clawlite("new", "--list", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("greenhouse ") and len(lines) == len(templates())
    assert all(len(line.split(None, 1)[1]) > 30 for line in lines)
    rows = json.loads(clawlite("new", "--list", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in rows} == set(templates())
