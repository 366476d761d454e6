"""Every module of tests/core on the real MicroPython, one process each, from .mpy as boards get
it, in the stack of a Pico.
"""

import pytest
from run_core_micropython import modules, precompile, run_module


@pytest.fixture(scope="session")
def mpy_folders(mpy_cross, tmp_path_factory) -> list:
    return precompile(tmp_path_factory.mktemp("mpy"))


@pytest.mark.parametrize("name", modules())
def test_from_mpy_at_o3(micropython, mpy_folders, name):
    passed, output = run_module(name, mpy_folders)
    assert passed, "%s on MicroPython:\n%s" % (name, output)
