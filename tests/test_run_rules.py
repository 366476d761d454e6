"""The rules of conftest.py bite: each sample is run by a pytest of its own, in an empty folder
with a copy of it.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ORPHAN = """
import subprocess, sys
def test_orphan():
    # The child starts a sleeper and ends: the sleeper is nobody's child here any more.
    subprocess.run([sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', '60'])"])
"""


ROOT = Path(__file__).resolve().parents[1]


def _lay_out(tmp_path: Path, source: str) -> None:
    """Put the rules and *source*, as test_sample.py, into the folder."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    for name in (
        "listening.py",
        "machine.py",
        "made_folders.py",
        "opened.py",
        "time_limit.py",
        "warm.py",
        "warm_script.py",
    ):
        shutil.copy(ROOT / "tests" / "helpers" / name, tmp_path)
    rules = tmp_path / "conftest.py"
    rules.write_text(re.sub(r"(?m)^GRACE_S = [0-9.]+", "GRACE_S = 1.0", rules.read_text()))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    board: x\n")
    (tmp_path / "test_sample.py").write_text(source)


def _run(tmp_path: Path, source: str, options=(), **env) -> tuple:
    """Return (exit code, output, the lines for the Makefile) of a run over *source*."""
    _lay_out(tmp_path, source)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CLAWLITE_", "PYTEST_"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *options,
            "test_sample.py",
        ],
        cwd=tmp_path,
        env=dict(
            clean,
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
            CLAWLITE_RESULTS=str(tmp_path / "results"),
            **env,
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    results = tmp_path / "results"
    return (
        done.returncode,
        done.stdout,
        results.read_text().splitlines() if results.exists() else [],
    )


def test_what_processes_import_is_compiled_already():
    """A start takes a third of the time then."""
    for name in (
        "clawlite/__main__.py",
        "clawlite/host/cli/project.py",
        "tests/redteam/fixtures.py",
    ):
        assert Path(importlib.util.cache_from_source(str(ROOT / name))).exists(), name


def test_a_clean_run_passes(tmp_path):
    source = "import subprocess\ndef test_child():\n    subprocess.run(['true'])\n"
    assert _run(tmp_path, source, CLAWLITE_REQUIRE_ALL="1")[::2] == (0, ["passed 1", "failed 0"])


@pytest.mark.parametrize(
    "source, words",
    [
        (
            "import subprocess\ndef test_child():\n    global p\n    p = "
            "subprocess.Popen(['sleep', "
            "'60'])\n",
            "this test left",
        ),
        (ORPHAN, "test_sample.py left"),
    ],
)
def test_a_process_left_behind_fails(tmp_path, source, words):
    code, output, results = _run(tmp_path, source)
    assert code == 1 and words in output and "(sleep 60)" in output
    assert results == ["passed 1", "failed 1"]  # the test itself passed, its end did not


def test_a_fixture_of_the_module_may_keep_its_process(tmp_path):
    source = (
        "import pytest, subprocess\n@pytest.fixture(scope='module')\ndef server():\n"
        "    with subprocess.Popen(['sleep', '60']) as p:\n        yield p\n        "
        "p.kill()\n"
        "def test_one(server): pass\ndef test_two(server): pass\n"
    )
    assert _run(tmp_path, source)[::2] == (0, ["passed 2", "failed 0"])


def test_a_thread_left_behind_fails_and_says_where_it_stands(tmp_path):
    source = (
        "import os, threading\n"
        "def waits(fd):\n    os.read(fd, 1)\n"
        "def test_it():\n"
        "    threading.Thread(target=waits, args=os.pipe()[:1], daemon=True).start()\n"
    )
    code, output, results = _run(tmp_path, source)
    assert code == 1 and "test_sample.py left threads behind" in output and "in waits" in output
    assert results == ["passed 1", "failed 1"]


def test_a_listening_socket_fails(tmp_path):
    source = (
        "import socket\ndef test_it():\n    global s\n    s = "
        "socket.create_server(('127.0.0.1', 0))\n"
    )
    code, output, results = _run(tmp_path, source)
    assert code == 1 and "still listening: tcp 0100007F:" in output
    assert results == ["passed 1", "failed 1"]


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\ndef test_it():\n    pytest.skip('no bus')\n",
        "import pytest\n@pytest.mark.skip(reason='no bus')\ndef test_it(): pass\n",
        "import pytest\npytest.skip('no bus', allow_module_level=True)\n",
    ],
)
def test_a_skip_is_counted_and_refused_when_all_are_required(tmp_path, source):
    code, _, results = _run(tmp_path, source)
    assert code in (0, 5) and results == ["passed 0", "failed 0", "skipped 1 no bus"]
    code, output, results = _run(tmp_path, source, CLAWLITE_REQUIRE_ALL="1")
    assert code in (1, 2) and results == ["passed 0", "failed 1"]
    assert "CLAWLITE_REQUIRE_ALL=1: " in output and "no bus" in output


def test_a_test_that_needs_a_board_may_be_skipped(tmp_path):
    source = "import pytest\n@pytest.mark.board\ndef test_it():\n    pytest.skip('no board')\n"
    assert _run(tmp_path, source, CLAWLITE_REQUIRE_ALL="1")[::2] == (
        0,
        ["passed 0", "failed 0", "skipped 1 no board"],
    )


def test_new_files_in_the_checkout_fail_when_all_are_required(tmp_path):
    # The copy of conftest.py takes the folder above its own for the checkout.
    folder = tmp_path / "tests"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("results\n__pycache__/\n")
    source = "def test_it():\n    open('../left.txt', 'w').close()\n"
    code, output, _ = _run(folder, source)
    assert code == 0 and "note: changed in the checkout meanwhile: ?? left.txt" in output
    (tmp_path / "left.txt").unlink()
    code, output, results = _run(folder, source, CLAWLITE_REQUIRE_ALL="1")
    assert code == 1 and "changed in the checkout: ?? left.txt" in output
    assert results == ["passed 1", "failed 1"]


def test_a_core_that_is_not_compiled_stops_the_run_that_requires_it(tmp_path):
    core = tmp_path / "clawlite/core"
    (core / "line").mkdir(parents=True)
    for path in (
        core / "../__init__.py",
        core / "__init__.py",
        core / "line/frame.py",
        core / "line/frame.pxd",
    ):
        path.touch()
    (tmp_path / "tests").mkdir()
    code, output, results = _run(
        tmp_path / "tests",
        "def test_it(): pass\n",
        CLAWLITE_REQUIRE_EXT="1",
        PYTHONPATH=str(tmp_path),
    )
    assert code == 4 and "frame.py is not compiled" in output and results == []


@pytest.mark.parametrize(
    "source, words",
    [
        (
            "import socket\ndef test_it():\n    global s\n    s = "
            "socket.create_server(('127.0.0.1', "
            "0))\n",
            "LEFT BEHIND still listening: tcp",
        ),
        ("import os\ndef test_it():\n    os._exit(3)\n", "crashed"),
    ],
)
def test_what_processes_that_share_a_run_leave_is_told(tmp_path, source, words):
    code, output, results = _run(
        tmp_path, source, ["-p", "xdist.plugin", "--numprocesses", "2", "--dist", "loadfile"]
    )
    assert code == 1 and words in output and results[1] != "failed 0", output


@pytest.mark.parametrize(
    "failing, code, told",
    [
        (
            1,
            0,
            "failed beside others, passed alone: test_sample.py::test_it[0]\n5 passed, 0 failed",
        ),
        (4, 2, "1 passed, 4 failed"),  # so many are no accident
    ],
)
def test_what_fails_beside_others_runs_once_more_alone(tmp_path, failing, code, told):
    _lay_out(
        tmp_path,
        "import pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(5))\n"
        "def test_it(number):\n"
        f"    assert number >= {failing} or pathlib.Path('seen').exists()\n"
        "@pytest.fixture(scope='session', autouse=True)\n"
        "def seen():\n"
        "    yield\n"
        "    pathlib.Path('seen').touch()\n",
    )
    done, output = _make(tmp_path, "run-main")
    assert (done > 0) == (code > 0), output
    (tmp_path / "results" / "ext").write_text("passed 0\n")
    output += _make(tmp_path, "report")[1]
    assert told in output.replace("  failed", "failed"), output


def test_what_fails_alone_too_fails_the_run(tmp_path):
    _lay_out(tmp_path, "def test_it():\n    assert 0\n")
    code, output = _make(tmp_path, "run-main")
    assert code and output.count("1 failed") == 2, output


def _make(folder: Path, target: str) -> tuple:
    """Return (exit code, output) of the Makefile's *target* for the tests in *folder*."""
    done = subprocess.run(
        [
            "make",
            "-s",
            f"--file={ROOT / 'Makefile'}",
            target,
            f"BIN={Path(sys.executable).parent}",
            "JOBS=2",
            "TESTS=test_sample.py",
            "RESULTS=results",
            "PYTEST_ADDOPTS=",
        ],
        cwd=folder,
        env={
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("CLAWLITE_", "PYTEST_", "MAKE"))
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout
