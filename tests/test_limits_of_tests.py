"""Every test has a time limit, and what the suite needs of a machine is looked at first: pytest
itself is run for it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import machine
import pytest

ROOT = Path(__file__).resolve().parents[1]
WAITS = """
import os, threading, time
import pytest

@pytest.fixture
def never_set_up():
    os.read(os.pipe()[0], 1)

@pytest.fixture
def never_torn_down():
    yield
    os.read(os.pipe()[0], 1)

@pytest.mark.limit(1)
@pytest.mark.parametrize("what", ["fifo"])
def test_waits(tmp_path, what):
    os.mkfifo(tmp_path / "fifo")
    try:
        (tmp_path / "fifo").read_text()
    except Exception:                   # the limit is none of those
        time.sleep(3600)

@pytest.mark.limit(1)
def test_is_not_set_up(never_set_up):
    pass

@pytest.mark.limit(1)
def test_is_not_torn_down(never_torn_down):
    pass

def test_comes_last():
    pass
"""
STUCK = """
import signal, threading

def test_takes_the_alarm_for_itself():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    signal.sigwait([signal.SIGUSR1])
"""


def _pytest(
    folder: Path, *words: str, before: str = "", **environment
) -> subprocess.CompletedProcess:
    """Run pytest with the rules of this suite over what lies in *folder*."""
    conftest = "import sys\nsys.path.insert(0, %r)\n%sfrom conftest_rules import *\n" % (
        str(folder),
        before,
    )
    (folder / "conftest_rules.py").write_text((ROOT / "tests/conftest.py").read_text())
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text(
        "[pytest]\npythonpath = %s/tests/helpers\nmarkers =\n  limit: x\n" % ROOT
    )
    environment = {
        name: text
        for name, text in {**os.environ, **environment}.items()
        if not name.startswith(("PYTEST_", "CLAWLITE_RES", "CLAWLITE_REQ"))
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def test_what_waits_for_ever_fails_by_name_and_the_run_goes_on(tmp_path):
    (tmp_path / "test_waits.py").write_text(WAITS)
    done = _pytest(tmp_path)
    assert done.returncode == 1 and "1 failed, 2 passed, 2 errors" in done.stdout, done.stdout
    for name, phase in (
        ("test_waits[fifo]", "call"),
        ("test_is_not_set_up", "setup"),
        ("test_is_not_torn_down", "teardown"),
    ):
        assert (
            "test_waits.py::%s: its %s took longer than 1 s and was ended here" % (name, phase)
            in done.stdout
        )
    assert '(tmp_path / "fifo").read_text()' in done.stdout  # where it waited


def test_what_the_alarm_does_not_reach_ends_the_run_and_says_where_it_stood(tmp_path):
    (tmp_path / "test_stuck.py").write_text(STUCK)
    done = _pytest(
        tmp_path, before="import time_limit\ntime_limit.LAST_S = 1\n", CLAWLITE_TEST_LIMIT_S="1"
    )
    assert done.returncode == 1 and "Timeout" in done.stderr
    assert "in test_takes_the_alarm_for_itself" in done.stderr, done.stderr


def test_what_waits_after_the_last_test_ends_the_run_and_says_where_it_stood(tmp_path):
    (tmp_path / "test_done.py").write_text("def test_done():\n    pass\n")
    waits = "import os, made_folders\nmade_folders.clean = lambda: os.read(os.pipe()[0], 1)\n"
    done = _pytest(tmp_path, before=waits, CLAWLITE_TEST_LIMIT_S="1")
    assert done.returncode == 1 and "Timeout" in done.stderr
    assert "in pytest_sessionfinish" in done.stderr, done.stderr


TAKEN = """
import os, signal
import pytest

@pytest.fixture(scope="module")
def taken():
    heard = []
    old = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    yield heard
    signal.signal(signal.SIGALRM, old)

def test_before():
    pass

def test_hears(taken):
    signal.raise_signal(signal.SIGALRM)
    assert taken == [signal.SIGALRM]
"""


def test_a_fixture_may_take_the_alarm_and_gives_it_back(tmp_path):
    (tmp_path / "test_a_taken.py").write_text(TAKEN)
    (tmp_path / "test_b_waits.py").write_text(
        "import os, pytest\n@pytest.mark.limit(1)\n"
        "def test_waits():\n    os.read(os.pipe()[0], 1)\n"
    )
    done = _pytest(tmp_path)
    assert (
        "1 failed, 2 passed" in done.stdout and "test_waits: its call took longer" in done.stdout
    ), done.stdout


def test_a_test_may_have_a_limit_of_its_own(tmp_path):
    (tmp_path / "test_own.py").write_text(
        "import os, pytest\n@pytest.mark.limit(1)\ndef test_own():\n    os.read(os.pipe()[0], 1)\n"
    )
    done = _pytest(tmp_path)
    assert done.returncode == 1 and "test_own: its call took longer than 1 s" in done.stdout


def test_a_machine_that_lacks_something_is_told_once_and_first(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    done = _pytest(
        tmp_path, before="import machine\nmachine.lacks = lambda: ['/tmp: closed', 'umask: 077']\n"
    )
    assert done.returncode == 4 and done.stdout.strip() == ""
    assert (
        done.stderr.strip() == "ERROR: this machine cannot run the tests: /tmp: closed; umask: 077"
    )


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o1755])
def test_a_closed_tmp_is_named(tmp_path, mode):
    tmp_path.chmod(mode)
    assert machine.lacks(str(tmp_path)) == [
        "%s: expected mode 1777 (tests run programs as other users), got %o - chmod 1777 %s"
        % (tmp_path, mode, tmp_path)
    ]
    tmp_path.chmod(0o1777)
    assert machine.lacks(str(tmp_path)) == []


def test_a_umask_that_shuts_others_out_is_named():
    old = os.umask(0o077)
    try:
        assert machine.lacks() == [
            "umask: expected 022 (other users read what tests write), got "
            "077 - run the tests after: umask 022"
        ]
    finally:
        os.umask(old)


def test_programs_under_test_hear_signals_that_this_run_was_told_to_ignore(tmp_path):
    """As nohup and "&" start it."""
    (tmp_path / "test_ignored.py").write_text(
        "import subprocess, signal\n\ndef test_heard():\n    for number in (signal.SIGHUP, "
        "signal.SIGINT, signal.SIGQUIT):\n"
        "        assert subprocess.run(['sh', '-c', 'kill -%d $$; exit 9' % number]).returncode "
        "== -number\n"
        "    signal.raise_signal(signal.SIGHUP)       # of this process' own terminal: it goes "
        "on\n"
    )
    old = {number: signal.signal(number, signal.SIG_IGN) for number in machine.SIGNALS}
    try:
        done = _pytest(tmp_path)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    assert done.returncode == 0, done.stdout
