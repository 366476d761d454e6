"""What tests of the gateway share."""

import pytest
from free_ports import free_port
from lan_boards import Relay


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    """One state folder for all: agents of one machine share it with the gateway."""
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    return tmp_path_factory.mktemp("firmware")


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def wire(port):
    """The wire between the device and its gateway, at *port*."""
    with Relay(port) as relay:
        yield relay
