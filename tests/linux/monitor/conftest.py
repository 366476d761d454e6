"""A greenhouse that runs with its control socket, and commands beside it."""

import pytest
from agents import Agent, eventually, linux, make_greenhouse
from control_sockets import Line


@pytest.fixture(scope="session")
def greenhouse_image(tmp_path_factory):
    return make_greenhouse(tmp_path_factory.mktemp("projects") / "g")


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def greenhouse(greenhouse_image, state, tmp_path):
    words, env = linux("run", greenhouse_image, "--socket"), {"CLAWLITE_STATE": state}
    with Agent(words, tmp_path / "home", env=env) as agent:
        eventually((state / "g/control.sock").exists)
        yield agent


@pytest.fixture
def command(state, tmp_path):
    """Return a function that starts a command beside the greenhouse."""
    started = []

    def start(*words, terminal: bool = False, **env) -> Agent:
        env = {"CLAWLITE_STATE": state, "TERM": "xterm", "NO_COLOR": "", **env}
        agent = Agent(linux(*words), tmp_path / "home", terminal, env=env)
        started.append(agent.__enter__())
        return agent

    yield start
    for one in started:
        one.__exit__()


@pytest.fixture
def ada(greenhouse, state):
    return Line(state / "g", "ada", "admin").initialize()
