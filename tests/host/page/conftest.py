"""A page in this process, before a real greenhouse with people of each role."""

import pytest
from agents import Agent, eventually, linux, make_greenhouse
from pages import AGENT, RunningPage

from clawlite.linux.secrets import people


@pytest.fixture(scope="session")
def greenhouse_image(tmp_path_factory):
    return make_greenhouse(tmp_path_factory.mktemp("projects") / AGENT)


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.fixture
def add_person(state):
    """Return a function that makes a person of the greenhouse, and returns their token."""

    def add(name: str, role: str, agent: str = AGENT) -> str:
        token, digest = people.make_token(name)
        people.add(str(state / agent), name, role, digest)
        return token

    return add


@pytest.fixture
def tokens(add_person):
    return {name: add_person(name, role) for name, role in ROLES.items()}


ROLES = {"ada": "admin", "bea": "user", "vic": "viewer"}


@pytest.fixture
def page(state, tokens):
    with RunningPage(state) as running:
        yield running


@pytest.fixture
def greenhouse(greenhouse_image, state, tmp_path):
    """The greenhouse runs, and can be reached."""
    env = {"CLAWLITE_STATE": state}
    words = linux("serve", greenhouse_image, "--socket")
    with Agent(words, tmp_path / "home", cwd=tmp_path, env=env) as agent:
        eventually((state / AGENT / "control.sock").exists)
        yield agent
