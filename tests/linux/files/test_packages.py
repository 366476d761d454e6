"""The command that a hint names where a package is missing."""

import sys
import tomllib

import pytest
from agents import ROOT

from clawlite.linux.files import packages


def test_the_packages_are_those_of_the_project():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    assert {name: [wanted] for name, wanted in packages.PACKAGES.items()} == {
        name: extras[name] for name in packages.PACKAGES
    }


@pytest.mark.parametrize("is_venv", [True, False])
@pytest.mark.parametrize("is_managed", [True, False])
def test_a_managed_python_outside_of_a_venv_is_told_to_go_on(
    monkeypatch, tmp_path, is_venv, is_managed
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    if is_venv:
        (tmp_path / "pyvenv.cfg").write_text("")
    if is_managed:
        (tmp_path / "lib" / "EXTERNALLY-MANAGED").write_text("")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(packages.os, "__file__", str(tmp_path / "lib" / "os.py"), raising=False)
    command = packages.install("mqtt")
    python = str(tmp_path / "bin" / "python")
    if is_managed and not is_venv:
        assert command == "sudo %s -m pip install --break-system-packages 'paho-mqtt>=2.0'" % python
    else:
        assert command == "%s -m pip install 'paho-mqtt>=2.0'" % python
