"""``clawlite serve``: which ways it takes, and the page that it starts beside an agent."""

import json
import os
import re
import signal
import urllib.request

import pytest
from agents import Agent, clawlite, eventually, linux
from pages import AGENT

from clawlite.linux.secrets import people


@pytest.fixture
def serve(greenhouse_image, tmp_path):
    (tmp_path / "state").mkdir()

    def serve(*flags):
        env = {"CLAWLITE_STATE": tmp_path / "state"}
        return Agent(
            linux("serve", greenhouse_image, *flags), tmp_path / "h", cwd=tmp_path, env=env
        )

    return serve


def _url(agent) -> str:
    found = eventually(lambda: re.search(r"the page is at (http://\S+)/\n", agent.errors()))
    return found[1]


def test_listen_starts_a_page_that_ends_with_the_agent(serve, tmp_path):
    token, digest = people.make_token("ada")
    people.add(str(tmp_path / "state" / AGENT), "ada", "admin", digest)
    with serve("--listen", "127.0.0.1:0") as agent:
        url = _url(agent)
        headers = {"Authorization": "Bearer " + token, "Accept": "application/json"}

        def look():
            request = urllib.request.Request(url + "/", headers=headers)
            with urllib.request.urlopen(request, timeout=60) as said:
                return json.load(said)

        eventually(lambda: look()["agents"][0]["online"])
        assert look()["boards"] == []
        # whoever holds stdin is no operator without --stdio
        agent.line('{"jsonrpc":"2.0","id":1,"method":"claw.status","params":{}}')
        (shown,) = look()["agents"]
        assert (shown["agent"], shown["role"], shown["online"]) == (AGENT, "admin", True)
        assert (shown["ckp"], shown["seen"]) == ("/ckp/" + AGENT, None)  # it is online
        assert agent.seen == b""
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 143
        with pytest.raises(OSError):
            look()


def test_an_agent_whose_page_cannot_listen_ends_and_says_why(serve):
    with serve("--listen", "127.0.0.1:0") as first:
        port = _url(first).rpartition(":")[2]
        with serve("--listen", "127.0.0.1:" + port) as second:
            assert second.wait() != 0
            assert "free port" in second.errors()


def test_an_agent_that_is_killed_takes_its_page_along(serve):
    with serve("--listen", "127.0.0.1:0") as agent:
        url = _url(agent)
        os.kill(agent.process.pid, signal.SIGKILL)

        def is_gone():
            try:
                urllib.request.urlopen(url + "/login", timeout=60).close()
            except OSError:
                return True
            return False

        eventually(is_gone)


def test_ways_that_do_not_fit_are_told(greenhouse_image, tmp_path):
    for flags, said in (
        ((), "--stdio, --listen, --folder or --socket"),
        (("--tls-cert", "x"), "--listen"),
        (("--stdio", "--host", "x"), "--listen"),
    ):
        done = clawlite("serve", greenhouse_image, *flags, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, flags
    done = clawlite("serve", "--socket", cwd=tmp_path)
    assert done.returncode == 2


def test_beyond_this_machine_it_is_refused_without_tls(serve):
    with serve("--listen", "0.0.0.0:0") as agent:
        assert agent.wait() == 2
        assert "--tls-cert" in agent.errors()
