"""An index of mip, and projects whose tools.py use drivers."""

import pytest
from mip_index import Index
from slot_board import MANIFEST

BME280 = """\
from micropython import const
import bus_help
import time

_REGISTER = const(3)


def read(since=None):
    return bus_help.double(_REGISTER), time.ticks_diff(time.ticks_ms(), time.ticks_ms()) <= 0
"""
BUS_HELP = "def double(n):\n    return 2 * n\n"
TOOLS = '''\
import bme280


def look() -> str:
    """Look."""
    return "read %d" % bme280.read()[0]
'''


@pytest.fixture
def index(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Index()
    made.publish("bus_help", {"bus_help.py": BUS_HELP})
    made.publish("bme280", {"bme280.py": BME280}, "1.2.0", [("bus_help", "latest")])
    monkeypatch.setenv("CLAWLITE_MIP_INDEX", made.url)
    yield made
    made.close()


@pytest.fixture
def project(tmp_path):
    """Return a folder with an agent that calls its tool ``look``."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "claw.yaml").write_text(MANIFEST.format(version="1.0.0"))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "*"\ncall = "look"\narguments = {}\nthen = [{ say = "{result}" }]\n'
    )
    return folder
