"""Where the tokens for an MCP server come from (the authorization page of MCP: RFC 9728, RFC 8414,
RFC 8707), and a person who signs in by the device flow (RFC 8628): Authlib gives the tokens, the
official SDK takes them.
"""

import json
from pathlib import Path

import mcp_oauth_clients
import pytest
from agents import Agent, linux, tool_call
from mcp_oauth import (  # noqa: F401
    SECRET,
    agent_of,
    called,
    found,
    login,
    person,
    running,
    servers,
    signed_in_build,
)

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build, build_beside


@pytest.fixture
def published(servers, monkeypatch):
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    return servers.fresh()


def test_the_endpoint_is_found_and_pinned(tmp_path, published):
    """RFC 9728, 5.1; RFC 8414, 3; RFC 8707: a server that names another place later gets no secret
    sent there."""
    agent = agent_of(tmp_path, published, found(published))
    image = build_beside(str(agent))
    assert published.tell("") == (1, published.url), "of the build, for this server"
    lock = (agent / "clawlite.lock").read_text()
    assert "http://127.0.0.1:%d/token" % published.authority in lock
    published.tell('meta {"token_endpoint": "http://127.0.0.1:9/token"}')
    build(str(agent))
    assert (agent / "clawlite.lock").read_text() == lock
    with running(tmp_path, image) as one:
        assert "x1" in json.dumps(called(one, 1)["result"])
    with pytest.raises(ClawError, match="no token from 127.0.0.1"):
        build(str(agent), refresh=True)  # the new place does not answer
    own = '{"token_endpoint": "http://127.0.0.1:%d/token"}' % published.authority
    published.tell("meta " + own)
    published.tell('meta {"device_authorization_endpoint": "http://127.0.0.1:9/device"}')
    with pytest.raises(ClawError, match="127.0.0.1:9/device") as caught:
        build(str(agent), refresh=True)
    assert "clawlite build --accept t" in caught.value.hint
    assert (agent / "clawlite.lock").read_text() == lock


def test_nobody_is_shown_a_secret_whom_the_maker_did_not_name(tmp_path, published):
    """The error says what the server names, and what to write."""
    with pytest.raises(ClawError) as caught:
        build(str(agent_of(tmp_path, published, found(published, issuer=""))))
    issuer = "http://127.0.0.1:%d" % published.authority
    assert issuer in caught.value.message and 'issuer = "%s"' % issuer in caught.value.hint
    assert published.tell("")[0] == 0


def test_another_issuer_is_found_anew(tmp_path, published):
    """What is pinned for one issuer is not used for another."""
    agent = agent_of(tmp_path, published, found(published))
    build(str(agent))
    file = agent / "clawlite.toml"
    issuer = "http://127.0.0.1:%d" % published.authority
    file.write_text(file.read_text().replace(issuer, "http://127.0.0.1:9"))
    with pytest.raises(ClawError, match="takes no tokens of http://127.0.0.1:9:"):
        build(str(agent))


@pytest.mark.parametrize(
    "told, said",
    [
        (["meta", {"issuer": "https://elsewhere.example"}], "is of the issuer"),
        (["meta", {"token_endpoint": "http://elsewhere.example/t"}], "expected https://"),
        (["meta", {"token_endpoint": 3}], "token_endpoint: expected a text"),
        (["meta", {"grant_types_supported": ["authorization_code"]}], "no tokens by client_cred"),
        (
            ["meta", {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}],
            "no client_secret_basic",
        ),
        (["protected", {"resource": "https://other.example/mcp"}], "would be for another server"),
        (["protected", {"authorization_servers": ["https://a.example"]}], "takes no tokens of"),
        (["protected", {"authorization_servers": "https://a.example"}], "a list of texts"),
        (["protected", []], "expected an object of JSON"),
    ],
)
def test_metadata_that_are_refused(tmp_path, published, told, said):
    """No token is asked for."""
    word, value = told
    if word == "protected" and value:
        value = {"resource": published.url, "authorization_servers": [], **value}
    if word == "protected" and not value:
        value = [1]
    published.tell("%s %s" % (word, json.dumps(value)))
    with pytest.raises(ClawError) as caught:
        build(str(agent_of(tmp_path, published, found(published))))
    assert said in caught.value.message
    assert published.tell("")[0] == 0


def test_a_server_without_metadata(tmp_path, published):
    """Servers from before 2025-06-18 have none; the issuer that the maker names has metadata of its
    own."""
    published.tell("protected null")
    build(str(agent_of(tmp_path, published, found(published))))
    assert published.tell("") == (1, published.url)


@pytest.mark.parametrize(
    "more, said",
    [
        ('endpoint = "http://127.0.0.1:9/token"\n', "with endpoint there is no issuer"),
        ('flow = "authorization_code"\n', "flow:"),
        ('client_credential = "OWN"\n', "credential names the client's secret"),
        (
            'flow = "device"\nclient_credential = "DOCS_SECRET"\n',
            "stores the refresh token of the sign-in",
        ),
        ('flow = "device"\n[mcp.t]\ntrust = "start"\n', "would have to sign in at each start"),
    ],
)
def test_settings_that_are_refused(tmp_path, published, more, said):
    with pytest.raises(ManifestErrors) as caught:
        build(str(agent_of(tmp_path, published, found(published, more))))
    assert said in str(caught.value)


def test_a_person_signs_in(tmp_path, published):
    """RFC 8628; the refresh token is kept, renewed with rotation, and its end is told."""
    agent = agent_of(tmp_path, published, person(published))
    with pytest.raises(ClawError, match="wants a person to sign in") as caught:
        build(str(agent))
    assert "at a terminal" in caught.value.hint
    published.tell("agree")
    said = signed_in_build(tmp_path, agent)
    assert "/activate on any device, and enter the code " in said
    image = build_beside(str(agent))  # all else reads the lock
    with running(tmp_path, image, secret=None) as one:
        answer = called(one, 1)
        assert "sign in first" in answer["error"]["message"], answer
        assert "clawlite secrets login SIGNED_IN" in json.dumps(answer)
    done = login(tmp_path, image)
    assert done.returncode == 0, done.stderr
    assert "enter the code" in done.stderr and "may act as you" in done.stdout
    (kept,) = tmp_path.rglob("secrets/SIGNED_IN")
    first = kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    with running(tmp_path, image, secret=None) as one:
        for number in range(3):
            assert "x%d" % number in json.dumps(called(one, number)["result"])
        second = kept.read_text()
        assert second != first, "the server gave another one, and the old one counts no more"
        published.tell("revoke")
        assert "x4" in json.dumps(called(one, 4)["result"])
        assert kept.read_text() != second
        published.tell("revoke")
        published.tell("forget")
        answer = called(one, 5)
        ended = "has ended: the person has to sign in again, with clawlite secrets login SIGNED_IN"
        assert ended in json.dumps(answer)
        one.line(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "claw.ping"}))
        assert one.message()["id"] == 9
    assert login(tmp_path, image).returncode == 0
    with running(tmp_path, image, secret=None) as one:
        assert "x6" in json.dumps(called(one, 6)["result"])


def test_a_person_who_refuses(tmp_path, published):
    agent = agent_of(tmp_path, published, person(published))
    published.tell("agree")
    signed_in_build(tmp_path, agent)
    image = build_beside(str(agent))
    published.tell("deny")
    done = login(tmp_path, image)
    assert done.returncode == 1 and "it was refused there" in done.stderr
    assert not list(tmp_path.rglob("secrets/SIGNED_IN"))
    done = login(tmp_path, image, "OTHER")
    assert done.returncode == 1 and "it is one of: SIGNED_IN" in done.stderr


def test_a_client_with_a_secret_shows_it(tmp_path, published, monkeypatch):
    """RFC 6749, 2.3.1; RFC 8628, 3.1: at the device endpoint, for the token and when renewed; a
    wrong one is refused, and told nowhere."""
    settings = person(published).replace(mcp_oauth_clients.PERSONS, mcp_oauth_clients.CONFIDENTIAL)
    agent = agent_of(tmp_path, published, settings + 'client_credential = "CLIENT_SECRET"\n')
    published.tell("agree")
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    signed_in_build(tmp_path, agent)
    image = build_beside(str(agent))
    assert SECRET.encode() not in Path(image).read_bytes()
    monkeypatch.delenv("CLIENT_SECRET")
    done = login(tmp_path, image, CLIENT_SECRET="wrong-0123456789")
    assert done.returncode == 1 and "no token from 127.0.0.1: HTTP 401" in done.stderr
    assert "wrong-0123456789" not in done.stderr
    done = login(tmp_path, image)
    assert done.returncode == 1 and "CLIENT_SECRET" in done.stderr, "it is not known there"
    assert login(tmp_path, image, CLIENT_SECRET=SECRET).returncode == 0
    known = {"CLIENT_SECRET": SECRET}
    with Agent(linux("serve", image, "--stdio"), tmp_path, env=known).initialize() as one:
        for number in range(2):
            assert "x%d" % number in json.dumps(called(one, number)["result"])
            published.tell("revoke")


def signed_in(tmp_path, published) -> str:
    """Return the image of an agent in whose name a person has signed in."""
    agent = agent_of(tmp_path, published, person(published))
    published.tell("agree")
    signed_in_build(tmp_path, agent)
    image = build_beside(str(agent))
    assert login(tmp_path, image).returncode == 0
    return image


def test_two_processes_renew_one_after_the_other(tmp_path, published):
    """RFC 9700, 4.14.2: a server may end a sign-in whose refresh token comes twice."""
    image = signed_in(tmp_path, published)
    published.tell("strict")
    with running(tmp_path, image, secret=None) as one:
        with running(tmp_path, image, secret=None) as other:
            published.tell("hold")
            for process, number in ((one, 1), (other, 2)):  # they share what ran by its id
                process.line(json.dumps(tool_call("echo", {"text": "x1"}, number)))
                process.line(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "claw.ping"}))
                assert process.message()["id"] == 9, "its call is under way, and holds nothing up"
            published.tell("go")
            for process in (one, other):
                assert "x1" in json.dumps(process.message()["result"])
        published.tell("revoke")
        assert "x3" in json.dumps(called(one, 3)["result"]), "the sign-in counts still"


def test_two_processes_of_an_agent_share_a_sign_in(tmp_path, published):
    """Each uses what the other has kept, because a refresh token works once."""
    image = signed_in(tmp_path, published)
    with running(tmp_path, image, secret=None) as one:
        with running(tmp_path, image, secret=None) as other:
            for number in range(6):  # they share what ran by its id
                published.tell("revoke")
                done = called((one, other)[number % 2], number)
                if "error" in done:  # a request of its own, such as tools/list, met two of them
                    assert done["error"]["data"]["ran"] is False, done
                    done = called((one, other)[number % 2], number)
                assert "x%d" % number in json.dumps(done.get("result")), done
