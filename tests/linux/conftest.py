"""Images that the tests of the Linux shell share, built once, and agents started over them."""

import pytest
from agents import Agent, linux, make_bench, make_greenhouse


@pytest.fixture(scope="session")
def bench_image(tmp_path_factory):
    return make_bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="session")
def greenhouse_image(tmp_path_factory):
    return make_greenhouse(tmp_path_factory.mktemp("projects") / "g")


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def bench(bench_image, tmp_path, marks):
    """Return a function that starts the bench agent: ``with bench("run", terminal=True) as
    agent``.
    """

    def start(verb: str, *flags, text: str = None, terminal: bool = False, **popen):
        words = linux(verb, *([text] if text else []), bench_image, *flags)
        return Agent(
            words, tmp_path / "home", terminal, env=dict(popen.pop("env", {}), MARKS=marks), **popen
        )

    return start
