"""``clawlite check``: a problem's place in its line, SARIF, and looking again at a change."""

import json
import os
import signal
import sys

import pytest
from agents import Agent, clawlite, linux

from clawlite.host.base.problems import ManifestErrors, Problem
from clawlite.host.builder import findings, watching
from clawlite.host.builder.check import check
from clawlite.host.cli import ui
from clawlite.host.projects.new import new


@pytest.fixture
def project(tmp_path):
    new(str(tmp_path / "garden"), offline=True)
    return tmp_path / "garden"


def spoil(project, name, old, new_text):
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new_text, 1))


@pytest.mark.parametrize(
    "line, found, path, column, length",
    [
        ('kind = "adcc"', '"adcc"', ("pins", 0, "kind"), 9, 4),
        ("  autonmy: x", "", ("spec", "autonmy"), 3, 7),
        ("  seconds: 90", "90", ("seconds",), 12, 2),
        ("name: ab", "", ("a",), 1, 8),  # a key is a whole word
        ("  - water", "", ("tools", 0), 3, 7),
        ("", "", (), 1, 0),
    ],
)
def test_a_problem_has_a_column(tmp_path, line, found, path, column, length):
    (tmp_path / "f").write_text("first\n" + line + "\n")
    problem = Problem(path, "m", str(tmp_path / "f"), 2, found=found)
    assert findings.find_place(problem) == (line, column, length)
    assert findings.find_place(Problem(path, "m", str(tmp_path / "none"), 2)) == ("", 1, 0)
    assert findings.find_place(Problem(path, "m", str(tmp_path / "f"), 99)) == ("", 1, 0)


def test_a_mark_stands_under_its_place_and_nothing_drives_the_terminal(tmp_path):
    (tmp_path / "f").write_text("a\x1b[2J: \u202ebad\n")
    problem = Problem(("x",), "m", str(tmp_path / "f"), 1, found='"bad"')
    assert findings.mark(problem, False) == ["    a [2J:  bad", " " * 12 + "^^^"]
    assert "\x1b[31m^^^\x1b[0m" in findings.mark(problem, True)[1]
    assert findings.mark(Problem((), "m", str(tmp_path / "f")), False) == []


@pytest.mark.parametrize(
    "env, is_coloured", [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_on_a_terminal_the_line_is_shown(project, monkeypatch, capsys, env, is_coloured):
    spoil(project, "claw.yaml", "autonomy:", "autonmy:")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "vt100", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(ManifestErrors) as raised:
        check(str(project))
    assert ui.print_error(raised.value, False) == 2
    problem, line, sign, count = capsys.readouterr().err.splitlines()
    assert "unknown field" in problem and line.strip().startswith("autonmy: ")
    assert ("\x1b[31m" in sign) == is_coloured and "^^^^^^^" in sign
    assert count == "1 problem."


def test_a_pipe_gets_a_line_a_problem(project):
    spoil(project, "claw.yaml", "autonomy:", "autonmy:")
    assert len(clawlite("check", cwd=project).stderr.splitlines()) == 2


def test_sarif_has_file_line_and_columns(project):
    spoil(project, "clawlite.toml", 'kind = "adc"', 'kind = "adcc"')
    done = clawlite("check", "--sarif", cwd=project)
    (run,) = json.loads(done.stdout)["runs"]
    (result,) = run["results"]  # one cause, one problem: what raises that pin is right
    assert (done.returncode, result["level"], result["ruleId"]) == (2, "error", "problem")
    assert 'found "adcc"' in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "clawlite.toml"}
    line = (project / "clawlite.toml").read_text().split("\n")[place["region"]["startLine"] - 1]
    start, end = place["region"]["startColumn"], place["region"]["endColumn"]
    assert line[start - 1 : end - 1] == "adcc"
    spoil(project, "clawlite.toml", "adcc", "adc")
    done = clawlite("check", "--sarif", cwd=project)
    assert (done.returncode, json.loads(done.stdout)["version"]) == (0, "2.1.0")


def test_a_change_is_seen_and_what_programs_made_is_not(project):
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 1:
            (project / "claw.cbor").write_bytes(b"x")
            (project / ".hidden").mkdir()
            (project / ".hidden/x.yaml").write_text("x")
        if len(pauses) == 3:
            (project / "policy.yaml").write_text("changed")
            os.remove(project / "tools.py")

    seen = watching.changes(str(project), pause)
    assert next(seen) == []
    assert next(seen) == [str(project / "policy.yaml"), str(project / "tools.py")]
    assert len(pauses) == 3


def test_check_watch_looks_again(project, tmp_path):
    words = linux("check", str(project), "--watch", "--json")
    with Agent(words, tmp_path / "home") as agent:
        agent.expect('"shadowed"')
        spoil(project, "claw.yaml", "autonomy:", "autonmy:")
        agent.expect("unknown field")
        spoil(project, "claw.yaml", "autonmy:", "autonomy:")
        agent.expect('"shadowed"')
        agent.signal(signal.SIGINT)
        assert agent.wait() == 130


@pytest.mark.parametrize(
    "old, new_text, hint",
    [
        ('prompt = "> "', "prompt = \u201c> \u201d", "is a quote of a word processor"),
        ('reflex = "reflex.toml"', "reflex = yes", "TOML has true and false: write true"),
        ('reflex = "reflex.toml"', "reflex = Off", "TOML has true and false: write false"),
        ("[[pins]]", "[pins]", "write [[pins]] for each of them"),
    ],
)
def test_what_people_write_into_toml_has_its_own_hint(project, old, new_text, hint):
    spoil(project, "clawlite.toml", old, new_text)
    assert hint in clawlite("check", cwd=project).stderr


def test_a_problem_of_a_nested_step_has_the_steps_line(project):
    spoil(project, "reflex.toml", "percent < 30", "percent << 30")
    lines = (project / "reflex.toml").read_text().split("\n")
    number = next(n for n, line in enumerate(lines, 1) if "<<" in line)
    assert f"reflex.toml:{number}: rule[0].then[0].if: " in clawlite("check", cwd=project).stderr


@pytest.mark.parametrize("name", ["watr", "water_it"])
def test_an_unknown_tool_is_one_problem_whatever_its_rule_fills_in(project, name):
    spoil(project, "reflex.toml", 'call = "water"\narguments = { seconds = "{', "@")
    text = (project / "reflex.toml").read_text()
    text = text.replace("@", f'call = "{name}"\narguments = {{ seconds = "{{')
    (project / "reflex.toml").write_text(text)
    said = clawlite("check", cwd=project).stderr
    assert f'unknown tool "{name}"' in said and said.endswith("1 problem.\n"), said
