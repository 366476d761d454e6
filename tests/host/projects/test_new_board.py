"""``clawlite new --board``: what a template makes can be built for the board that was named."""

import subprocess
import sys
import tomllib

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.builder import build
from clawlite.host.builder.check import check
from clawlite.host.projects import new, new_board


def clawlite(*arguments, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "clawlite", *arguments],
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=300,
    )


def _settings(folder) -> dict:
    return tomllib.loads((folder / "clawlite.toml").read_text())


@pytest.mark.parametrize("board", boards.names())
@pytest.mark.parametrize("template", sorted({*new.templates()} - {new.TEAM}))
def test_a_new_project_is_checked_and_built_for_its_board(tmp_path, template, board):
    folder = str(tmp_path / "there")
    if template in new.LINUX and boards.profile(board).runtime == "micropython":
        with pytest.raises(ClawError, match=f"Raspberry Pi, and {board} is neither"):
            new.new(folder, template, board=board)
        return
    if board in new.TOO_SMALL.get(template, ()):
        with pytest.raises(ClawError, match=f"more heap or flash than {board} has"):
            new.new(folder, template, board=board)
        new.new(folder, template, board="pico2-w")
        with pytest.raises(ManifestErrors, match="the agent needs about"):
            build.build(folder, board=board)
        return
    new.new(folder, template, board=board)
    check(folder, board)
    assert board in build.build(folder, board=board)["fits"]


@pytest.mark.parametrize("board", boards.names())
def test_a_swarm_is_made_for_a_board_that_runs_linux_and_refused_for_others(tmp_path, board):
    folder = tmp_path / "there"
    if boards.profile(board).runtime == "micropython":
        with pytest.raises(ClawError, match=f"Raspberry Pi, and {board} is neither"):
            new.new(str(folder), new.TEAM, board=board)
        return
    assert sorted(new.new(str(folder), new.TEAM, board=board)) == sorted(
        new.new(str(tmp_path / "other"), new.TEAM)
    )
    manifests = [*folder.rglob("claw.yaml")]
    assert len(manifests) == 3
    for manifest in manifests:
        assert board in build.build(str(manifest.parent), board=board)["fits"]


@pytest.mark.parametrize("board", [None, "pico-w", "esp32", "rpi-4"])
def test_a_greenhouse_reads_its_sensor_asks_and_waters(tmp_path, board):
    new.new(str(tmp_path / "there"), offline=True, board=board)
    done = clawlite("ask", "is the soil dry", "--approve", cwd=tmp_path / "there")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Watered for 3 s."), done.stderr
    assert ("21 %" in done.stdout) is (board != "rpi-4")


def test_a_board_without_an_adc_has_a_sensor_with_a_digital_output(tmp_path):
    written = new.new(str(tmp_path / "there"), board="rpi-4")
    assert sorted(written) == sorted(new.new(str(tmp_path / "other"))) and not [
        file for file in written if "digital" in file
    ]
    assert _settings(tmp_path / "there")["pins"][0] == {
        "name": "soil",
        "pin": 26,
        "kind": "input",
        "simulate": {"start": 1},
    }
    assert "digital-read@1.0.0" in (tmp_path / "there/claw.yaml").read_text()


def test_a_kind_of_pin_that_a_board_lacks_is_said():
    with pytest.raises(ClawError, match="rpi-4 has no pin of kind adc"):
        new_board.fit(
            '[[pins]]\nname = "soil"\npin = 26\nkind = "adc"\n', boards.profile("rpi-4"), False
        )


def test_pins_that_the_board_has_stay_as_they_are(tmp_path):
    new.new(str(tmp_path / "with"), board="pico-w")
    new.new(str(tmp_path / "without"))
    assert (tmp_path / "with/clawlite.toml").read_text() == (
        tmp_path / "without/clawlite.toml"
    ).read_text()


def test_other_pins_are_those_of_the_board(tmp_path):
    new.new(str(tmp_path / "there"), board="esp32-c3")
    assert [(pin["name"], pin["pin"]) for pin in _settings(tmp_path / "there")["pins"]] == [
        ("soil", 1),
        ("pump", 5),
    ]


@pytest.mark.parametrize("offline", [False, True])
def test_a_board_without_network_has_a_gateway_where_a_model_is_asked(tmp_path, offline):
    new.new(str(tmp_path / "there"), offline=offline, board="pico")
    assert ("gateway" in _settings(tmp_path / "there")) is not offline


@pytest.mark.parametrize(
    "name, board, said", [("there", "pico", "and pico is neither"), ("t" * 55, None, "too long")]
)
def test_a_swarm_that_cannot_be_is_not_made(tmp_path, name, board, said):
    with pytest.raises(ClawError, match=said):
        new.new(str(tmp_path / name), new.TEAM, board=board)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_board_makes_nothing(tmp_path):
    with pytest.raises(ClawError, match="esp33"):
        new.new(str(tmp_path / "there"), board="esp33")
    assert not (tmp_path / "there").exists()


def test_a_project_without_a_name_is_refused():
    with pytest.raises(ClawError, match="NAME is empty") as told:
        new.new("", offline=True)
    assert told.value.hint.endswith("clawlite new greenhouse")


@pytest.mark.parametrize("board", ["pico-w", "pico", "esp32-c3", "rpi-4"])
@pytest.mark.parametrize("endpoint", ["https://api.example.com/v1", "http://192.168.1.5:8080/v1"])
def test_a_project_with_a_model_elsewhere_builds_for_its_board(tmp_path, board, endpoint):
    folder = tmp_path / "there"
    new.new(str(folder), board=board, endpoint=endpoint, model="m")
    assert board in build.build(str(folder), board=board)["fits"]
    is_asked_by_gateway = board == "pico" or board != "rpi-4" and endpoint.startswith("https")
    assert ("gateway" in _settings(folder)) == is_asked_by_gateway


def test_an_underscore_in_the_name_of_a_folder_is_a_hyphen_in_that_of_the_agent(tmp_path):
    new.new(str(tmp_path / "my_agent_2"))
    text = (tmp_path / "my_agent_2/claw.yaml").read_text()
    assert 'name: "my-agent-2"' in text
    assert check(str(tmp_path / "my_agent_2"))["tools"] == 4
