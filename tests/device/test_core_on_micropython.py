"""Every module of tests/core on the real MicroPython, one process each: from .py, and from .mpy
as boards get it, in the stack of a Pico.
"""

import pytest
from run_core_micropython import (
    ROOMS,
    ROOT,
    as_a_board,
    from_source,
    modules,
    precompile,
    run_module,
)


@pytest.fixture(scope="session")
def mpy_folders(mpy_cross, tmp_path_factory) -> list:
    return precompile(tmp_path_factory.mktemp("mpy"))


def _run(name: str, folders: list, start: list) -> None:
    passed, output = run_module(name, folders, start)
    assert passed, "%s on MicroPython:\n%s" % (name, output)


@pytest.mark.parametrize("name", modules())
def test_from_source(micropython, name):
    _run(name, [ROOT, *ROOMS], from_source())


@pytest.mark.parametrize("name", modules())
def test_from_mpy_at_o3(micropython, mpy_folders, name):
    _run(name, mpy_folders, as_a_board())
