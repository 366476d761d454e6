"""``clawlite new --board``: what a template makes can be built for the board that was named."""
import tomllib

import pytest

from clawlite.core.errors import ClawError
from clawlite.host import boards, new
from clawlite.host.check import check

ADC = [name for name in boards.names() if boards.profile(name).pins.adc]


def _settings(folder) -> dict:
    return tomllib.loads((folder / "clawlite.toml").read_text())


@pytest.mark.parametrize("board", boards.names())
@pytest.mark.parametrize("template", new.templates())
def test_a_new_project_passes_the_check_of_its_board(tmp_path, template, board):
    if template == "greenhouse" and board not in ADC:
        with pytest.raises(ClawError, match=f"{board} has no pin of kind adc"):
            new.new(str(tmp_path / "there"), template, board=board)
        assert not (tmp_path / "there").exists()
        return
    new.new(str(tmp_path / "there"), template, board=board)
    assert check(str(tmp_path / "there"), board)["not_built"] == []


def test_pins_that_the_board_has_stay_as_they_are(tmp_path):
    new.new(str(tmp_path / "with"), board="pico-w")
    new.new(str(tmp_path / "without"))
    assert (tmp_path / "with/clawlite.toml").read_text() == (tmp_path / "without/clawlite.toml").read_text()


def test_other_pins_are_those_of_the_board(tmp_path):
    new.new(str(tmp_path / "there"), board="esp32-c3")
    assert [(pin["name"], pin["pin"]) for pin in _settings(tmp_path / "there")["pins"]] == [("soil", 1), ("pump", 5)]


@pytest.mark.parametrize("offline", [False, True])
def test_a_board_without_network_has_a_gateway_where_a_model_is_asked(tmp_path, offline):
    new.new(str(tmp_path / "there"), offline=offline, board="pico")
    assert ("gateway" in _settings(tmp_path / "there")) is not offline


def test_an_unknown_board_makes_nothing(tmp_path):
    with pytest.raises(ClawError, match="esp33"):
        new.new(str(tmp_path / "there"), board="esp33")
    assert not (tmp_path / "there").exists()
