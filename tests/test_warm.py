"""A command forked from a warm process (warm.py) behaves like one that is started anew."""

import os
import signal
import subprocess
import sys

import pytest
import warm
import warm_script
from agents import clawlite, environment, eventually, linux

CASES = [
    ("new", "garden", "--offline"),
    ("build", "greenhouse"),
    ("check", "greenhouse", "--json"),
    ("check", "nowhere"),
    ("tools", "greenhouse"),
    ("inspect", "greenhouse/claw.cbor"),
    ("boards", "--json"),
    ("build", "--no-such-option"),
    ("swarm", "status", "greenhouse"),
    ("swarm", "trace", "x", "nowhere"),
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


SCRIPT = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["GIVEN"], os.umask(0), sys.stdin.read())
sys.stderr.write("said\\n")
sys.exit(int(sys.argv[1]))
"""


def test_a_script_that_is_forked_says_the_same(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    said = []
    for words in (warm_script.words, lambda python, *rest: [python, *rest]):
        done = subprocess.run(
            words(sys.executable, tmp_path / "script.py", "3", "\n"),
            cwd=tmp_path,
            env=dict(environment(tmp_path), GIVEN="x"),
            input=b"in",
            capture_output=True,
        )
        said.append((done.returncode, done.stdout, done.stderr))
    assert said[0] == said[1] and said[0][0] == 3 and said[0][2] == b"said\n"


def test_a_script_ends_with_what_was_started(tmp_path):
    (tmp_path / "script.py").write_text("import os, time\nprint(os.getpid(), flush=True)\n%s")
    ends = ("time.sleep(600)", "os.kill(os.getpid(), 15)")
    for last, code in zip(ends, (-signal.SIGTERM, 128 + signal.SIGTERM), strict=True):
        text = (tmp_path / "script.py").read_text()
        (tmp_path / "ends.py").write_text(text % last)
        words = warm_script.words(sys.executable, tmp_path / "ends.py")
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            pid = int(process.stdout.readline())
            assert pid != process.pid
            if code < 0:
                process.terminate()
            assert process.wait() == code
            assert process.stdout.read() == b""  # nobody holds its end
            eventually(lambda pid=pid: not os.path.exists("/proc/%d" % pid))


def test_a_script_is_told_that_nobody_reads(tmp_path):
    (tmp_path / "script.py").write_text(
        "import sys\nsys.stdin.read(1)\n"
        "try:\n    sys.stdout.write('x' * 100000)\nexcept BrokenPipeError:\n    sys.exit(7)\n"
    )
    words = warm_script.words(sys.executable, tmp_path / "script.py")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdin.write(b"x")
        process.stdin.close()
        assert process.wait() == 7
