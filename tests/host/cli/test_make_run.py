"""``make run``: what a newcomer sees, on a real terminal and on a pipe; .venv is this run's own."""

import shutil
import subprocess
import sys

import pytest
from agents import ROOT, Agent, environment
from ssh_server import command

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


def test_what_a_setup_will_install_is_said_first(tmp_path):
    said = subprocess.run(
        [
            "make",
            "-C",
            str(ROOT),
            "-n",
            "venv",
            f"STAMP={tmp_path}/none",
            f"PYTHON={sys.executable}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 0 < said.index("Installing into .venv") < said.index("pip install")
