"""Each test has a state folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"
