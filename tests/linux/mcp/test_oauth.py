"""MCP servers at a URL that want a token (OAuth 2.1, client credentials; CKP 0.3.0 Tool, "MCP
Compatibility"): Authlib gives the tokens, the official SDK takes them.
"""

import json

import mcp_oauth_clients
import pytest
from mcp_oauth import SECRET, agent_of, called, running, servers  # noqa: F401

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build, build_beside
from clawlite.linux.mcp.remote_token import ANSWER_MS, Secret, Tokens


@pytest.fixture
def published(servers):
    return servers.fresh()


def settings(port: int, client=mcp_oauth_clients.CLIENT, scope=mcp_oauth_clients.SCOPE) -> str:
    return (
        '[mcp.t.oauth2]\nendpoint = "http://127.0.0.1:%d/token"\nclient_id = "%s"\n'
        'scope = "%s"\ncredential = "DOCS_SECRET"\n' % (port, client, scope)
    )


def test_a_token_is_asked_for_once_and_anew_when_it_is_refused(tmp_path, published, monkeypatch):
    agent = agent_of(tmp_path, published, settings(published.authority))
    with pytest.raises(ClawError, match="DOCS_SECRET, which is not known here"):
        build(str(agent))
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    image = build_beside(str(agent))
    assert published.tell("") == (1, published.url), "of the build"
    monkeypatch.delenv("DOCS_SECRET")
    with running(tmp_path, image) as one:
        for number in range(3):
            assert "x%d" % number in json.dumps(called(one, number)["result"])
        assert published.tell("")[0] == 2
        published.tell("revoke")
        for number in range(3, 6):
            assert "x%d" % number in json.dumps(called(one, number)["result"])
        assert published.tell("") == (3, published.url)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    "what, said",
    [
        ({"secret": "another"}, "cannot authenticate"),
        ({"secret": None}, "DOCS_SECRET"),
        ({"port": 9}, "no token from 127.0.0.1"),
    ],
)
def test_no_token(tmp_path, published, monkeypatch, what, said):
    """The call is an error that says why, it was not run, and the agent goes on."""
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    agent = agent_of(tmp_path, published, settings(published.authority))
    image = build_beside(str(agent))
    if "port" in what:
        lock = (agent / "clawlite.lock").read_bytes()
        file = agent / "clawlite.toml"
        file.write_text(file.read_text().replace(":%d/token" % published.authority, ":9/token"))
        image = build_beside(str(agent))
        assert (agent / "clawlite.lock").read_bytes() == lock, "nothing is asked again"
    monkeypatch.delenv("DOCS_SECRET")
    with running(tmp_path, image, what.get("secret", SECRET)) as one:
        answer = called(one, 1)
        assert said in answer["error"]["message"], answer
        assert SECRET not in json.dumps(answer)
        one.line(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "claw.ping"}))
        assert one.message()["id"] == 9


def test_a_build_without_a_token(tmp_path, published, monkeypatch):
    monkeypatch.setenv("DOCS_SECRET", "another")
    agent = agent_of(tmp_path, published, settings(published.authority))
    with pytest.raises(ClawError, match="no token from 127.0.0.1: .*cannot authenticate"):
        build(str(agent))


def test_the_network_rules_hold_for_the_authorization_server(tmp_path, published, monkeypatch):
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    more = settings(published.authority).replace("http://127.0.0.1", "http://localhost")
    image = build_beside(str(agent_of(tmp_path, published, more)))
    count = published.tell("")
    with running(tmp_path, image) as one:
        assert called(one, 1)["error"]["code"] == -32010
    assert published.tell("") == count


@pytest.mark.parametrize(
    "change, said",
    [
        (("http://127.0.0.1", "http://auth.example.com"), "https://, or http:// to this machine"),
        (("DOCS_SECRET", "DOCS SECRET"), "the name of a secret"),
        (("[mcp.t.oauth2]", '[mcp.t]\nargs = ["x"]\n[mcp.t.oauth2]'), "at a URL"),
        (
            (
                "[mcp.t.oauth2]",
                '[[credentials]]\nname = "K"\nhosts = ["127.0.0.1"]\n[mcp.t.oauth2]',
            ),
            "both give",
        ),
    ],
)
def test_settings_that_are_refused(tmp_path, published, monkeypatch, change, said):
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    build(str(agent_of(tmp_path, published, settings(published.authority))))  # pinned
    more = settings(published.authority).replace(*change)
    with pytest.raises(ManifestErrors) as caught:
        build(str(agent_of(tmp_path, published, more)))
    assert said in str(caught.value)


class Connections:
    """What a token endpoint is asked over; it never answers."""

    def __init__(self):
        self.opened, self.closed = [], []

    def open(self, key, *_):
        self.opened.append(key)

    def close(self, key):
        self.closed.append(key)


@pytest.mark.parametrize("drips", [False, True])
def test_an_endpoint_that_does_not_end_its_answer_is_given_up(drips):
    """It was waited for as long as the agent lived, and no call reached the MCP server."""
    secret = Secret("DOCS_SECRET", lambda: SECRET, lambda token: None)
    connections = Connections()
    row = [False, "127.0.0.1", 9, "/token", "docs", ""]
    tokens = Tokens(row, secret, "", connections, lambda scheme: None)
    assert not tokens.ensure_token(1000) and tokens.is_asking
    assert tokens.due_ms == 1000 + ANSWER_MS
    if drips:
        tokens.take("data", b"HTTP/1.1 200 OK\r\n", 1000 + ANSWER_MS - 1)
    assert not tokens.ensure_token(1000 + ANSWER_MS - 1)
    with pytest.raises(ProviderError, match="no token from 127.0.0.1: it did not answer within"):
        tokens.ensure_token(1000 + ANSWER_MS)
    assert connections.closed == ["token"] and not tokens.is_asking and tokens.due_ms is None
    assert not tokens.ensure_token(1000 + ANSWER_MS), "the next call asks again"
    assert connections.opened == ["token", "token"]
