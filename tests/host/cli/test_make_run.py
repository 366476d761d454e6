"""``make run``: what a newcomer sees, on a real terminal and on a pipe; .venv is this run's own."""

import re
import shutil
import subprocess
import sys
import threading

import pytest
from agents import ROOT, Agent, environment
from ssh_server import command

sys.path.insert(0, str(ROOT / "requirements"))
import install

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="no make here")


@pytest.fixture
def words(tmp_path):
    (tmp_path / "bin").mkdir()
    command(tmp_path / "bin", "clawlite", f'exec {sys.executable} -m clawlite "$@"')
    (tmp_path / "made").touch()
    return [
        "make",
        "-C",
        str(ROOT),
        "--no-print-directory",
        "run",
        f"BIN={tmp_path}/bin",
        f"STAMP={tmp_path}/made",
        f"AGENT={tmp_path}/greenhouse",
    ]


def test_ctrl_c_is_the_agents_and_make_has_no_error_of_its_own(tmp_path, words):
    with Agent(words, tmp_path / "home", terminal=True, env={"TERM": "dumb"}) as agent:
        seen = agent.expect("is ready. /help lists the commands.")
        assert (
            seen.splitlines()[0].strip()
            == f"Made {tmp_path}/greenhouse, to look at and to change. It is started here."
        )
        assert "Next:" not in seen and "exec" not in seen and "set -m" not in seen
        agent.send(b"\x03")
        agent.expect("Press Ctrl-C again to leave")
        agent.line("is the soil dry?")  # it goes on, and make with it
        agent.expect("The soil is")
        agent.expect("[y/N] ")
        agent.line("n")
        agent.expect("> ")
        agent.send(b"\x03")
        agent.expect("Press Ctrl-C again to leave")
        agent.send(b"\x03")
        assert agent.wait() == 0
        assert (
            "Error" not in agent.text() and "Interrupt" not in agent.text() and agent.errors() == ""
        )


def test_on_a_pipe_and_what_fails(tmp_path, words):
    def make(*more, said=""):
        return subprocess.run(
            [*words, *more],
            input=said,
            capture_output=True,
            text=True,
            env=environment(tmp_path / "home"),
            timeout=300,
        )

    done = make(said="is the soil dry?\nn\n")
    assert done.returncode == 0 and "The soil is" in done.stdout and done.stderr == ""
    assert "Made" not in make(said="/quit\n").stdout  # it is there already
    (tmp_path / "greenhouse/claw.yaml").write_text("claw: 1\n")
    done = make()
    assert done.returncode and "greenhouse/claw.yaml:1: " in done.stderr
    done = make(f"AGENT={tmp_path}/made/inside")
    assert done.returncode and "inside" in done.stderr and "Made" not in done.stdout


def plan(target, tmp_path):
    """Return what make would do for *target* where nothing is set up."""
    none = [f"STAMP={tmp_path}/none", f"RUN_STAMP={tmp_path}/no-run", f"PYTHON={sys.executable}"]
    words = ["make", "-C", str(ROOT), "--no-print-directory", "-n", target, *none]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_run_installs_what_the_demo_needs_and_test_the_rest(tmp_path):
    run, rest = plan("run", tmp_path), plan("lint", tmp_path)
    assert "install.py requirements/run.txt" in run and "test.txt" not in run
    assert "install.py requirements/test.txt" in rest and "run.txt" not in rest
    # the same versions: what `make run` installed is not exchanged by `make test`
    rows = (ROOT / "requirements/test.txt").read_text().split("\n")
    for row in (ROOT / "requirements/run.txt").read_text().splitlines():
        assert row.startswith("    --hash") or row in rows, row
    assert len(install.read_names(ROOT / "requirements/run.txt")) <= 15


def test_an_installation_says_what_and_how_big_and_each_step(tmp_path, monkeypatch, capsys):
    lock = tmp_path / "run.txt"
    lock.write_text("one==1.0 \\\n    --hash=sha256:00\ntwo-b==2 \\\n    --hash=sha256:11\n")
    monkeypatch.setattr(install, "VENV", tmp_path / "venv")
    called = []
    monkeypatch.setattr(install, "run", lambda title, words: called.append((title, words)) or 0)
    assert install.install([lock], [lock]) == 0
    said = capsys.readouterr().out
    assert "clawlite and 4 packages into .venv, about 69 MB: one, one, two-b, two-b." in said
    assert [title.split()[0] for title, _ in called] == ["a", "packages", "packages", "clawlite"]
    assert all("--require-hashes" in words for title, words in called if "packages" in title)
    monkeypatch.setattr(install, "run", lambda title, words: int("packages" in title))
    assert install.install([], [lock]) == 0  # an optional lock may fail, another not
    assert "Without " in capsys.readouterr().out
    assert install.install([lock], []) == 1


def test_a_step_shows_packages_a_line_while_it_is_silent_and_its_failure(tmp_path, capfd):
    go = tmp_path / "go"
    script = (
        "import sys, time, os\n"
        "print('Collecting tomli-w==1.2.0 (from -r x)', flush=True)\n"
        "print('Processing /wheels/msgspec-0.22.0-cp311.whl (from x)', flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "print('ERROR: no such wheel'); sys.exit(3)\n"
    )
    done = []
    words = [sys.executable, "-c", script]
    thread = threading.Thread(target=lambda: done.append(install.run("packages", words, 0.05)))
    thread.start()
    said = ""
    while "msgspec: 0 s" not in said:  # a line although the program says nothing
        said += capfd.readouterr().out
    go.touch()
    thread.join()
    assert done == [3] and "ERROR: no such wheel" in capfd.readouterr().err
    assert said.startswith("  packages\n") and "  tomli-w\n" in said


def test_each_name_that_the_makefile_uses_is_set():
    """A name that is not set is empty, and make says nothing."""
    text = (ROOT / "Makefile").read_text()
    used = set(re.findall(r"\$\(([A-Z][A-Z0-9_]*)\)", text))
    made = set(re.findall(r"^(?:[a-z -]+: )?([A-Z][A-Z0-9_]*)\s*[:?]?=", text, re.M))
    given = {
        "MAKE",
        "CURDIR",
        "ENDPOINT",
        "MODEL",
        "FRESH_ON",
        "VARIANTS",
        "OUT",
    }  # by make, or a person
    assert used - made - given == set()
