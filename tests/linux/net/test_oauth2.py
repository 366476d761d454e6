"""Tokens by client credentials (RFC 6749, 4.4), from a real server: asked for once, renewed, and
never shown.
"""

import base64
import json
import urllib.parse

import pytest
from llm_server import FAULTS, Server, say
from providers.project import AT_ONCE, KEY, WAYS, World, nobody, provider

TOKEN = "tok-canary-19c2e7"


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def token(value=TOKEN, life=3600, **more):
    return {
        "body": dict({"access_token": value, "token_type": "Bearer", "expires_in": life}, **more)
    }


def settings(server, name="first", scope='scope = "model:ask other"\n'):
    endpoint = server.endpoint if not isinstance(server, tuple) else server[1]
    return '[oauth2.%s]\nendpoint = "%s/token"\nclient_id = "my agent"\n%s' % (
        name,
        endpoint,
        scope,
    )


def oauth2(server, name="first", **more):
    return provider(server, name, auth={"type": "oauth2", "secret_ref": "TEST_KEY"}, **more)


@pytest.mark.parametrize("api, streaming", WAYS)
def test_a_token_is_asked_for_once_and_used(world, api, streaming):
    with Server([token()]) as tokens, Server([say("One."), say("Two.")], api=api) as server:
        world.build(oauth2(server, streaming=streaming), settings=settings(tokens))
        with world.start("run") as agent:
            for said in ("One.\n", "Two.\n"):
                agent.line("hello")
                agent.expect(said)
            assert TOKEN not in agent.text() + agent.errors()
        (asked,) = tokens.requests
        assert (
            asked.target == "/v1/token"
            and asked.headers["content-type"] == "application/x-www-form-urlencoded"
        )
        assert dict(urllib.parse.parse_qsl(asked.body.decode())) == {
            "grant_type": "client_credentials",
            "scope": "model:ask other",
        }
        client, secret = (
            base64.b64decode(asked.headers["authorization"].removeprefix("Basic "))
            .decode()
            .split(":")
        )
        assert (urllib.parse.unquote(client), urllib.parse.unquote(secret)) == ("my agent", KEY)
        assert [request.headers["authorization"] for request in server.requests] == [
            "Bearer " + TOKEN
        ] * 2
    assert not any(
        TOKEN.encode() in path.read_bytes() for path in world.folder.rglob("*") if path.is_file()
    )


def test_a_token_is_known_to_who_looks_for_secrets(world):
    """A model that has heard of the token says it: nobody sees it."""
    said = "It is %s, or %s." % (TOKEN, base64.b64encode(TOKEN.encode()).decode())
    with Server([token()]) as tokens, Server([say(said)]) as server:
        world.build(
            oauth2(server), settings=settings(tokens), blocks={"secret_scanning": {"enabled": True}}
        )
        code, out, told = world.ask("hello")
        assert code == 0 and out.count("[REDACTED: known]") == 2 and TOKEN not in out + told, (
            out,
            told,
        )


def test_a_token_is_renewed_before_its_end(world):
    """One that lasts a second is used for three quarters of it; the next request gets a new one."""
    with (
        Server([token("one", 1), token("two")]) as tokens,
        Server([say("One."), say("Two.")]) as server,
    ):
        world.build(oauth2(server), settings=settings(tokens, scope=""))
        for said in ("One.\n", "Two.\n"):  # a token is kept in memory alone
            assert world.ask("hello") == (0, said, "")
        assert [request.headers["authorization"] for request in server.requests] == [
            "Bearer one",
            "Bearer two",
        ]
        assert b"scope" not in tokens.requests[0].body


def test_a_token_that_was_withdrawn_is_replaced_once(world):
    with (
        Server([token("one"), token("two")]) as tokens,
        Server([say("One."), FAULTS["unauthorized"], say("Two.")]) as server,
    ):
        world.build(oauth2(server), settings=settings(tokens))
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("One.\n")
            agent.line("hello")
            assert "provider" not in agent.expect("Two.\n")
        assert [request.headers["authorization"] for request in server.requests] == [
            "Bearer one",
            "Bearer one",
            "Bearer two",
        ]
    with Server([token()]) as tokens, Server([FAULTS["unauthorized"]]) as server:
        world.build(oauth2(server), settings=settings(tokens))
        code, said, told = world.ask("hello")
        assert (
            (code, said) == (1, "")
            and "HTTP 401" in told
            and len(tokens.requests) == len(server.requests) == 1
        )


@pytest.mark.parametrize(
    "step, line",
    [
        (
            {
                "status": 401,
                "body": {"error": "invalid_client", "error_description": "Who is " + KEY + "?"},
            },
            "HTTP 401: Who is [redacted]?",
        ),
        ({"status": 400, "body": {"error": "invalid_scope"}}, "HTTP 400: invalid_scope"),
        ({"body": {"access_token": "x"}}, "expected access_token and token_type Bearer"),
        (
            {"body": {"access_token": 5, "token_type": "bearer"}},
            "expected access_token and token_type Bearer",
        ),
        ({"body": b"<html>Sign in</html>"}, "the provider sent a page of HTML"),
        ({"body": b"x" * 20000}, "the answer is longer than 16384 bytes"),
        (
            {"body": {"access_token": "a\r\nb", "token_type": "bearer"}},
            "expected access_token and token_type Bearer in its answer",
        ),
    ],
)
def test_no_token_is_one_clear_line(world, step, line):
    with Server([step]) as tokens, Server([say("No.")]) as server:
        world.build(oauth2(server), settings=settings(tokens))
        code, said, told = world.ask("hello")
        assert (
            (code, said) == (1, "")
            and line in told
            and told.startswith("provider first: ")
            and len(told.splitlines()) == 1
        )
        assert server.requests == []


@pytest.mark.parametrize(
    "status, said", [(401, "invalid_client"), (400, "invalid_scope"), (404, "not_found")]
)
def test_a_client_that_is_refused_is_told_with_what_to_do_and_ask_fails(world, status, said):
    refusal = {"status": status, "body": {"error": said}}
    with Server([refusal]) as tokens, Server([say("No.")]) as server:
        world.build(
            oauth2(server),
            settings=settings(tokens),
            reflex='[[rule]]\nwhen = "hello"\nsay = "By the rules."\n',
        )
        code, answer, told = world.ask("hello")
        assert (code, answer) == (1, "By the rules.\n")
        assert "HTTP %d: %s" % (status, said) in told
        assert "clawlite secrets set NAME" in told and "next: reflex" in told


@pytest.mark.parametrize(
    "status, said", [(400, "temporarily_unavailable"), (403, "a page of the proxy")]
)
def test_a_refusal_that_may_be_gone_the_next_time_is_an_outage(world, status, said):
    refusal = {"status": status, "body": {"error": said}}
    with Server([refusal]) as tokens, Server([say("No.")]) as server:
        rule = '[[rule]]\nwhen = "hello"\nsay = "By the rules."\n'
        world.build(oauth2(server), settings=settings(tokens), reflex=rule)
        code, answer, told = world.ask("hello")
    assert (code, answer) == (0, "By the rules.\n")
    assert "HTTP %d: %s" % (status, said) in told


def test_a_server_of_tokens_that_is_busy_or_away_is_asked_again(world):
    with Server([FAULTS["overloaded"], token()]) as tokens, Server([say("Fine.")]) as server:
        world.build(oauth2(server, retry=AT_ONCE), settings=settings(tokens))
        code, said, told = world.ask("hello")
        assert (
            (code, said) == (0, "Fine.\n")
            and "no token from 127.0.0.1: HTTP 503" in told
            and "tried 1 of 3" in told
        )
        world.build(
            oauth2(server, retry=AT_ONCE),
            settings=settings(nobody()),
            reflex='[[rule]]\nwhen = "hello"\nsay = "By the rules."\n',
        )
        code, said, told = world.ask("hello")
        assert (code, said) == (
            0,
            "By the rules.\n",
        ) and "connection refused (tried 3 of 3); next: reflex" in told


def test_what_is_missing_is_named_when_it_is_built(world):
    from clawlite.host.base.problems import ManifestErrors

    with pytest.raises(
        ManifestErrors,
        match=r"add \[oauth2.first\] with endpoint and client_id "
        r"to clawlite.toml",
    ):
        world.build(oauth2(nobody()))
    with pytest.raises(
        ManifestErrors, match='no provider "frist" has auth.type "oauth2".*did you mean "first"'
    ):
        world.build(oauth2(nobody()), settings=settings(nobody()) + settings(nobody(), "frist"))
    with pytest.raises(ManifestErrors, match="a key or password has no place in a URL"):
        world.build(
            oauth2(nobody()),
            settings='[oauth2.first]\nendpoint = "http://a:b@h/"\nclient_id = "c"\n',
        )
    assert (
        json.loads((world.folder / "project/claw.yaml").read_text())["spec"]["providers"][0][
            "inline"
        ]["auth"]["type"]
        == "oauth2"
    )
