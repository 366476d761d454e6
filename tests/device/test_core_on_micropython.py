"""Every module of tests/core on the real MicroPython, one process each: from .py, and from .mpy
as boards get it.
"""

import pytest
from run_core_micropython import ROOMS, ROOT, modules, precompile, run_module


@pytest.fixture(scope="session")
def mpy_folders(mpy_cross, tmp_path_factory) -> list:
    return precompile(tmp_path_factory.mktemp("mpy"))


def _run(name: str, folders: list) -> None:
    passed, output = run_module(name, folders)
    assert passed, "%s on MicroPython:\n%s" % (name, output)


@pytest.mark.parametrize("name", modules())
def test_from_source(micropython, name):
    _run(name, [ROOT, *ROOMS])


@pytest.mark.parametrize("name", modules())
def test_from_mpy_at_o3(micropython, mpy_folders, name):
    _run(name, mpy_folders)
