"""A virtual board with the greenhouse on it, flashed once for all tests of a module."""

import pytest
from agents import clawlite

from clawlite.host.flash import flash
from clawlite.host.sim.sim import Sim


@pytest.fixture(scope="module")
def greenhouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    assert clawlite("new", "greenhouse", "--offline", cwd=folder).returncode == 0
    claw = folder / "greenhouse/claw.yaml"
    tools = claw.read_text().replace("adc-read@", "digital-write@")  # which no rule allows
    claw.write_text(tools)
    return folder / "greenhouse"


@pytest.fixture(scope="module")
def flashed(greenhouse, tmp_path_factory):
    """Return a virtual board with the greenhouse on it; what the host knows of it lies in its
    ``registry``.
    """
    folder = tmp_path_factory.mktemp("flashed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAWLITE_STATE", str(folder / "state"))
        with Sim(folder=str(folder / "flash")) as board:
            (folder / "flash/boot.json").write_text('{"window_ms": 100}')
            with flash.target(board.path) as target:
                flash.flash(
                    str(greenhouse),
                    target,
                    False,
                    None,
                    lambda found: None,
                    lambda: None,
                    lambda total, more: None,
                )
            board.registry = folder / "state"
            yield board
