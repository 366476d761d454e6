"""A command forked from a warm process (warm.py) behaves like one that is started anew."""

import os
import signal
import subprocess

import pytest
import warm
from agents import clawlite, environment, linux

CASES = [
    ("new", "garden", "--offline"),
    ("build", "greenhouse"),
    ("check", "greenhouse", "--json"),
    ("check", "nowhere"),
    ("tools", "greenhouse"),
    ("inspect", "greenhouse/claw.cbor"),
    ("boards", "--json"),
    ("build", "--no-such-option"),
]


@pytest.mark.parametrize("args", CASES, ids=" ".join)
def test_both_say_and_leave_the_same(tmp_path, args):
    left = []
    for start in ("warm", "cold"):
        folder = tmp_path / start
        folder.mkdir()
        assert clawlite("new", "greenhouse", "--offline", cwd=folder).returncode == 0
        built = clawlite("build", "greenhouse", "-o", "greenhouse/claw.cbor", cwd=folder)
        assert built.returncode == 0
        env = environment(folder / ".home")
        if start == "warm":
            said = warm.run(list(args), folder, b"", env, 100)
        else:
            done = subprocess.run(linux(*args), cwd=folder, env=env, capture_output=True)
            said = (done.returncode, done.stdout, done.stderr)
        files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        left.append((said, files))
    assert left[0] == left[1] and left[0][0] is not None


def test_a_command_has_its_own_environment_folder_and_umask(tmp_path):
    own = os.umask(0o077)
    try:
        clawlite("new", "g", "--offline", cwd=tmp_path)
    finally:
        os.umask(own)
    assert (tmp_path / "g/claw.yaml").stat().st_mode & 0o077 == 0
    (tmp_path / "g/claw.yaml").unlink()
    again = clawlite("new", "g", "--offline", cwd=tmp_path)
    assert again.returncode == 2 and not (tmp_path / "g/claw.yaml").exists()
    for name in ("a", "b"):
        state = str(tmp_path / name)
        clawlite("gateway", "token", name, cwd=tmp_path, CLAWLITE_STATE=state)
        assert [path.name for path in (tmp_path / name).rglob("tokens/*")] == [name]


@pytest.mark.parametrize(
    "args, more",
    [
        (["run", "g"], {}),
        (["check", "g"], {"PYTHONHASHSEED": "1"}),
        (["check", "g"], {"LC_ALL": "C"}),
        ([], {}),
    ],
)
def test_what_cannot_be_given_later_is_started_anew(tmp_path, args, more):
    env = environment(tmp_path / "home", **more)
    assert warm.run(args, tmp_path, b"", env, 100) is None


def test_a_command_that_does_not_end_is_ended(tmp_path):
    env = environment(tmp_path / "home")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["check", "nowhere"], tmp_path, b"", env, 0)
    assert warm.run(["check", "nowhere"], tmp_path, b"", env, 100)[0] == 2


def test_it_ends_though_another_process_holds_its_socket(tmp_path):
    assert warm.run(["check", "nowhere"], tmp_path, b"", environment(tmp_path / "home"), 100)
    heir = os.fork()  # such as a test's own; it has a copy of every descriptor
    if not heir:
        signal.pause()
    try:
        (pid,) = warm.pids()
        warm.end()
        assert not os.path.exists("/proc/%s" % pid)
    finally:
        os.kill(heir, signal.SIGKILL)
        os.waitpid(heir, 0)
