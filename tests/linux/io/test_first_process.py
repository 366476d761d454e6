"""An agent as process 1 of a container: what its tools leave behind is waited for, signals reach
it, and its exit code is that of the container.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agents import eventually, linux

NEW = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]


def _can() -> bool:
    try:
        return subprocess.run([*NEW, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _can(), reason="no new process namespaces here (unshare)")


def children(pid: int) -> list:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def states(pid: int) -> list:
    """Return the states of the children of process *pid*."""
    found = []
    for child in children(pid):
        try:
            found.append(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0])
        except OSError:  # gone
            pass
    return found


SCRIPT = """
import os, signal, subprocess, sys
from clawlite.linux.io.first_process import stand_aside
stand_aside()
assert os.getpid() != 1
subprocess.run(["/bin/sh", "-c", "(sleep 0.05 &); (sleep 0.05 &); (sleep 0.05 &); exit 0"])
code = subprocess.run(["/bin/sh", "-c", "exit 7"]).returncode
print("children", code, flush=True)
%s
"""


def first(rest: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*NEW, sys.executable, "-c", SCRIPT % rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def ended():
    started = []
    yield started
    for one in started:
        one.kill()
        one.wait()
        one.stdin.close()
        one.stdout.close()


def test_what_others_leave_behind_is_waited_for_and_own_children_are_not(ended):
    one = first("sys.stdin.read(); sys.exit(5)")
    ended.append(one)
    assert one.stdout.readline() == "children 7\n"
    (pid,) = children(one.pid)  # process 1 of the namespace
    eventually(lambda: len(states(int(pid))) == 1)
    assert states(int(pid)) != ["Z"]
    one.stdin.close()
    assert one.wait(60) == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_for_process_1_reaches_the_command(ended, number):
    one = first(
        f"signal.signal({int(number)}, lambda *_: sys.exit(9))\n"
        "print('listens', flush=True)\nsys.stdin.read()"
    )
    ended.append(one)
    assert [one.stdout.readline(), one.stdout.readline()] == ["children 7\n", "listens\n"]
    (pid,) = children(one.pid)
    os.kill(int(pid), number)
    assert one.wait(60) == 9


def test_a_command_that_a_signal_ends_is_told_by_its_number(ended):
    one = first("os.kill(os.getpid(), signal.SIGKILL)")
    ended.append(one)
    assert one.wait(60) == 128 + 9


def test_the_command_line_stands_aside_as_process_1(tmp_path):
    done = subprocess.run(
        [*NEW, *linux("--version")], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0 and done.stdout.startswith("clawlite ")
    seen = subprocess.run(
        [
            *NEW,
            sys.executable,
            "-c",
            "import os, sys, clawlite.command as c\n"
            "c._main = lambda args: print(os.getpid()) or 3\nsys.exit(c.main())",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert seen.returncode == 3 and int(seen.stdout) > 1
